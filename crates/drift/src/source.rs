//! The differences of the server itself.

use serde_json::{Map, Value};

use super::class::Class;
use super::report::Finding;
use super::rules::rule;
use super::wording;
use broker_model::json::child_pointer;
use broker_model::lock::{LockedSource, VOLATILE_INSTRUCTIONS};
use broker_model::snapshot::Snapshot;

/// The findings on a source, the most important first.
pub(super) fn changes(locked: &LockedSource, live: &Snapshot, remedy: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut compare =
        |id: &str, pointer: &str, what: &str, old: Option<&Value>, new: Option<&Value>| {
            if old == new {
                return;
            }
            found.extend(wording::hidden(pointer, old, new));
            found.push(Finding {
                pointer: pointer.to_owned(),
                old: old.cloned(),
                new: new.cloned(),
                ..Finding::new(rule(id), format!("the server's {what} changed"), "")
            });
        };
    let (old, new) = (&locked.server_info, &live.server_info);
    compare(
        "server-name-changed",
        "/server_info/name",
        "name",
        old.get("name"),
        new.get("name"),
    );
    let text = |text: &Option<String>| text.clone().map(Value::from);
    let (before, after) = (text(&locked.instructions), text(&live.instructions));
    if !locked.volatile.contains(VOLATILE_INSTRUCTIONS) {
        compare(
            "instructions-changed",
            "/instructions",
            "instructions",
            before.as_ref(),
            after.as_ref(),
        );
    }
    compare(
        "server-version-changed",
        "/server_info/version",
        "version",
        old.get("version"),
        new.get("version"),
    );
    let empty = Map::new();
    let members = |side: &'_ Value| side.as_object().cloned().unwrap_or_else(|| empty.clone());
    let (before, after) = (members(old), members(new));
    let others = before
        .keys()
        .chain(after.keys().filter(|name| !before.contains_key(*name)));
    for name in others.filter(|name| !matches!(name.as_str(), "name" | "version")) {
        let pointer = child_pointer("/server_info", name);
        compare(
            "server-info-changed",
            &pointer,
            &format!("`{name}`"),
            before.get(name),
            after.get(name),
        );
    }
    compare(
        "capabilities-changed",
        "/capabilities",
        "capabilities",
        Some(&locked.capabilities),
        Some(&live.capabilities),
    );
    let revision = |text: &str| Value::from(text);
    let (before, after) = (
        revision(&locked.protocol_version),
        revision(&live.protocol_version),
    );
    compare(
        "protocol-revision-changed",
        "/protocol_version",
        "protocol revision",
        Some(&before),
        Some(&after),
    );
    for one in &mut found {
        one.remedy = if one.class == Class::Same {
            "none; the next lock records it".to_owned()
        } else {
            remedy.to_owned()
        };
    }
    found
}

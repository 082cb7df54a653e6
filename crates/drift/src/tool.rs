//! The differences of one tool, member by member.

use serde_json::{Map, Value, json};

use super::report::Finding;
use super::rules::rule;
use broker_schema::{Coverage, Side, covers};

use super::schema::{self, SchemaFinding};
use super::{Difference, annotations, differences, icons, property_rename, wording};
use broker_model::digest::Digest;
use broker_model::lock::LockedTool;
use broker_model::null_members::remove_nulls;

/// Maximum number of listed places of one tool; a rewritten schema has thousands.
const MAX_FINDINGS: usize = 50;
/// Maximum memory of the parsed live values in the findings of one tool; larger ones are left out.
const MAX_VALUE_BYTES: u64 = 1 << 20;
/// Maximum memory for all tools of a source.
const MAX_SOURCE_BYTES: u64 = 8 << 20;

/// The remaining memory for live values in the findings of a source.
pub(super) struct Room(u64);

impl Room {
    pub(super) fn new() -> Self {
        Self(MAX_SOURCE_BYTES)
    }

    /// Leaves out the live values of a tool that do not fit.
    fn keep(&mut self, findings: &mut [Finding]) {
        let before = self.0.min(MAX_VALUE_BYTES);
        let mut left = before;
        let values = findings
            .iter_mut()
            .flat_map(|one| [&mut one.new, &mut one.witness]);
        for value in values.flatten() {
            if !takes(value, &mut left) {
                *value = Value::from("(too large to be shown)");
            }
        }
        self.0 -= before - left;
    }
}

/// All differences of the reviewed tool and the live one, at least one finding.
pub(super) fn changes(
    tool: &LockedTool,
    live: &Map<String, Value>,
    remedy: &str,
    room: &mut Room,
) -> Vec<Finding> {
    let (locked, live) = (without_nulls(&tool.raw), without_nulls(live));
    if Digest::from_tool(&locked) == Digest::from_tool(&live) {
        let message = "an optional member is null on one side and absent on the other".to_owned();
        let found = Finding::new(rule("null-for-absent"), message, remedy);
        return unvalidated(tool, remedy)
            .into_iter()
            .chain([found])
            .collect();
    }
    let mut found: Vec<_> = unvalidated(tool, remedy).into_iter().collect();
    let mut members: Vec<&str> = locked.keys().map(String::as_str).collect();
    members.extend(
        live.keys()
            .map(String::as_str)
            .filter(|name| !locked.contains_key(*name)),
    );
    for member in members {
        let (old, new) = (locked.get(member), live.get(member));
        if old == new {
            continue;
        }
        let pointer = broker_model::json::child_pointer("", member);
        let places = differences_of(old, new);
        if places.is_empty() {
            // Two forms of one number.
            continue;
        }
        match member {
            "description" => found.extend(wording::change(
                "description-changed",
                "the description",
                &pointer,
                old,
                new,
            )),
            "title" => found.extend(wording::change(
                "title-changed",
                "the title",
                &pointer,
                old,
                new,
            )),
            "annotations" => found.extend(annotations::changes(old, new)),
            "icons" => found.push(icons::change(old, new)),
            "inputSchema" => found.extend(schema(Side::Input, &pointer, old, new)),
            "outputSchema" => found.extend(schema(Side::Output, &pointer, old, new)),
            "_meta" => found.extend(members_of("meta-changed", "`_meta`", &pointer, places)),
            "execution" => found.extend(members_of(
                "execution-changed",
                "`execution`",
                &pointer,
                places,
            )),
            _ => found.extend(members_of("member-changed", "a member", &pointer, places)),
        }
    }
    if found.is_empty() {
        let message = "the tool changed, and no rule covers the change".to_owned();
        found.push(Finding::new(rule("unknown-change"), message, remedy));
    }
    // The worst come first, so that they are not cut.
    found.sort_by_key(|one| std::cmp::Reverse(one.class));
    let total = found.len();
    // A changed text can decide whether the tool is served, so one is always kept.
    let text = found.iter().position(Finding::is_text_drift);
    if let Some(text) = text.filter(|at| *at >= MAX_FINDINGS) {
        found.swap(MAX_FINDINGS - 1, text);
    }
    found.truncate(MAX_FINDINGS);
    for one in &mut found {
        remedy.clone_into(&mut one.remedy);
    }
    room.keep(&mut found);
    if let Some(last) = found.last_mut().filter(|_| total > MAX_FINDINGS) {
        last.message = format!("{}, and {} more places", last.message, total - MAX_FINDINGS);
    }
    found
}

/// The finding of every change of a tool that is served unvalidated.
fn unvalidated(tool: &LockedTool, remedy: &str) -> Option<Finding> {
    let message = || "a tool that is served unvalidated changed".to_owned();
    let rule = rule("unvalidated-changed");
    tool.unvalidated
        .then(|| Finding::new(rule, message(), remedy))
}

fn without_nulls(raw: &Map<String, Value>) -> Map<String, Value> {
    let mut raw = raw.clone();
    remove_nulls(&mut raw);
    raw
}

/// Subtracts the size of a value from `room`, at about a hundred bytes per member. Returns whether it
/// fitted.
fn takes(value: &Value, room: &mut u64) -> bool {
    let own = match value {
        Value::String(text) => text.len() as u64 + 32,
        Value::Object(members) => {
            600 + members
                .keys()
                .map(|name| name.len() as u64 + 100)
                .sum::<u64>()
        }
        _ => 32,
    };
    if own > *room {
        return false;
    }
    *room -= own;
    match value {
        Value::Array(items) => items.iter().all(|item| takes(item, room)),
        Value::Object(members) => members.values().all(|member| takes(member, room)),
        _ => true,
    }
}

fn differences_of(old: Option<&Value>, new: Option<&Value>) -> Vec<Difference> {
    match (old, new) {
        (Some(old), Some(new)) => differences(old, new),
        (old, new) => vec![Difference {
            pointer: String::new(),
            old: old.cloned(),
            new: new.cloned(),
        }],
    }
}

fn members_of(id: &str, what: &str, pointer: &str, places: Vec<Difference>) -> Vec<Finding> {
    let found = |place: Difference| Finding {
        pointer: format!("{pointer}{}", place.pointer),
        old: place.old,
        new: place.new,
        ..Finding::new(rule(id), format!("{what} changed"), "")
    };
    let hidden = places.iter().find_map(|place| {
        let pointer = format!("{pointer}{}", place.pointer);
        wording::hidden(&pointer, place.old.as_ref(), place.new.as_ref())
    });
    places.into_iter().map(found).chain(hidden).collect()
}

fn schema(side: Side, pointer: &str, old: Option<&Value>, new: Option<&Value>) -> Vec<Finding> {
    let (id, what) = match (old, new) {
        (Some(old), Some(new)) => {
            let found = property_rename::join(side, schema::findings(side, old, new));
            let mut found: Vec<Finding> =
                found.into_iter().map(|one| finding(pointer, one)).collect();
            found.extend(wording::hidden(pointer, Some(old), Some(new)));
            return found;
        }
        (None, _) => ("schema-added", "was added"),
        (_, None) => ("schema-removed", "was removed"),
    };
    // Results without a schema may be anything: an answer that the reviewed schema refuses is the example.
    let witness = match (side, old, new) {
        (Side::Output, Some(old), None) => match covers(&json!({"type": "object"}), old) {
            Coverage::Counterexample { value, .. } => Some(value),
            Coverage::Covered | Coverage::Unknown(_) => None,
        },
        _ => None,
    };
    let found = Finding {
        pointer: pointer.to_owned(),
        old: old.cloned(),
        new: new.cloned(),
        witness,
        ..Finding::new(
            super::rules::find(side.as_str(), id),
            format!("the {} schema {what}", side.as_str()),
            "",
        )
    };
    wording::hidden(pointer, old, new)
        .into_iter()
        .chain([found])
        .collect()
}

fn finding(pointer: &str, one: SchemaFinding) -> Finding {
    Finding {
        rule: one.rule.id,
        class: one.class,
        severity: one.severity,
        pointer: format!("{pointer}{}", one.pointer),
        old: one.old,
        new: one.new,
        witness: one.witness,
        message: one.message,
        remedy: String::new(),
    }
}

impl Finding {
    /// A finding with the class and severity of its rule.
    pub fn new(rule: &super::rules::Rule, message: String, remedy: &str) -> Self {
        Self {
            rule: rule.id,
            class: rule.class,
            severity: rule.severity,
            pointer: String::new(),
            old: None,
            new: None,
            witness: None,
            message,
            remedy: remedy.to_owned(),
        }
    }
}

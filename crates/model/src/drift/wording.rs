//! Texts that a model reads: reworded, respaced, or with something in them that nobody sees.

use serde_json::Value;

use super::report::Finding;
use super::rules::rule;
use crate::unseen::spots;

/// The findings on one text.
pub(super) fn change(
    id: &str,
    what: &str,
    pointer: &str,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Vec<Finding> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(squeezed);
    let respaced = text(old).is_some() && text(old) == text(new);
    let (id, message) = if respaced {
        (
            "white-space-changed",
            format!("only white space of {what} changed"),
        )
    } else {
        (id, format!("{what} changed"))
    };
    let found = Finding {
        pointer: pointer.to_owned(),
        old: old.cloned(),
        new: new.cloned(),
        ..Finding::of(rule(id), message, "")
    };
    hidden(pointer, old, new)
        .into_iter()
        .chain([found])
        .collect()
}

/// The finding where a character that cannot be seen came into any text below.
pub(super) fn hidden(pointer: &str, old: Option<&Value>, new: Option<&Value>) -> Option<Finding> {
    let count = |value: Option<&Value>| value.map_or(0, unseen);
    (count(new) > count(old)).then(|| Finding {
        pointer: pointer.to_owned(),
        old: old.cloned(),
        new: new.cloned(),
        ..Finding::of(
            rule("hidden-characters"),
            "characters that cannot be seen came into the text".to_owned(),
            "",
        )
    })
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn unseen(value: &Value) -> usize {
    match value {
        Value::String(text) => spots(text).len(),
        Value::Array(items) => items.iter().map(unseen).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| spots(name).len() + unseen(value))
            .sum(),
        _ => 0,
    }
}

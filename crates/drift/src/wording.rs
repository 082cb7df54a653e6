//! Texts for models: a changed text, changed white space, or hidden content.

use serde_json::Value;

use super::report::Finding;
use super::rules::rule;
use crate::encoded;
use broker_model::unseen::unseen_characters;

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
        ..Finding::new(rule(id), message, "")
    };
    hidden(pointer, old, new)
        .into_iter()
        .chain([found])
        .collect()
}

/// The finding if hidden content was added to any text below: invisible characters, or encoded
/// instructions.
pub(super) fn hidden(pointer: &str, old: Option<&Value>, new: Option<&Value>) -> Option<Finding> {
    let count = |value: Option<&Value>, of: fn(&str) -> usize| value.map_or(0, |one| sum(one, of));
    let grew = |of: fn(&str) -> usize| count(new, of) > count(old, of);
    let (id, message) = if grew(|text| unseen_characters(text).len()) {
        (
            "hidden-characters",
            "invisible characters were added to the text",
        )
    } else if grew(|text| encoded::instructions(text, &|_| false).len()) {
        (
            "hidden-payload",
            "encoded text that decodes to instructions was added",
        )
    } else {
        return None;
    };
    Some(Finding {
        pointer: pointer.to_owned(),
        old: old.cloned(),
        new: new.cloned(),
        ..Finding::new(rule(id), message.to_owned(), "")
    })
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Over every string and every name of a member.
fn sum(value: &Value, of: fn(&str) -> usize) -> usize {
    match value {
        Value::String(text) => of(text),
        Value::Array(items) => items.iter().map(|item| sum(item, of)).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| of(name) + sum(value, of))
            .sum(),
        _ => 0,
    }
}

//! Annotations, compared by their meaning under the defaults of the specification.

use serde_json::{Map, Value};

use super::report::Finding;
use super::rules::rule;
use broker_model::json::child_pointer;

/// Each hint, its default, and the value that claims less harm.
const HINTS: [(&str, bool, bool); 4] = [
    ("readOnlyHint", false, true),
    ("destructiveHint", true, false),
    ("idempotentHint", false, true),
    ("openWorldHint", true, false),
];

/// The findings on the annotations of one tool.
pub(super) fn changes(old: Option<&Value>, new: Option<&Value>) -> Vec<Finding> {
    let none = Map::new();
    let members = |side: Option<&Value>| side.and_then(Value::as_object).cloned();
    let (before, after) = (
        members(old).unwrap_or_else(|| none.clone()),
        members(new).unwrap_or(none),
    );
    let mut found = Vec::new();
    let at = |name: &str, id: &str, message: String| Finding {
        pointer: child_pointer("/annotations", name),
        old: before.get(name).cloned(),
        new: after.get(name).cloned(),
        ..Finding::new(rule(id), message, "")
    };
    let claims = |side: &Map<String, Value>, name: &str, default: bool| {
        side.get(name).and_then(Value::as_bool).unwrap_or(default)
    };
    let writes = |side| !claims(side, "readOnlyHint", false);
    for (name, default, safer) in HINTS {
        let (was, is) = (
            claims(&before, name, default),
            claims(&after, name, default),
        );
        // For a read-only tool these two have no meaning.
        let counts = !matches!(name, "destructiveHint" | "idempotentHint")
            || (writes(&before) && writes(&after));
        if was != is && counts {
            let (id, how) = if is == safer {
                ("annotations-safer", "claims to be safer")
            } else {
                ("annotations-less-safe", "is less safe")
            };
            found.push(at(
                name,
                id,
                format!("`{name}` went from {was} to {is}: the tool {how}"),
            ));
        }
    }
    let names = before
        .keys()
        .chain(after.keys().filter(|name| !before.contains_key(*name)));
    for name in names.filter(|name| before.get(*name) != after.get(*name)) {
        let hint = HINTS.iter().any(|(hint, ..)| hint == name);
        let odd =
            |side: &Map<String, Value>| side.get(name).is_some_and(|value| !value.is_boolean());
        if !hint || odd(&before) || odd(&after) {
            found.push(at(
                name,
                "annotations-changed",
                format!("the annotation `{name}` changed"),
            ));
            found.extend(super::wording::hidden(
                &child_pointer("/annotations", name),
                before.get(name),
                after.get(name),
            ));
        }
    }
    let odd =
        |side: Option<&Value>| side.is_some_and(|value| !value.is_object() && !value.is_null());
    if found.is_empty() {
        let (id, message) = if odd(old) || odd(new) {
            ("annotations-changed", "the annotations are not an object")
        } else {
            (
                "annotations-respelled",
                "the annotations have another form and the same meaning",
            )
        };
        found.push(Finding {
            pointer: "/annotations".to_owned(),
            old: old.cloned(),
            new: new.cloned(),
            ..Finding::new(rule(id), message.to_owned(), "")
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ids(old: Value, new: Value) -> Vec<&'static str> {
        changes(Some(&old), Some(&new))
            .iter()
            .map(|found| found.rule)
            .collect()
    }

    #[test]
    fn annotations_are_compared_with_their_defaults() {
        assert_eq!(
            ids(
                json!({}),
                json!({"readOnlyHint": false, "destructiveHint": true})
            ),
            ["annotations-respelled"]
        );
        assert_eq!(
            ids(json!({"readOnlyHint": true}), json!({})),
            ["annotations-less-safe"]
        );
        assert_eq!(
            ids(json!({}), json!({"readOnlyHint": true})),
            ["annotations-safer"]
        );
        assert_eq!(
            ids(json!({"destructiveHint": false}), json!({})),
            ["annotations-less-safe"]
        );
        assert_eq!(
            ids(json!({"openWorldHint": false}), json!({})),
            ["annotations-less-safe"]
        );
        assert_eq!(
            ids(
                json!({"idempotentHint": true}),
                json!({"idempotentHint": false})
            ),
            ["annotations-less-safe"]
        );
        assert_eq!(
            ids(json!({"title": "a"}), json!({"title": "b"})),
            ["annotations-changed"]
        );
    }

    #[test]
    fn annotations_of_a_read_only_tool_ignore_two_hints() {
        let reads = json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true});
        assert_eq!(
            ids(reads, json!({"readOnlyHint": true})),
            ["annotations-respelled"]
        );
    }
}

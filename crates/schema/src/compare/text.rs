//! Parts of a schema that do not restrict values: texts, defaults, formats, headers, unknown keywords.

use std::collections::BTreeSet;

use serde_json::Value;

use super::node::Node;
use super::walk::{Direction, Walk};
use broker_model::json::child_pointer;
use broker_model::sensitive_words;

/// The keyword that moves an argument from the body of the call to a header.
const HEADER: &str = "x-mcp-header";
/// Annotations that the validator never asserts.
const NOTES: [(&str, &str); 4] = [
    ("default", "default-changed"),
    ("format", "format-changed"),
    ("contentEncoding", "format-changed"),
    ("contentMediaType", "format-changed"),
];
/// Keywords that are compared by accepted values, or that restrict none.
const ASSERTIONS: [&str; 54] = [
    "$schema",
    "$id",
    "id",
    "$ref",
    "$defs",
    "definitions",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
    "$vocabulary",
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "items",
    "prefixItems",
    "additionalItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "unevaluatedItems",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "unevaluatedProperties",
    "dependentSchemas",
    "dependentRequired",
    "dependencies",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "extends",
    "disallow",
    "contentSchema",
];

/// Compares everything that does not restrict values.
pub(super) fn compare(walk: &mut Walk, from: &Node<'_>, to: &Node<'_>) {
    let mut keywords: BTreeSet<&str> = BTreeSet::new();
    for location in from.locations.iter().chain(&to.locations) {
        let names = location
            .members()
            .into_iter()
            .flat_map(|members| members.keys());
        keywords.extend(
            names
                .map(String::as_str)
                .filter(|name| !ASSERTIONS.contains(name)),
        );
    }
    for keyword in keywords {
        let said = |node: &Node<'_>| -> Vec<Value> {
            let mut all: Vec<Value> = Vec::new();
            for location in &node.locations {
                if let Some(value) = location.members().and_then(|members| members.get(keyword))
                    && !all.contains(value)
                {
                    all.push(value.clone());
                }
            }
            all
        };
        if said(from) == said(to) {
            continue;
        }
        let at = [from.origin(keyword), to.origin(keyword)];
        let note = NOTES.iter().find(|(name, _)| *name == keyword);
        let (rule, message) = match note {
            Some((_, rule)) => (*rule, format!("`{keyword}` changed")),
            None if keyword == HEADER => (
                "header-changed",
                format!("`{HEADER}` changed: an argument moves between body and header"),
            ),
            None if matches!(keyword, "description" | "title" | "examples" | "$comment") => {
                ("text-changed", format!("a {keyword} changed"))
            }
            None => (
                "keyword-changed",
                format!("the keyword `{keyword}` changed"),
            ),
        };
        walk.add(rule, Direction::RuleDefined, at, message);
    }
}

/// Texts anywhere in the documents that were not compared yet: a new text in an unreachable part is still read
/// by models.
pub(super) fn compare_whole(walk: &mut Walk, old: &Value, new: &Value) {
    let mut sides = [CollectedTexts::default(), CollectedTexts::default()];
    sides[0].collect(old, String::new());
    sides[1].collect(new, String::new());
    let has = |walk: &Walk, rule: &str| walk.changes.iter().any(|change| change.rule == rule);
    let [before, after] = &sides;
    if before.headers() != after.headers() && !has(walk, "header-changed") {
        let place = |found: &CollectedTexts| found.headers.first().cloned();
        let (one, other) = (place(before), place(after));
        let at = [&one, &other].map(|side| side.as_ref().map(|(at, value)| (at.clone(), value)));
        let message = format!("`{HEADER}` changed: an argument moves between body and header");
        walk.add("header-changed", Direction::RuleDefined, at, message);
    }
    let new_text = after
        .texts
        .iter()
        .find(|(_, text)| !before.texts.iter().any(|(_, known)| known == text));
    if let Some((at, text)) = new_text
        && !has(walk, "text-changed")
    {
        let message = "a text was added".to_owned();
        walk.add(
            "text-changed",
            Direction::RuleDefined,
            [None, Some((at.clone(), text))],
            message,
        );
    }
}

#[derive(Default)]
struct CollectedTexts {
    headers: Vec<(String, Value)>,
    texts: Vec<(String, Value)>,
}

impl CollectedTexts {
    fn headers(&self) -> BTreeSet<String> {
        self.headers
            .iter()
            .map(|(_, value)| value.to_string())
            .collect()
    }

    fn collect(&mut self, value: &Value, pointer: String) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    let at = child_pointer(&pointer, name);
                    if name == HEADER {
                        self.headers.push((at.clone(), value.clone()));
                    }
                    if matches!(name.as_str(), "description" | "title" | "$comment")
                        && value.is_string()
                    {
                        self.texts.push((at.clone(), value.clone()));
                    }
                    self.collect(value, at);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.collect(item, format!("{pointer}/{index}"));
                }
            }
            _ => {}
        }
    }
}

/// Whether the name or the texts of a property ask for more than the call needs. A property that only accepts
/// listed values or booleans cannot leak data, regardless of its texts.
pub(super) fn asks_for_more(name: &str, schema: Option<&Value>) -> bool {
    let listed = schema.is_some_and(|schema| {
        schema.get("enum").is_some()
            || schema.get("const").is_some()
            || schema.get("type").is_some_and(|kind| kind == "boolean")
    });
    if listed {
        return false;
    }
    let text = |member: &str| {
        schema
            .and_then(|schema| schema.get(member))
            .and_then(Value::as_str)
    };
    [Some(name), text("title"), text("description")]
        .into_iter()
        .flatten()
        .any(|text| {
            sensitive_words::words(text)
                .iter()
                .any(|word| sensitive_words::find_kind(word).is_some())
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::asks_for_more;

    #[test]
    fn parameter_with_listed_values_only_asks_for_nothing_more() {
        let text = "How much context of the conversation is used";
        for (schema, asks) in [
            (json!({"type": "string", "description": text}), true),
            (
                json!({"type": "string", "enum": ["low", "high"], "description": text}),
                false,
            ),
            (json!({"type": "boolean", "description": text}), false),
            (json!({"type": "object", "description": text}), true),
        ] {
            assert_eq!(asks_for_more("size", Some(&schema)), asks, "{schema}");
        }
        assert!(asks_for_more("sessionToken", Some(&json!({}))));
    }
}

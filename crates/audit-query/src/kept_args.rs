//! The arguments of a recorded call, as far as its line has their values, and whether they match the schema of a rule.

use std::collections::BTreeMap;

use broker_audit::ArgsFacts;
use broker_model::redact::MASK;
use broker_schema::{Budget, Verdict, compile, count_values};
use serde_json::{Map, Value};

/// The characters from which on a value may have been cut.
const MAX_WHOLE_CHARS: usize = 200;
/// The maximum depth of a schema that is evaluated.
const MAX_DEPTH: usize = 32;

/// An argument as a line has it.
#[derive(Clone, Debug, PartialEq)]
enum Kept {
    /// A scalar.
    Whole(Value),
    /// An object of which these members are known. It may have others.
    Object(BTreeMap<String, Self>),
}

/// The arguments of a recorded call: an object of which some members are known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeptArgs(Kept);

/// Whether arguments match a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Yes,
    No,
    /// It depends on a value that was not kept, or on a keyword that is not evaluated.
    Unknown,
}

impl Match {
    /// Returns whether all match.
    fn all(each: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::Yes;
        for one in each {
            match one {
                Self::No => return Self::No,
                Self::Unknown => all = Self::Unknown,
                Self::Yes => {}
            }
        }
        all
    }

    /// Returns whether at least one matches.
    pub(crate) fn any(each: impl IntoIterator<Item = Self>) -> Self {
        Self::all(each.into_iter().map(Self::negated)).negated()
    }

    const fn negated(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            Self::Unknown => Self::Unknown,
        }
    }

    const fn from_bool(is_match: bool) -> Self {
        match is_match {
            true => Self::Yes,
            false => Self::No,
        }
    }
}

impl KeptArgs {
    /// Reads the values that a line shows. One that may have been cut or masked is not known.
    pub(crate) fn new(args: Option<&ArgsFacts>) -> Self {
        let mut root = BTreeMap::new();
        for (pointer, value) in args.iter().flat_map(|args| &args.shown) {
            let is_whole = match value {
                Value::String(text) => {
                    !text.contains(MASK) && text.chars().count() < MAX_WHOLE_CHARS
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => true,
                Value::Array(_) | Value::Object(_) => false,
            };
            if is_whole {
                insert(&mut root, pointer, value);
            }
        }
        Self(Kept::Object(root))
    }

    /// Returns whether the arguments match a schema, as far as that is known.
    pub(crate) fn matches(&self, schema: &Value) -> Match {
        self.0.matches(schema, MAX_DEPTH)
    }
}

/// Adds the value at a pointer. A segment that may be the place in a list is not an object's member for sure.
fn insert(root: &mut BTreeMap<String, Kept>, pointer: &str, value: &Value) {
    let mut names: Vec<String> = pointer
        .split('/')
        .skip(1)
        .map(|name| name.replace("~1", "/").replace("~0", "~"))
        .collect();
    let may_be_place = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    let Some(last) = names.pop() else {
        return;
    };
    if names.len() > MAX_DEPTH || may_be_place(&last) || names.iter().any(may_be_place) {
        return;
    }
    let mut members = root;
    for name in names {
        let next = members
            .entry(name)
            .or_insert_with(|| Kept::Object(BTreeMap::new()));
        let Kept::Object(next) = next else {
            return;
        };
        members = next;
    }
    members.insert(last, Kept::Whole(value.clone()));
}

impl Kept {
    fn matches(&self, schema: &Value, depth: usize) -> Match {
        let (schema, depth) = match (schema, depth.checked_sub(1)) {
            (Value::Bool(is_match), _) => return Match::from_bool(*is_match),
            (Value::Object(schema), Some(depth)) => (schema, depth),
            _ => return Match::Unknown,
        };
        match self {
            Self::Whole(value) => whole(value, schema),
            Self::Object(known) => {
                let keywords = schema.iter();
                Match::all(
                    keywords.map(|(word, rule)| self.keyword(known, (word, rule), schema, depth)),
                )
            }
        }
    }

    /// Returns whether an object matches one keyword of a schema. What other members it has is not known.
    fn keyword(
        &self,
        known: &BTreeMap<String, Self>,
        (word, rule): (&str, &Value),
        schema: &Map<String, Value>,
        depth: usize,
    ) -> Match {
        let each = |rule: &Value| -> Vec<Match> {
            let schemas = rule.as_array().into_iter().flatten();
            schemas.map(|schema| self.matches(schema, depth)).collect()
        };
        match word {
            // They say nothing about a value, or are read by another keyword.
            "$comment" | "$defs" | "$id" | "$schema" | "default" | "definitions" | "deprecated"
            | "description" | "else" | "examples" | "readOnly" | "then" | "title" | "writeOnly" => {
                Match::Yes
            }
            "type" => Match::from_bool(match rule {
                Value::String(name) => name == "object",
                Value::Array(names) => names.iter().any(|name| name == "object"),
                _ => false,
            }),
            "properties" => {
                Match::all(rule.as_object().into_iter().flatten().map(|(name, rule)| {
                    match (known.get(name), rule) {
                        (Some(value), rule) => value.matches(rule, depth),
                        (None, Value::Bool(true)) => Match::Yes,
                        (None, _) => Match::Unknown,
                    }
                }))
            }
            "required" => Match::all(rule.as_array().into_iter().flatten().map(|name| {
                match name.as_str().is_some_and(|name| known.contains_key(name)) {
                    true => Match::Yes,
                    false => Match::Unknown,
                }
            })),
            "allOf" => Match::all(each(rule)),
            "anyOf" => Match::any(each(rule)),
            "not" => self.matches(rule, depth).negated(),
            "if" => {
                let branch = |name: &str| match schema.get(name) {
                    Some(schema) => self.matches(schema, depth),
                    None => Match::Yes,
                };
                match self.matches(rule, depth) {
                    Match::Yes => branch("then"),
                    Match::No => branch("else"),
                    Match::Unknown if branch("then") == branch("else") => branch("then"),
                    Match::Unknown => Match::Unknown,
                }
            }
            "additionalProperties" if *rule == Value::Bool(true) => Match::Yes,
            _ => Match::Unknown,
        }
    }
}

/// Returns whether a scalar matches a schema.
fn whole(value: &Value, schema: &Map<String, Value>) -> Match {
    // A reference leads out of the part of the schema that is compiled here.
    if has_reference(&Value::Object(schema.clone())) {
        return Match::Unknown;
    }
    let Ok(validator) = compile(&Value::Object(schema.clone())) else {
        return Match::Unknown;
    };
    let budget = Budget::from_values(count_values(value));
    match validator.evaluate(value, &budget).verdict {
        Verdict::Valid => Match::Yes,
        Verdict::Invalid => Match::No,
        Verdict::OverBudget { .. } => Match::Unknown,
    }
}

fn has_reference(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(name, value)| {
            matches!(name.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef")
                || has_reference(value)
        }),
        Value::Array(items) => items.iter().any(has_reference),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kept(shown: &[(&str, Value)]) -> KeptArgs {
        let shown = shown.iter();
        let shown = shown.map(|(pointer, value)| ((*pointer).to_owned(), value.clone()));
        KeptArgs::new(Some(&ArgsFacts {
            shown: shown.collect(),
            ..ArgsFacts::default()
        }))
    }

    #[test]
    fn schema_is_decided_from_the_values_that_were_kept_only() {
        let args = kept(&[
            ("/org", json!("acme")),
            ("/at/day", json!(7)),
            ("/cut", json!("x".repeat(200))),
            ("/masked", json!(format!("a {MASK}"))),
            ("/list/0", json!(1)),
        ]);
        for (schema, expected) in [
            (json!(true), Match::Yes),
            (json!(false), Match::No),
            (json!({}), Match::Yes),
            (
                json!({"properties": {"org": {"const": "acme"}}, "required": ["org"], "type": "object"}),
                Match::Yes,
            ),
            (
                json!({"properties": {"org": {"enum": ["x", "y"]}}}),
                Match::No,
            ),
            (
                json!({"properties": {"at": {"properties": {"day": {"maximum": 7}}}}}),
                Match::Yes,
            ),
            (
                json!({"properties": {"at": {"properties": {"day": {"maximum": 6}}}}}),
                Match::No,
            ),
            (json!({"properties": {"at": {"type": "string"}}}), Match::No),
            (
                json!({"properties": {"other": {"const": 1}}}),
                Match::Unknown,
            ),
            (
                json!({"properties": {"other": {"const": 1}, "org": {"maxLength": 3}}}),
                Match::No,
            ),
            (json!({"required": ["other"]}), Match::Unknown),
            (
                json!({"properties": {"cut": {"maxLength": 3}}}),
                Match::Unknown,
            ),
            (
                json!({"properties": {"masked": {"const": "a"}}}),
                Match::Unknown,
            ),
            (
                json!({"properties": {"list": {"maxItems": 0}}}),
                Match::Unknown,
            ),
            (json!({"additionalProperties": false}), Match::Unknown),
            (
                json!({"not": {"properties": {"org": {"const": "acme"}}}}),
                Match::No,
            ),
            (
                json!({"anyOf": [{"properties": {"org": {"const": "acme"}}}, {"required": ["z"]}]}),
                Match::Yes,
            ),
            (
                json!({"anyOf": [{"properties": {"org": {"const": "b"}}}, {"required": ["z"]}]}),
                Match::Unknown,
            ),
            (
                json!({"allOf": [{"required": ["z"]}, {"properties": {"org": {"const": "b"}}}]}),
                Match::No,
            ),
            (json!({"oneOf": [{"required": ["org"]}]}), Match::Unknown),
            (
                json!({"if": {"properties": {"org": {"const": "acme"}}}, "then": false}),
                Match::No,
            ),
            (
                json!({"if": {"required": ["z"]}, "then": false, "else": false}),
                Match::No,
            ),
            (
                json!({"properties": {"org": {"$ref": "#/$defs/x"}}, "$defs": {"x": false}}),
                Match::Unknown,
            ),
            (json!("not a schema"), Match::Unknown),
        ] {
            assert_eq!(args.matches(&schema), expected, "{schema}");
        }
        let mut deep = json!({"properties": {"org": {"const": "b"}}});
        for _ in 0..1000 {
            deep = json!({"allOf": [deep]});
        }
        assert_eq!(args.matches(&deep), Match::Unknown);
        assert_eq!(
            KeptArgs::new(None).matches(&json!({"required": ["org"]})),
            Match::Unknown
        );
    }
}

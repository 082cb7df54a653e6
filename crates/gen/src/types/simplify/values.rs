//! Single values: strings, numbers, and lists of names.

use std::collections::BTreeSet;

use serde_json::{Map, Number, Value, json};

use super::Simplifier;
use crate::types::names;
use crate::types::outline::Shape;

/// Maximum number of references that are followed in the search for null.
const MAX_HOPS: usize = 32;
/// Keywords that constrain a value without `type`.
const CONSTRAINTS: [&str; 9] = [
    "properties",
    "additionalProperties",
    "patternProperties",
    "required",
    "items",
    "prefixItems",
    "not",
    "if",
    "unevaluatedProperties",
];

impl Simplifier<'_> {
    /// The type of a place that lists its values; `None` for other places.
    pub(super) fn values(
        &mut self,
        members: &Map<String, Value>,
        at: &str,
        name: &str,
    ) -> Option<Shape> {
        let listed: Vec<&Value> = match (members.get("const"), members.get("enum")) {
            (Some(value), _) => vec![value],
            (None, Some(Value::Array(values))) => values.iter().collect(),
            _ => return None,
        };
        // The schema of the objects, if there is one, is more exact than a list of them.
        if listed
            .iter()
            .all(|value| value.is_object() || value.is_array())
        {
            return None;
        }
        let allowed = |value: &Value| match members.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| is_of(value, kind)),
            Some(kind) => is_of(value, kind),
            None => true,
        };
        let null = listed.iter().any(|value| value.is_null() && allowed(value));
        let others: Vec<&Value> = listed
            .into_iter()
            .filter(|value| !value.is_null() && allowed(value))
            .collect();
        let all =
            |is: fn(&Value) -> bool| !others.is_empty() && others.iter().all(|value| is(value));
        let shape = if all(Value::is_string) {
            let texts: Vec<&str> = others.iter().filter_map(|value| value.as_str()).collect();
            self.names(&texts, at, name)
        } else if all(Value::is_boolean) {
            Shape::typed(simple("boolean"))
        } else if all(|value| value.is_i64()) {
            Shape::typed(integer(&Map::new()))
        } else if all(Value::is_number) {
            Shape::typed(number())
        } else {
            self.any(at, "values of several types")
        };
        Some(shape.or_null(null))
    }

    /// An enum, if the texts can be distinct names in Rust; else a string.
    fn names(&mut self, texts: &[&str], at: &str, name: &str) -> Shape {
        let folded: BTreeSet<String> = texts.iter().map(|text| names::folded(text)).collect();
        let distinct: BTreeSet<&&str> = texts.iter().collect();
        let named = folded.len() == distinct.len()
            && !folded.contains("")
            && texts
                .iter()
                .all(|text| text.is_ascii() && text.len() <= 120);
        if self.plain {
            return Shape::typed(simple("string"));
        }
        if !named {
            self.note(at, "values that make no distinct names");
            return Shape::typed(simple("string"));
        }
        let name = self.name(at, name);
        let schema = json!({ "type": "string", "enum": distinct });
        self.definitions.insert(name.clone(), schema);
        Shape::named(&name)
    }
}

pub(super) fn simple(kind: &str) -> Value {
    json!({ "type": kind })
}

/// Any number, as it is written.
pub(super) fn number() -> Value {
    simple("number")
}

/// An integer of 64 bits, or any number if its bounds are wider.
pub(super) fn integer(members: &Map<String, Value>) -> Value {
    let bound = |key: &str| members.get(key).and_then(Value::as_number);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum"));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum"));
    if least.is_some_and(|bound| !fits(bound)) || most.is_some_and(|bound| !fits(bound)) {
        return number();
    }
    let unsigned = bound("minimum").is_some_and(|least| least.as_f64() >= Some(0.0))
        || bound("exclusiveMinimum").is_some_and(|least| least.as_f64() >= Some(-1.0));
    let large = most.is_some_and(|most| most.as_i64().is_none() && most.as_u64().is_some());
    match (unsigned, large) {
        (true, _) => json!({ "type": "integer", "format": "uint64", "minimum": 0 }),
        // Negative values and values above the largest signed integer: no type of 64 bits fits.
        (false, true) => number(),
        (false, false) => json!({ "type": "integer", "format": "int64" }),
    }
}

/// Whether 64 bits can represent a bound.
fn fits(bound: &Number) -> bool {
    bound.as_i64().is_some()
        || bound.as_u64().is_some()
        || bound.as_f64().is_some_and(|bound| bound.abs() <= 9.2e18)
}

/// Whether a schema without `type` constrains its values.
pub(super) fn constrains(members: &Map<String, Value>) -> bool {
    CONSTRAINTS.iter().any(|key| members.contains_key(*key))
}

/// Whether null may be valid. Follows a bounded number of references, and returns true beyond it.
pub(super) fn takes_null(schema: &Value, root: &Value, hops: usize) -> bool {
    let Value::Object(members) = schema else {
        return schema != &Value::Bool(false);
    };
    if hops > MAX_HOPS {
        return true;
    }
    let next = |schema: &Value| takes_null(schema, root, hops + 1);
    if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
        let target = reference.strip_prefix('#').and_then(super::decoded);
        return target
            .and_then(|pointer| root.pointer(&pointer))
            .is_none_or(next);
    }
    if let Some(kind) = members.get("type") {
        return is_of(&Value::Null, kind)
            || kind
                .as_array()
                .is_some_and(|kinds| kinds.iter().any(|kind| kind == "null"));
    }
    if let Some(value) = members.get("const") {
        return value.is_null();
    }
    if let Some(Value::Array(values)) = members.get("enum") {
        return values.contains(&Value::Null);
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(list)) = members.get(keyword) {
            return list.iter().any(next);
        }
    }
    true
}

fn is_of(value: &Value, kind: &Value) -> bool {
    match kind.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("string") => value.is_string(),
        Some("integer") => value.as_f64().is_some_and(|n| n.fract() == 0.0),
        Some("number") => value.is_number(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => false,
    }
}

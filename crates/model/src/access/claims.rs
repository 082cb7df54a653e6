//! `{"$claim": NAME}` in the schema of a rule: a value of the caller's token, in `const` or `enum`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::json::child_pointer;

const CLAIM: &str = "$claim";

/// A `$claim` that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ClaimError {
    /// The JSON pointer of the object in the schema.
    pub pointer: String,
    /// Why, in one sentence without a period.
    pub reason: &'static str,
}

/// Checks that each `$claim` of a schema is the whole value of `const`, of `enum` or of an item of `enum`, and has the
/// name of a claim.
pub fn check_claims(schema: &Value) -> Result<(), ClaimError> {
    check(schema, "", Place::Schema)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Schema,
    Const,
    Enum,
}

fn check(value: &Value, pointer: &str, place: Place) -> Result<(), ClaimError> {
    let refused = |reason| {
        Err(ClaimError {
            pointer: pointer.to_owned(),
            reason,
        })
    };
    match value {
        Value::Object(members) if members.contains_key(CLAIM) => match (place, name(members)) {
            (Place::Schema, _) => refused("`$claim` is allowed only in `const` and `enum`"),
            (_, None) => {
                refused("an object with `$claim` has the name of a claim and no other member")
            }
            (_, Some(_)) => Ok(()),
        },
        Value::Object(members) => members.iter().try_for_each(|(key, value)| {
            let place = match (place, key.as_str()) {
                (Place::Schema, "const") => Place::Const,
                (Place::Schema, "enum") => Place::Enum,
                _ => Place::Schema,
            };
            check(value, &child_pointer(pointer, key), place)
        }),
        Value::Array(items) => items.iter().enumerate().try_for_each(|(at, item)| {
            let place = match place {
                Place::Enum => Place::Const,
                _ => Place::Schema,
            };
            check(item, &format!("{pointer}/{at}"), place)
        }),
        _ => Ok(()),
    }
}

fn name(members: &Map<String, Value>) -> Option<&str> {
    let name = members.get(CLAIM)?.as_str()?;
    (members.len() == 1 && !name.is_empty()).then_some(name)
}

/// The names of the claims that a schema reads.
pub fn claim_names(schema: &Value) -> Vec<&str> {
    let mut names = Vec::new();
    let mut waiting = vec![schema];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Object(members) => match name(members) {
                Some(name) => names.push(name),
                None => waiting.extend(members.values()),
            },
            Value::Array(items) => waiting.extend(items),
            _ => {}
        }
    }
    names
}

/// The schema with the values of the claims. `None` if a claim is missing or has a form that its place cannot have: the
/// rule does not apply to the caller.
pub fn fill_claims(schema: &Value, claims: &BTreeMap<String, Value>) -> Option<Value> {
    Some(match schema {
        Value::Object(members) => match name(members) {
            // `const`, or an item of `enum`.
            Some(name) => claims.get(name)?.clone(),
            None => {
                let filled = members
                    .iter()
                    .map(|(key, value)| Some((key.clone(), fill_member(key, value, claims)?)));
                Value::Object(filled.collect::<Option<_>>()?)
            }
        },
        Value::Array(items) => {
            let filled = items.iter().map(|item| fill_claims(item, claims));
            Value::Array(filled.collect::<Option<_>>()?)
        }
        other => other.clone(),
    })
}

/// A claim in place of a whole `enum` is a list, or one value.
fn fill_member(key: &str, value: &Value, claims: &BTreeMap<String, Value>) -> Option<Value> {
    let filled = fill_claims(value, claims)?;
    let is_claim = value.as_object().is_some_and(|it| name(it).is_some());
    if key != "enum" || !is_claim {
        return Some(filled);
    }
    match filled {
        Value::Array(items) if items.is_empty() => None,
        Value::Array(items) => Some(Value::Array(items)),
        one => Some(Value::Array(vec![one])),
    }
}

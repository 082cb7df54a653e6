//! Objects: those with members become structs that keep unknown members, all others maps.

use std::collections::{BTreeMap, BTreeSet};

use broker_model::json::child_pointer;
use serde_json::{Map, Value, json};

use super::Simplifier;
use crate::types::names;
use crate::types::outline::Shape;

/// typify's name of the field with undeclared members of an open object.
pub(in crate::types) const EXTRA: &str = "extra";

/// An object with unknown members.
pub(super) fn open_map() -> Value {
    json!({ "type": "object" })
}

impl Simplifier<'_> {
    pub(super) fn object(&mut self, members: &Map<String, Value>, at: &str, name: &str) -> Shape {
        let empty = Map::new();
        let properties = match members.get("properties") {
            Some(Value::Object(properties)) => properties,
            _ => &empty,
        };
        for keyword in ["anyOf", "oneOf", "allOf"] {
            let parts = members.get(keyword).and_then(Value::as_array);
            if parts.is_some_and(|parts| parts.iter().any(declares)) {
                self.note(
                    &child_pointer(at, keyword),
                    "members declared by alternatives or parts",
                );
            }
        }
        let required: BTreeSet<&str> = members
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let has_patterns = members
            .get("patternProperties")
            .is_some_and(|v| v != &json!({}));
        let others = match members.get("additionalProperties") {
            Some(Value::Bool(false)) if !has_patterns => None,
            Some(schema @ Value::Object(_)) if !has_patterns && schema != &json!({}) => {
                let place = child_pointer(at, "additionalProperties");
                Some(self.place(&place, &names::below(name, "value")))
            }
            _ => Some(Shape::Any),
        };
        let undeclared = required.iter().any(|key| !properties.contains_key(*key));
        if let Some(others) = &others
            && properties.is_empty()
            && !undeclared
        {
            return Shape::typed(match others {
                Shape::Any => open_map(),
                typed => {
                    json!({ "type": "object", "additionalProperties": typed.clone().into_schema() })
                }
            });
        }
        self.members(properties, &required, others, at, name)
    }

    fn members(
        &mut self,
        properties: &Map<String, Value>,
        required: &BTreeSet<&str>,
        others: Option<Shape>,
        at: &str,
        name: &str,
    ) -> Shape {
        let name = self.name(at, name);
        let undeclared = others.is_some();
        let all: BTreeSet<&str> = properties
            .keys()
            .map(String::as_str)
            .chain(required.iter().copied().filter(|_| undeclared))
            .collect();
        let keys = keys(&all);
        let mut fields = Map::new();
        for member in &all {
            let key = &keys[member];
            let shape = if properties.contains_key(*member) {
                let place = child_pointer(&child_pointer(at, "properties"), member);
                self.place(&place, &names::below(&name, key))
            } else {
                Shape::Any
            };
            if !required.contains(member) && shape.takes_null() {
                let field = (name.clone(), key.clone());
                self.outline.absent_or_null.insert(field);
            }
            if key != member {
                let field = (name.clone(), key.clone());
                self.outline.renamed.insert(field, (*member).to_owned());
            }
            // An `Option` expresses absence; null in it needs a second one only then.
            let schema = match shape {
                Shape::Typed {
                    schema,
                    nullable: true,
                } if !required.contains(member) => schema,
                shape => shape.into_schema(),
            };
            fields.insert(key.clone(), schema);
        }
        let needed: Vec<&String> = all
            .iter()
            .filter(|member| required.contains(*member))
            .map(|member| &keys[member])
            .collect();
        let schema = json!({
            "type": "object",
            "properties": fields,
            "required": needed,
            "additionalProperties": others.map_or(Value::Bool(false), Shape::into_schema),
        });
        self.definitions.insert(name.clone(), schema);
        Shape::named(&name)
    }
}

/// The name of each member in the copy: its own name if that is a unique field name, else a cleaned form
/// with a digest. Members that differ only in punctuation or case all get a digest.
fn keys<'s>(members: &BTreeSet<&'s str>) -> BTreeMap<&'s str, String> {
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for member in members {
        *count.entry(names::folded(member)).or_default() += 1;
    }
    members
        .iter()
        .map(|member| {
            let folded = names::folded(member);
            let plain = names::is_plain(member) && count[&folded] == 1 && folded != EXTRA;
            let key = if plain {
                (*member).to_owned()
            } else {
                let left: String = names::snake(member).chars().take(40).collect();
                let lead = if left.starts_with(|c: char| c.is_ascii_alphabetic()) {
                    ""
                } else {
                    "member_"
                };
                format!("{lead}{left}_{}", names::digest("member", member)).replace("__", "_")
            };
            (*member, key)
        })
        .collect()
}

fn declares(part: &Value) -> bool {
    part.get("properties").is_some() || part.get("$ref").is_some()
}

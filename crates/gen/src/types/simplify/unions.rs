//! Alternatives. Each keeps its input unchanged, so any of several matching ones can be taken; one of them must match
//! every valid value.

use serde_json::{Map, Value, json};

use super::Simplifier;
use super::values::{number, simple};
use crate::types::names;
use crate::types::outline::Shape;

/// Maximum number of alternatives that are examined.
const MAX_LISTED: usize = 1000;
/// Maximum number of alternatives of an enum.
const MAX_ALTERNATIVES: usize = 64;

impl Simplifier<'_> {
    /// `anyOf` and `oneOf`: for a type they are equivalent.
    pub(super) fn alternatives(&mut self, places: &[String], at: &str, name: &str) -> Shape {
        let mut null = false;
        let mut shapes = Vec::new();
        let real: Vec<&String> = places
            .iter()
            .filter(|place| {
                let is_null = self.root.pointer(place).is_some_and(is_null);
                null |= is_null;
                !is_null
            })
            .collect();
        if real.len() > MAX_LISTED {
            return self.any(at, "too many alternatives");
        }
        for (index, place) in real.iter().enumerate() {
            let own = if real.len() == 1 {
                name.to_owned()
            } else {
                names::below(name, &format!("alternative {}", index + 1))
            };
            shapes.push(self.place(place, &own));
        }
        self.union(shapes, at, name).or_null(null)
    }

    /// `"type": ["string", "object"]`: one alternative a type, under the same keywords.
    pub(super) fn several(
        &mut self,
        members: &Map<String, Value>,
        kinds: &[Value],
        at: &str,
        name: &str,
    ) -> Shape {
        let null = kinds.iter().any(|kind| kind == "null");
        let others: Vec<&str> = kinds
            .iter()
            .filter_map(Value::as_str)
            .filter(|kind| *kind != "null")
            .collect();
        let shapes = others
            .iter()
            .map(|kind| match (*kind, others.len()) {
                (_, 1) => self.typed(members, kind, at, name),
                // The name of the place belongs to the union; its object part has no name.
                ("object", _) if members.contains_key("properties") => {
                    self.any(at, "an object among other types")
                }
                _ => self.typed(members, kind, at, name),
            })
            .collect();
        self.union(shapes, at, name).or_null(null)
    }

    fn union(&mut self, shapes: Vec<Shape>, at: &str, name: &str) -> Shape {
        let mut null = false;
        let mut schemas: Vec<Value> = Vec::new();
        for shape in shapes {
            match shape {
                Shape::Any => return self.any(at, "an alternative accepts any value"),
                Shape::Typed { schema, nullable } => {
                    null |= nullable;
                    if !schemas.contains(&schema) {
                        schemas.push(schema);
                    }
                }
            }
        }
        self.absorb(&mut schemas);
        match schemas.len() {
            0 => Shape::Any,
            1 => Shape::typed(schemas.remove(0)).or_null(null),
            _ if self.plain => Shape::Any,
            2..=MAX_ALTERNATIVES => {
                self.specific_first(&mut schemas);
                let name = self.name(at, name);
                self.definitions
                    .insert(name.clone(), json!({ "oneOf": schemas }));
                Shape::named(&name).or_null(null)
            }
            _ => self.any(at, "too many alternatives"),
        }
    }

    /// A number takes every integer, and a string every name.
    fn absorb(&self, schemas: &mut Vec<Value>) {
        let has_number = schemas.contains(&number());
        let has_string = schemas.contains(&simple("string"));
        let integers: Vec<Value> = schemas
            .iter()
            .filter(|schema| schema["type"] == "integer")
            .cloned()
            .collect();
        if has_number {
            schemas.retain(|schema| schema["type"] != "integer");
        } else if integers.len() > 1 {
            let at = schemas
                .iter()
                .position(|schema| schema["type"] == "integer");
            schemas.retain(|schema| schema["type"] != "integer");
            schemas.insert(at.unwrap_or(0).min(schemas.len()), number());
        }
        if has_string {
            schemas.retain(|schema| {
                self.definition(schema)
                    .is_none_or(|definition| definition["type"] != "string")
            });
        }
    }

    /// The first alternative that fits is taken: those that ask for more come first.
    fn specific_first(&self, schemas: &mut [Value]) {
        schemas.sort_by_key(|schema| {
            let definition = self.definition(schema).unwrap_or(schema);
            let required = definition["required"].as_array().map_or(0, Vec::len);
            std::cmp::Reverse(required)
        });
    }

    fn definition(&self, schema: &Value) -> Option<&Value> {
        let name = schema["$ref"].as_str()?.strip_prefix("#/definitions/")?;
        self.definitions.get(name)
    }
}

fn is_null(schema: &Value) -> bool {
    schema["type"] == "null" || schema.get("const") == Some(&Value::Null)
}

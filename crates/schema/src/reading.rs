//! The form of a schema that the validator, the comparison and the type generator read.
//!
//! It differs from the text of the server where the text has one meaning that they do not know: references by URI,
//! patterns of ECMA-262, and keywords of draft 4 and OpenAPI 3.0 in a schema without `$schema`. The server's text is
//! what callers see and what digests cover. The bounds of `inspect` hold for both forms.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use broker_model::diagnostic::Diagnostic;
use broker_model::json::{child_pointer, escape_token, exact_number, string_text, string_value};

use super::ecma;
use super::graph::Graph;
use super::moves::Moves;

/// A place of a schema that is not read as its dialect says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The pointer into the schema.
    pub pointer: String,
    /// The form that was found and its meaning, without text of the schema.
    pub text: &'static str,
}

/// A schema in the form that is read.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) schema: Value,
    pub(super) moves: Moves,
    pub(super) notes: Vec<Note>,
}

/// The places of a schema that are not read as its dialect says; empty if its bounds are not known to hold.
pub fn notes(schema: &Value) -> Vec<Note> {
    let graph = Graph::with_open_references(schema);
    graph.map_or_else(|_| Vec::new(), |graph| Reading::new(schema, &graph).notes)
}

/// The form of a schema that is read, for uses other than validation. A schema that [`inspect`](crate::inspect) refuses
/// is returned as it is.
pub fn readable(schema: &Value) -> Cow<'_, Value> {
    match Reading::checked(schema) {
        Ok(reading) if reading.schema != *schema => Cow::Owned(reading.schema),
        _ => Cow::Borrowed(schema),
    }
}

impl Reading {
    /// The reading of a schema, all of whose references have a target.
    pub(super) fn checked(schema: &Value) -> Result<Self, Box<Diagnostic>> {
        Ok(Self::new(schema, &Graph::new(schema)?))
    }

    /// The reading of a schema with these subschemas.
    pub(super) fn new(schema: &Value, graph: &Graph) -> Self {
        let mut reading = Self {
            schema: schema.clone(),
            moves: Moves::default(),
            notes: Vec::new(),
        };
        let has_dialect = schema.get("$schema").is_some();
        // Parts come before the subschemas that contain them, so that their old pointers are still valid.
        let mut order: Vec<&str> = graph.nodes.iter().map(|node| &*node.pointer).collect();
        order.sort_by_key(|pointer| std::cmp::Reverse(pointer.len()));
        for pointer in order {
            let Some(Value::Object(keywords)) = reading.schema.pointer_mut(pointer) else {
                continue;
            };
            let mut level = LevelReader {
                pointer,
                keywords,
                moves: &mut reading.moves,
                notes: &mut reading.notes,
                // A target that depends on the evaluation cannot be moved.
                may_move: !graph.has_dynamic_references,
            };
            if !has_dialect {
                level.old_forms();
            }
            level.patterns();
        }
        if !graph.has_dynamic_references && (graph.has_names() || !reading.moves.is_empty()) {
            reading.moves.point_references(graph, &mut reading.schema);
        }
        reading.moves.seal();
        reading.notes.sort_by(|a, b| a.pointer.cmp(&b.pointer));
        reading
    }
}

/// Whether a value is a number of JSON, of any size.
fn is_number(value: &Value) -> bool {
    value.is_number() || exact_number(value).is_some()
}

/// Reads one subschema.
struct LevelReader<'r> {
    pointer: &'r str,
    keywords: &'r mut Map<String, Value>,
    moves: &'r mut Moves,
    notes: &'r mut Vec<Note>,
    may_move: bool,
}

impl LevelReader<'_> {
    fn note(&mut self, keyword: &str, text: &'static str) {
        self.notes.push(Note {
            pointer: child_pointer(self.pointer, keyword),
            text,
        });
    }

    /// Forms of draft 4 and OpenAPI 3.0 that are invalid or without effect in draft 2020-12.
    fn old_forms(&mut self) {
        for (flag, limit) in [
            ("exclusiveMinimum", "minimum"),
            ("exclusiveMaximum", "maximum"),
        ] {
            match self.keywords.get(flag) {
                Some(Value::Bool(false)) => {
                    self.keywords.remove(flag);
                    self.note(flag, "`false` of draft 4: the limit itself is allowed");
                }
                Some(Value::Bool(true)) if self.keywords.get(limit).is_some_and(is_number) => {
                    if let Some(value) = self.keywords.remove(limit) {
                        self.keywords.insert(flag.to_owned(), value);
                    }
                    self.note(flag, "`true` of draft 4: the limit itself is not allowed");
                }
                // Without a limit the flag has no meaning: the schema is invalid.
                _ => {}
            }
        }
        if self.keywords.get("nullable") == Some(&Value::Bool(true)) {
            let types = match self.keywords.get("type") {
                Some(Value::String(one)) if one != "null" => Some(json!([one, "null"])),
                Some(Value::Array(many)) if !many.contains(&json!("null")) => {
                    let all = many.iter().cloned().chain([json!("null")]);
                    Some(all.collect())
                }
                _ => None,
            };
            if let Some(types) = types {
                self.keywords.insert("type".to_owned(), types);
                self.note(
                    "nullable",
                    "`true` of OpenAPI 3.0: the type `null` is allowed",
                );
            }
        }
        let is_tuple = self.keywords.get("items").is_some_and(Value::is_array);
        if is_tuple && self.may_move && !self.keywords.contains_key("prefixItems") {
            self.moves
                .rename(self.pointer, self.keywords, "items", "prefixItems");
            self.moves
                .rename(self.pointer, self.keywords, "additionalItems", "items");
            self.note("items", "a list of draft 4: the schemas of the first items");
        }
    }

    fn patterns(&mut self) {
        const NOTE: &str = "a pattern that ECMA-262 allows only without the flag `u`";
        if let Some(pattern) = self.keywords.get("pattern").and_then(string_text)
            && let Some(read) = ecma::read(pattern)
        {
            let text = string_value(&read.text);
            self.keywords.insert("pattern".to_owned(), text);
            if read.is_legacy {
                self.note("pattern", NOTE);
            }
        }
        if !self.may_move {
            return;
        }
        let Some(Value::Object(patterns)) = self.keywords.get_mut("patternProperties") else {
            return;
        };
        let changed: Vec<_> = patterns
            .keys()
            .filter_map(|name| Some((name.clone(), ecma::read(name)?)))
            .filter(|(name, read)| *name != read.text || read.is_legacy)
            .collect();
        let at = child_pointer(self.pointer, "patternProperties");
        let mut is_legacy = false;
        for (name, read) in changed {
            is_legacy |= read.is_legacy;
            if name == read.text {
                continue;
            }
            // Two patterns may have one reading; each keeps its schema.
            let mut text = read.text;
            while patterns.contains_key(&text) {
                text = format!("(?:{text})");
            }
            if let Some(schema) = patterns.remove(&name) {
                let place = escape_token(&text);
                patterns.insert(text, schema);
                self.moves.add(child_pointer(&at, &name), place);
            }
        }
        if is_legacy {
            self.note("patternProperties", NOTE);
        }
    }
}

#[cfg(all(test, feature = "validate"))]
mod tests;

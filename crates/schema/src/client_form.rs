//! The form of a schema in lists of tools that the official clients read as a whole.
//!
//! The TypeScript clients check a list with zod and compile each `outputSchema` with Ajv when they read the list, so one
//! schema that they do not accept hides every tool. A form here accepts exactly the values of the server's schema that
//! can occur: arguments are always an object. Where no such form exists, the caller leaves out the tool or the schema.
//!
//! | what a client requires of the root | form |
//! |---|---|
//! | `type` is `"object"` (MCP 2025-11-25, `Tool`) | added to a schema of arguments, and to one of results that accepts only objects; of a list of types, the others are left out in the same way |
//! | each of `properties` is an object | `{}` for `true`, `{"not":{}}` for `false` |
//! | `required` is a list of texts, `$schema` a text | none |
//!
//! What Ajv requires of a schema of results is in [`ajv`].

mod ajv;

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::graph::Graph;

/// The reason why a schema has no form for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unlistable(pub(crate) &'static str);

impl Unlistable {
    /// The reason, as a sentence without its full stop. It has no text of the server.
    pub const fn reason(self) -> &'static str {
        self.0
    }
}

/// The form of a schema of arguments.
///
/// # Errors
///
/// The reason why clients cannot read any form of it.
pub fn arguments_form(schema: &Value) -> Result<Cow<'_, Value>, Unlistable> {
    let members = match schema {
        Value::Object(members) => members,
        Value::Bool(true) => return Ok(Cow::Owned(json!({"type": "object"}))),
        Value::Bool(false) => return Ok(Cow::Owned(json!({"type": "object", "not": {}}))),
        _ => return Err(Unlistable("the schema of its arguments is not an object")),
    };
    let needs_type = match members.get("type") {
        None => true,
        Some(Value::String(one)) if one == "object" => false,
        Some(Value::Array(many)) if many.contains(&json!("object")) => true,
        Some(_) => return Err(Unlistable("the schema of its arguments accepts no object")),
    };
    root_form(schema, members, needs_type)
}

/// The form of a schema of results.
///
/// # Errors
///
/// The reason why clients cannot read any form of it, or cannot compile it.
pub fn results_form(schema: &Value) -> Result<Cow<'_, Value>, Unlistable> {
    let Value::Object(members) = schema else {
        return Err(Unlistable("it is not an object"));
    };
    let graph = Graph::new(schema).map_err(|_| {
        Unlistable("it has a reference to another document or to nothing, or is over a bound")
    })?;
    let needs_type = match members.get("type") {
        Some(Value::String(one)) if one == "object" => false,
        _ if ObjectsOnly::check(schema, &graph) => true,
        _ => return Err(Unlistable("it accepts values other than objects")),
    };
    ajv::check(schema, &graph)?;
    root_form(schema, members, needs_type)
}

/// The root as zod requires it.
fn root_form<'s>(
    schema: &'s Value,
    members: &Map<String, Value>,
    needs_type: bool,
) -> Result<Cow<'s, Value>, Unlistable> {
    if members
        .get("$schema")
        .is_some_and(|dialect| !dialect.is_string())
    {
        return Err(Unlistable("`$schema` at its root is not a text"));
    }
    let is_text_list = |value: &Value| {
        let names = value.as_array();
        names.is_some_and(|names| names.iter().all(Value::is_string))
    };
    if members
        .get("required")
        .is_some_and(|names| !is_text_list(names))
    {
        return Err(Unlistable("`required` at its root is not a list of texts"));
    }
    let properties = match members.get("properties") {
        None => None,
        Some(Value::Object(properties)) => Some(properties),
        Some(_) => return Err(Unlistable("`properties` at its root is not an object")),
    };
    let mut has_booleans = false;
    for property in properties.into_iter().flat_map(Map::values) {
        match property {
            Value::Bool(_) => has_booleans = true,
            Value::Object(_) => {}
            _ => {
                return Err(Unlistable(
                    "one of `properties` at its root is not a schema",
                ));
            }
        }
    }
    if !needs_type && !has_booleans {
        return Ok(Cow::Borrowed(schema));
    }
    let mut form = members.clone();
    if needs_type {
        form.insert("type".to_owned(), json!("object"));
    }
    if let Some(Value::Object(properties)) = form.get_mut("properties") {
        for property in properties.values_mut() {
            match property {
                Value::Bool(true) => *property = json!({}),
                Value::Bool(false) => *property = json!({"not": {}}),
                _ => {}
            }
        }
    }
    Ok(Cow::Owned(Value::Object(form)))
}

/// Decides by the text of a schema whether it accepts only objects.
struct ObjectsOnly<'s> {
    schema: &'s Value,
    graph: &'s Graph,
    /// The decisions that were made. Subschemas on one value have no cycle.
    known: Vec<Option<bool>>,
}

impl<'s> ObjectsOnly<'s> {
    fn check(schema: &'s Value, graph: &'s Graph) -> bool {
        let known = vec![None; graph.nodes.len()];
        Self {
            schema,
            graph,
            known,
        }
        .at(0)
    }

    fn at(&mut self, node: usize) -> bool {
        if let Some(known) = self.known[node] {
            return known;
        }
        let decided = self.decide(node);
        self.known[node] = Some(decided);
        decided
    }

    fn decide(&mut self, node: usize) -> bool {
        let graph = self.graph;
        let pointer = &graph.nodes[node].pointer;
        let Some(Value::Object(keywords)) = self.schema.pointer(pointer) else {
            return false;
        };
        let mut targets = graph.nodes[node].references.iter();
        let targets = targets.by_ref().filter(|one| one.keyword == "$ref");
        let targets: Vec<usize> = targets.filter_map(|one| one.node).collect();
        if targets.into_iter().any(|target| self.at(target)) {
            return true;
        }
        if keywords.contains_key("$ref") && graph.ref_stands_alone() {
            return false;
        }
        let only_objects = |values: &Vec<Value>| values.iter().all(Value::is_object);
        let by_value = match (keywords.get("type"), keywords.get("enum")) {
            (Some(Value::String(one)), _) => one == "object",
            (Some(Value::Array(many)), _) => {
                many.iter().all(|one| one == "object") && !many.is_empty()
            }
            (_, Some(Value::Array(values))) => only_objects(values),
            _ => keywords.get("const").is_some_and(Value::is_object),
        };
        by_value
            || self
                .alternatives(pointer, keywords, "allOf")
                .any_of(self, true)
            || self
                .alternatives(pointer, keywords, "anyOf")
                .any_of(self, false)
            || self
                .alternatives(pointer, keywords, "oneOf")
                .any_of(self, false)
    }

    fn alternatives(
        &self,
        pointer: &str,
        keywords: &Map<String, Value>,
        keyword: &str,
    ) -> Alternatives {
        let count = keywords
            .get(keyword)
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        let nodes = (0..count).map(|at| self.graph.at(&format!("{pointer}/{keyword}/{at}")));
        Alternatives(nodes.collect())
    }
}

/// The subschemas of `allOf`, `anyOf` or `oneOf`; `None` for one that is not a schema.
struct Alternatives(Vec<Option<usize>>);

impl Alternatives {
    /// Whether one of them accepts only objects, or all if `one_is_enough` is false.
    fn any_of(self, decisions: &mut ObjectsOnly<'_>, one_is_enough: bool) -> bool {
        let mut decide = |node: &Option<usize>| node.is_some_and(|node| decisions.at(node));
        match one_is_enough {
            true => self.0.iter().any(decide),
            false => !self.0.is_empty() && self.0.iter().all(&mut decide),
        }
    }
}

#[cfg(test)]
mod tests;

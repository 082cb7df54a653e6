//! Inspects a schema before it is locked: size, depth, references, dialect.
//!
//! A validator has no budget, so a small schema can take it minutes or overflow its stack. The checks here are
//! linear in the schema's size and run before anything compiles it.

use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::percent_decode_str;
use serde_json::Value;

use broker_model::codes::DiagnosticCode;
use broker_model::diagnostic::Diagnostic;
use broker_model::json::child_pointer;

/// Maximum bytes of one schema, as compact JSON.
pub const MAX_SCHEMA_BYTES: usize = 256 << 10;
/// Maximum nesting of subschemas.
pub const MAX_DEPTH: usize = 64;
/// Maximum number of subschemas of one schema.
pub const MAX_SUBSCHEMAS: usize = 10_000;
/// Maximum number of subschemas that apply to one value when every reference is followed.
pub const MAX_EXPANDED: u64 = 10_000;

/// Keywords whose value is a schema, with whether it is applied to the same value.
const ONE: [(&str, bool); 14] = [
    ("not", true),
    ("if", true),
    ("then", true),
    ("else", true),
    ("additionalProperties", false),
    ("additionalItems", false),
    ("items", false),
    ("contains", false),
    ("propertyNames", false),
    ("unevaluatedItems", false),
    ("unevaluatedProperties", false),
    ("contentSchema", false),
    ("extends", true),
    ("disallow", true),
];
/// Keywords whose value is a list of schemas.
const LIST: [(&str, bool); 5] = [
    ("allOf", true),
    ("anyOf", true),
    ("oneOf", true),
    ("prefixItems", false),
    ("items", false),
];
/// Keywords whose value maps names to schemas. Definitions are applied only where referred to.
const MAP: [(&str, bool); 6] = [
    ("properties", false),
    ("patternProperties", false),
    ("dependentSchemas", true),
    ("dependencies", true),
    ("$defs", false),
    ("definitions", false),
];
const DIALECTS: [&str; 5] = [
    "json-schema.org/draft-04/schema",
    "json-schema.org/draft-06/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft/2020-12/schema",
];

/// Refuses a schema that is too large, too deep, refers to another document, or fans out too far.
/// The diagnostic's pointer is into the schema.
pub fn inspect(schema: &Value) -> Result<(), Box<Diagnostic>> {
    let refuse = |code, pointer: &str, message: String| {
        Err(Box::new(Diagnostic::error(code, message).at(pointer)))
    };
    let bytes = schema.to_string().len();
    if bytes > MAX_SCHEMA_BYTES {
        return refuse(
            DiagnosticCode::SchemaLimit,
            "",
            format!("the schema has {bytes} bytes, at most {MAX_SCHEMA_BYTES} are taken"),
        );
    }
    if let Some(dialect) = schema.get("$schema") {
        let known = dialect.as_str().is_some_and(|uri| {
            let uri = uri.trim_end_matches('#');
            DIALECTS.iter().any(|known| {
                uri.strip_prefix("http://")
                    .or_else(|| uri.strip_prefix("https://"))
                    == Some(known)
            })
        });
        if !known {
            return refuse(
                DiagnosticCode::SchemaDialect,
                "/$schema",
                format!("the dialect {dialect} is not known"),
            );
        }
    }
    Graph::of(schema)?.refuse_fan_out()
}

/// Subschemas and their edges. A pointer identifies a subschema.
#[derive(Default)]
pub(super) struct Graph {
    index: BTreeMap<String, usize>,
    pub(super) nodes: Vec<Subschema>,
    anchors: BTreeMap<String, usize>,
    has_inner_ids: bool,
}

#[derive(Default)]
pub(super) struct Subschema {
    pub(super) pointer: String,
    reference: Option<String>,
    /// Applied to the same value: a cycle through these alone never ends.
    pub(super) in_place: Vec<usize>,
    /// Applied to parts of the value.
    pub(super) to_parts: Vec<usize>,
}

impl Graph {
    /// The subschemas of a schema that has no cycle among those that apply to one value.
    pub(super) fn of(schema: &Value) -> Result<Self, Box<Diagnostic>> {
        let mut graph = Self::default();
        graph.collect(schema, String::new(), 0)?;
        graph.resolve(schema)?;
        graph.refuse_cycles()?;
        Ok(graph)
    }

    fn collect(
        &mut self,
        schema: &Value,
        pointer: String,
        depth: usize,
    ) -> Result<usize, Box<Diagnostic>> {
        if depth > MAX_DEPTH {
            return Err(Box::new(
                Diagnostic::error(
                    DiagnosticCode::SchemaLimit,
                    format!("subschemas are nested deeper than {MAX_DEPTH} levels"),
                )
                .at(pointer),
            ));
        }
        if self.nodes.len() >= MAX_SUBSCHEMAS {
            return Err(Box::new(
                Diagnostic::error(
                    DiagnosticCode::SchemaLimit,
                    format!("there are more than {MAX_SUBSCHEMAS} subschemas"),
                )
                .at(pointer),
            ));
        }
        let this = self.nodes.len();
        self.index.insert(pointer.clone(), this);
        self.nodes.push(Subschema {
            pointer: pointer.clone(),
            ..Subschema::default()
        });
        let Value::Object(members) = schema else {
            return Ok(this);
        };
        for key in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(Value::String(target)) = members.get(key) {
                self.nodes[this].reference = Some(target.clone());
            }
        }
        for key in ["$anchor", "$dynamicAnchor"] {
            if let Some(Value::String(name)) = members.get(key) {
                self.anchors.insert(format!("#{name}"), this);
            }
        }
        if let Some(id) = members
            .get("$id")
            .or_else(|| members.get("id"))
            .and_then(Value::as_str)
        {
            if id.starts_with('#') {
                self.anchors.insert(id.to_owned(), this);
            } else if depth > 0 {
                self.has_inner_ids = true;
            } else {
                self.anchors
                    .insert(id.trim_end_matches('#').to_owned(), this);
            }
        }
        for (keyword, in_place) in ONE {
            if let Some(child) = members
                .get(keyword)
                .filter(|child| child.is_object() || child.is_boolean())
            {
                self.child(
                    this,
                    child,
                    child_pointer(&pointer, keyword),
                    in_place,
                    depth,
                )?;
            }
        }
        for (keyword, in_place) in LIST {
            if let Some(Value::Array(children)) = members.get(keyword) {
                let pointer = child_pointer(&pointer, keyword);
                for (index, child) in children.iter().enumerate() {
                    self.child(this, child, format!("{pointer}/{index}"), in_place, depth)?;
                }
            }
        }
        for (keyword, in_place) in MAP {
            if let Some(Value::Object(children)) = members.get(keyword) {
                let pointer = child_pointer(&pointer, keyword);
                for (name, child) in children
                    .iter()
                    .filter(|(_, child)| child.is_object() || child.is_boolean())
                {
                    let at = child_pointer(&pointer, name);
                    if matches!(keyword, "$defs" | "definitions") {
                        self.collect(child, at, depth + 1)?;
                    } else {
                        self.child(this, child, at, in_place, depth)?;
                    }
                }
            }
        }
        Ok(this)
    }

    fn child(
        &mut self,
        parent: usize,
        schema: &Value,
        pointer: String,
        in_place: bool,
        depth: usize,
    ) -> Result<(), Box<Diagnostic>> {
        let child = self.collect(schema, pointer, depth + 1)?;
        let node = &mut self.nodes[parent];
        if in_place {
            node.in_place.push(child)
        } else {
            node.to_parts.push(child)
        }
        Ok(())
    }

    /// Turns every reference into an edge. One to another document, or without a target, is refused.
    fn resolve(&mut self, root: &Value) -> Result<(), Box<Diagnostic>> {
        let mut at = 0;
        // References may point at places that are not subschemas by keyword; those are added when they are found.
        while at < self.nodes.len() {
            if let Some(target) = self.nodes[at].reference.take() {
                let pointer = self.nodes[at].pointer.clone();
                let found = self.target(root, &target)?;
                match found {
                    Some(node) => self.nodes[at].in_place.push(node),
                    // In a document with several ids the compiler resolves or refuses it.
                    None if self.has_inner_ids => {}
                    None => {
                        let what = if target.starts_with('#') {
                            "refers to nothing"
                        } else {
                            "refers to another document"
                        };
                        let shown = broker_model::text::shown_line(&target, 120);
                        return Err(Box::new(
                            Diagnostic::error(
                                DiagnosticCode::SchemaRef,
                                format!("`{shown}` {what}"),
                            )
                            .at(pointer),
                        ));
                    }
                }
            }
            at += 1;
        }
        Ok(())
    }

    fn target(&mut self, root: &Value, target: &str) -> Result<Option<usize>, Box<Diagnostic>> {
        if let Some(node) = self.anchors.get(target) {
            return Ok(Some(*node));
        }
        let Some(fragment) = target.strip_prefix('#') else {
            return Ok(None);
        };
        let pointer = percent_decoded(fragment);
        if let Some(node) = self.index.get(&pointer) {
            return Ok(Some(*node));
        }
        match root.pointer(&pointer) {
            Some(schema) if pointer.is_empty() || pointer.starts_with('/') => {
                self.collect(schema, pointer, 0).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// A cycle of subschemas on the same value cannot be evaluated.
    fn refuse_cycles(&self) -> Result<(), Box<Diagnostic>> {
        let mut done = vec![false; self.nodes.len()];
        for start in 0..self.nodes.len() {
            // Depth-first, with an explicit stack: (node, next edge).
            let mut stack = vec![(start, 0)];
            let mut open = BTreeSet::from([start]);
            while let Some((node, edge)) = stack.pop() {
                if done[node] {
                    open.remove(&node);
                    continue;
                }
                let Some(next) = self.nodes[node].in_place.get(edge).copied() else {
                    done[node] = true;
                    open.remove(&node);
                    continue;
                };
                stack.push((node, edge + 1));
                if open.contains(&next) {
                    let pointer = &self.nodes[next].pointer;
                    return Err(Box::new(
                        Diagnostic::error(
                            DiagnosticCode::SchemaCycle,
                            "the subschema applies itself to the same value",
                        )
                        .at(pointer),
                    ));
                }
                if !done[next] {
                    open.insert(next);
                    stack.push((next, 0));
                }
            }
        }
        Ok(())
    }

    /// Counts the applications of subschemas to one value if references are followed without caching, as validators
    /// do: two references per level double them.
    fn refuse_fan_out(&self) -> Result<(), Box<Diagnostic>> {
        let mut cost = vec![0u64; self.nodes.len()];
        for start in 0..self.nodes.len() {
            let mut stack = vec![(start, false)];
            while let Some((node, children_done)) = stack.pop() {
                if cost[node] > 0 {
                    continue;
                }
                // `in_place` has no cycles here, so every child's cost is known at the second visit.
                if children_done {
                    let below = self.nodes[node]
                        .in_place
                        .iter()
                        .fold(0u64, |sum, child| sum.saturating_add(cost[*child]));
                    cost[node] = below.saturating_add(1);
                    if cost[node] > MAX_EXPANDED {
                        let message = format!(
                            "following its references, more than {MAX_EXPANDED} subschemas apply to one value"
                        );
                        return Err(Box::new(
                            Diagnostic::error(DiagnosticCode::SchemaLimit, message)
                                .at(&self.nodes[node].pointer),
                        ));
                    }
                } else {
                    stack.push((node, true));
                    stack.extend(
                        self.nodes[node]
                            .in_place
                            .iter()
                            .map(|child| (*child, false)),
                    );
                }
            }
        }
        Ok(())
    }
}

/// Fragments of references are percent-encoded (RFC 6901, section 6).
pub(super) fn percent_decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn code(schema: Value) -> Option<&'static str> {
        inspect(&schema).err().map(|d| d.code.as_str())
    }

    #[test]
    fn schema_reference_to_another_document_is_refused() {
        for target in [
            "http://evil.example/x.json",
            "file:///etc/passwd",
            "other.json",
            "#/$defs/none",
            "#nowhere",
        ] {
            assert_eq!(
                code(json!({"properties": {"a": {"$ref": target}}})),
                Some("schema_ref"),
                "{target}"
            );
        }
        assert_eq!(
            code(
                json!({"$defs": {"a b": {}}, "properties": {"x": {"$ref": "#/$defs/a%20b"}, "y": {"$ref": "#/properties/x"}}})
            ),
            None
        );
        assert_eq!(
            code(json!({"$defs": {"a": {"$anchor": "here"}}, "$ref": "#here"})),
            None
        );
    }

    #[test]
    fn schema_cycle_without_an_instance_step_is_refused() {
        let tree = json!({"type": "object", "properties": {"child": {"$ref": "#"}, "more": {"type": "array", "items": {"$ref": "#"}}}});
        assert_eq!(code(tree), None);
        assert_eq!(
            code(json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]})),
            Some("schema_cycle")
        );
        assert_eq!(
            code(
                json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}, {}]}}})
            ),
            Some("schema_cycle")
        );
    }

    #[test]
    fn schema_over_a_limit_is_refused() {
        let nested =
            |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({"items": inner}));
        assert_eq!(code(nested(MAX_DEPTH)), None);
        assert_eq!(code(nested(MAX_DEPTH + 1)), Some("schema_limit"));
        assert_eq!(
            code(json!({"anyOf": vec![json!({}); MAX_SUBSCHEMAS]})),
            Some("schema_limit")
        );
        assert_eq!(
            code(json!({"description": "x".repeat(300 << 10)})),
            Some("schema_limit")
        );
        let levels: serde_json::Map<_, _> = (0..20)
            .map(|n| (format!("d{n}"), json!({"anyOf": [{"$ref": format!("#/$defs/d{}", n + 1)}, {"$ref": format!("#/$defs/d{}", n + 1)}]})))
            .chain([("d20".to_owned(), json!({}))])
            .collect();
        assert_eq!(
            code(json!({"$ref": "#/$defs/d0", "$defs": levels})),
            Some("schema_limit")
        );
    }

    #[test]
    fn schema_of_an_unknown_dialect_is_refused() {
        for known in [
            "http://json-schema.org/draft-07/schema#",
            "https://json-schema.org/draft/2020-12/schema",
            "http://json-schema.org/draft-04/schema#",
        ] {
            assert_eq!(code(json!({"$schema": known})), None, "{known}");
        }
        assert_eq!(
            code(json!({"$schema": "https://example.com/my-dialect"})),
            Some("schema_dialect")
        );
        assert_eq!(code(json!({"$schema": 7})), Some("schema_dialect"));
    }
}

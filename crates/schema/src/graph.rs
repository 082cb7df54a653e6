//! The subschemas of a schema, with the edges between them and the targets of references.
//!
//! References are resolved here by the rules of RFC 3986, and only within the schema: the validator gets references
//! that are resolved already (see `reading`), so that it follows exactly those edges that were counted.

use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use broker_model::codes::DiagnosticCode;
use broker_model::diagnostic::Diagnostic;
use broker_model::json::child_pointer;
use broker_model::text::shown_line;

use super::base_uri::resolve;

/// Maximum nesting of subschemas.
pub const MAX_DEPTH: usize = 64;
/// Maximum number of subschemas of one schema.
pub const MAX_SUBSCHEMAS: usize = 10_000;
/// Maximum number of subschemas that apply to one value when every reference is followed.
pub const MAX_EXPANDED: u64 = 10_000;

/// Keywords whose value is a schema, with whether it is applied to the same value.
pub(super) const ONE: [(&str, bool); 14] = [
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
pub(super) const LIST: [(&str, bool); 5] = [
    ("allOf", true),
    ("anyOf", true),
    ("oneOf", true),
    ("prefixItems", false),
    ("items", false),
];
/// Keywords whose value maps names to schemas. Definitions are applied only where referred to.
pub(super) const MAP: [(&str, bool); 6] = [
    ("properties", false),
    ("patternProperties", false),
    ("dependentSchemas", true),
    ("dependencies", true),
    ("$defs", false),
    ("definitions", false),
];
/// Maximum bytes of the URI of a subschema.
const MAX_URI_BYTES: usize = 2048;
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Subschemas and their edges. A pointer identifies a subschema.
#[derive(Default)]
pub(super) struct Graph {
    index: BTreeMap<String, usize>,
    pub(super) nodes: Vec<Subschema>,
    /// The subschemas that have an `$id`, by their absolute URI; `None` for a URI that two of them have.
    resources: BTreeMap<String, Option<usize>>,
    /// The URI of each resource, by its root.
    base_uris: BTreeMap<usize, String>,
    /// Names of subschemas within a resource, by its root; `None` for a name that two of them have.
    anchors: BTreeMap<(usize, String), Option<usize>>,
    is_draft4: bool,
    ref_stands_alone: bool,
    /// Whether a reference has a target that depends on the evaluation.
    pub(super) has_dynamic_references: bool,
}

#[derive(Default)]
pub(super) struct Subschema {
    pub(super) pointer: String,
    pub(super) references: Vec<Reference>,
    /// Applied to the same value: a cycle through these alone never ends.
    pub(super) in_place: Vec<usize>,
    /// Applied to parts of the value.
    pub(super) to_parts: Vec<usize>,
    /// The root of its resource.
    resource: usize,
}

/// A reference of a subschema.
pub(super) struct Reference {
    pub(super) keyword: &'static str,
    target: String,
    /// The subschema that it names; `None` if there is none.
    pub(super) node: Option<usize>,
}

impl Graph {
    /// The subschemas of a schema that has no cycle among those that apply to one value, and no reference without a
    /// target.
    pub(super) fn new(schema: &Value) -> Result<Self, Box<Diagnostic>> {
        let graph = Self::with_open_references(schema)?;
        for node in &graph.nodes {
            if let Some(open) = node.references.iter().find(|one| one.node.is_none()) {
                return Err(Box::new(graph.refused(node, open)));
            }
        }
        Ok(graph)
    }

    /// The subschemas of a schema that has no such cycle. References may have no target.
    pub(super) fn with_open_references(schema: &Value) -> Result<Self, Box<Diagnostic>> {
        let dialect = schema.get("$schema").and_then(Value::as_str);
        let is_one_of = |drafts: &[&str]| {
            dialect.is_some_and(|dialect| drafts.iter().any(|draft| dialect.contains(draft)))
        };
        let mut graph = Self {
            is_draft4: is_one_of(&["draft-04"]),
            ref_stands_alone: is_one_of(&["draft-04", "draft-06", "draft-07"]),
            ..Self::default()
        };
        graph.base_uris.insert(0, String::new());
        graph.collect(schema, String::new(), 0, 0)?;
        graph.resolve(schema)?;
        graph.refuse_cycles()?;
        Ok(graph)
    }

    /// Whether a subschema has an `$id` or a name for references.
    pub(super) fn has_names(&self) -> bool {
        !self.resources.is_empty() || !self.anchors.is_empty()
    }

    /// The subschema at a pointer.
    pub(super) fn at(&self, pointer: &str) -> Option<usize> {
        self.index.get(pointer).copied()
    }

    /// Whether members beside `$ref` have no meaning.
    pub(super) const fn ref_stands_alone(&self) -> bool {
        self.ref_stands_alone
    }

    fn collect(
        &mut self,
        schema: &Value,
        pointer: String,
        depth: usize,
        resource: usize,
    ) -> Result<usize, Box<Diagnostic>> {
        let refuse = |message: String| {
            let problem = Diagnostic::error(DiagnosticCode::SchemaLimit, message);
            Err(Box::new(problem.at(&pointer)))
        };
        if depth > MAX_DEPTH {
            return refuse(format!(
                "subschemas are nested deeper than {MAX_DEPTH} levels"
            ));
        }
        if self.nodes.len() >= MAX_SUBSCHEMAS {
            return refuse(format!("there are more than {MAX_SUBSCHEMAS} subschemas"));
        }
        let this = self.nodes.len();
        self.index.insert(pointer.clone(), this);
        self.nodes.push(Subschema {
            pointer: pointer.clone(),
            resource,
            ..Subschema::default()
        });
        let Value::Object(members) = schema else {
            return Ok(this);
        };
        let resource = self.take_names(this, members, resource)?;
        self.nodes[this].resource = resource;
        for keyword in REFERENCES {
            if let Some(Value::String(target)) = members.get(keyword) {
                self.has_dynamic_references |= keyword != "$ref";
                self.nodes[this].references.push(Reference {
                    keyword,
                    target: target.clone(),
                    node: None,
                });
            }
        }
        let is_schema = |value: &Value| value.is_object() || value.is_boolean();
        for (keyword, in_place) in ONE {
            if let Some(child) = members.get(keyword).filter(|child| is_schema(child)) {
                let at = child_pointer(&pointer, keyword);
                self.child(this, child, at, in_place, depth)?;
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
                for (name, child) in children.iter().filter(|(_, child)| is_schema(child)) {
                    let at = child_pointer(&pointer, name);
                    if matches!(keyword, "$defs" | "definitions") {
                        self.collect(child, at, depth + 1, resource)?;
                    } else {
                        self.child(this, child, at, in_place, depth)?;
                    }
                }
            }
        }
        Ok(this)
    }

    /// Reads the names by which references reach a subschema; returns the root of its resource.
    fn take_names(
        &mut self,
        this: usize,
        members: &Map<String, Value>,
        resource: usize,
    ) -> Result<usize, Box<Diagnostic>> {
        let mut resource = resource;
        // A root may have the `id` of draft 4 without its `$schema`.
        let keywords: &[&str] = match (self.is_draft4, this) {
            (true, _) => &["id"],
            (false, 0) => &["$id", "id"],
            (false, _) => &["$id"],
        };
        let has_meaning = !self.ref_stands_alone || !members.contains_key("$ref");
        for keyword in keywords.iter().filter(|_| has_meaning) {
            let Some(Value::String(id)) = members.get(*keyword) else {
                continue;
            };
            if let Some(name) = id.strip_prefix('#') {
                self.add_anchor(resource, name, this);
                continue;
            }
            let base = self.base_uris.get(&resource).map_or("", String::as_str);
            let uri = resolve(base, id.trim_end_matches('#'));
            if uri.len() > MAX_URI_BYTES {
                let message = format!("its `{keyword}` has more than {MAX_URI_BYTES} bytes");
                let problem = Diagnostic::error(DiagnosticCode::SchemaLimit, message);
                return Err(Box::new(problem.at(&self.nodes[this].pointer)));
            }
            resource = this;
            let named = self.resources.entry(uri.clone()).or_insert(Some(this));
            if *named != Some(this) {
                *named = None;
            }
            self.base_uris.insert(this, uri);
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(Value::String(name)) = members.get(keyword) {
                self.add_anchor(resource, name, this);
            }
        }
        Ok(resource)
    }

    fn add_anchor(&mut self, resource: usize, name: &str, this: usize) {
        let key = (resource, name.to_owned());
        let named = self.anchors.entry(key).or_insert(Some(this));
        if *named != Some(this) {
            *named = None;
        }
    }

    fn child(
        &mut self,
        parent: usize,
        schema: &Value,
        pointer: String,
        in_place: bool,
        depth: usize,
    ) -> Result<(), Box<Diagnostic>> {
        let resource = self.nodes[parent].resource;
        let child = self.collect(schema, pointer, depth + 1, resource)?;
        let node = &mut self.nodes[parent];
        if in_place {
            node.in_place.push(child)
        } else {
            node.to_parts.push(child)
        }
        Ok(())
    }

    /// Turns every reference with a target into an edge.
    fn resolve(&mut self, root: &Value) -> Result<(), Box<Diagnostic>> {
        let mut at = 0;
        // References may point at places that are not subschemas by keyword; those are added when they are found.
        while at < self.nodes.len() {
            for one in 0..self.nodes[at].references.len() {
                let target = self.nodes[at].references[one].target.clone();
                let found = self.target(root, &target, self.nodes[at].resource)?;
                self.nodes[at].references[one].node = found;
                self.nodes[at].in_place.extend(found);
            }
            at += 1;
        }
        Ok(())
    }

    fn target(
        &mut self,
        root: &Value,
        target: &str,
        resource: usize,
    ) -> Result<Option<usize>, Box<Diagnostic>> {
        let (uri, fragment) = target.split_once('#').unwrap_or((target, ""));
        let Some(resource) = self.resource(uri, resource) else {
            return Ok(None);
        };
        let fragment = percent_decoded(fragment);
        if fragment.is_empty() {
            return Ok(Some(resource));
        }
        if !fragment.starts_with('/') {
            let named = self.anchors.get(&(resource, fragment));
            return Ok(named.copied().flatten());
        }
        let pointer = format!("{}{fragment}", self.nodes[resource].pointer);
        if let Some(node) = self.index.get(&pointer) {
            return Ok(Some(*node));
        }
        match root.pointer(&pointer) {
            Some(schema) => self.collect(schema, pointer, 0, resource).map(Some),
            None => Ok(None),
        }
    }

    /// The root of the resource with a URI, relative to the URI of another resource.
    fn resource(&self, uri: &str, from: usize) -> Option<usize> {
        if uri.is_empty() {
            return Some(from);
        }
        let base = self.base_uris.get(&from).map_or("", String::as_str);
        self.resources.get(&resolve(base, uri)).copied().flatten()
    }

    fn refused(&self, node: &Subschema, open: &Reference) -> Diagnostic {
        let uri = open
            .target
            .split_once('#')
            .map_or(&*open.target, |(uri, _)| uri);
        let base = self
            .base_uris
            .get(&node.resource)
            .map_or("", String::as_str);
        let what = match self.resources.get(&resolve(base, uri)) {
            Some(None) => "is the name of two subschemas",
            None if !uri.is_empty() => "refers to another document",
            _ => "refers to nothing",
        };
        let shown = shown_line(&open.target, 120);
        Diagnostic::error(DiagnosticCode::SchemaRef, format!("`{shown}` {what}")).at(&node.pointer)
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
    pub(super) fn refuse_fan_out(&self) -> Result<(), Box<Diagnostic>> {
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

//! The schema of one side as a document: its dialect, and the targets of its references.

use serde_json::{Map, Value};

/// The meaning of a document's keywords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dialect {
    Draft4,
    Draft6,
    Draft7,
    Draft201909,
    Draft202012,
}

/// A schema and its interpretation.
#[derive(Debug)]
pub(super) struct Document {
    root: Value,
    pub(super) dialect: Dialect,
    /// Inner base addresses change the meaning of references; then none is followed.
    inner_ids: bool,
}

/// A subschema and its place in the document.
#[derive(Clone, Debug)]
pub(super) struct SchemaLocation<'a> {
    pub(super) document: &'a Document,
    pub(super) pointer: String,
    pub(super) value: &'a Value,
}

impl Document {
    pub(super) fn new(root: Value) -> Self {
        let dialect = match root.get("$schema").and_then(Value::as_str) {
            Some(uri) if uri.contains("draft-04") => Dialect::Draft4,
            Some(uri) if uri.contains("draft-06") => Dialect::Draft6,
            Some(uri) if uri.contains("draft-07") => Dialect::Draft7,
            Some(uri) if uri.contains("2019-09") => Dialect::Draft201909,
            _ => Dialect::Draft202012,
        };
        let inner_ids = root
            .as_object()
            .is_some_and(|members| members.values().any(has_id));
        Self {
            root,
            dialect,
            inner_ids,
        }
    }

    pub(super) const fn root(&self) -> &Value {
        &self.root
    }

    pub(super) fn root_location(&self) -> SchemaLocation<'_> {
        SchemaLocation {
            document: self,
            pointer: String::new(),
            value: &self.root,
        }
    }

    /// The location that a reference names, by pointer within this document only.
    pub(super) fn resolve(&self, target: &str) -> Option<SchemaLocation<'_>> {
        let pointer = target.strip_prefix('#').filter(|_| !self.inner_ids)?;
        if pointer.contains('%') || !(pointer.is_empty() || pointer.starts_with('/')) {
            return None;
        }
        Some(SchemaLocation {
            document: self,
            pointer: pointer.to_owned(),
            value: self.root.pointer(pointer)?,
        })
    }

    /// The definitions: two equal texts with references mean the same only if these are equal.
    pub(super) fn definitions(&self) -> [Option<&Value>; 2] {
        [self.root.get("$defs"), self.root.get("definitions")]
    }
}

impl<'a> SchemaLocation<'a> {
    pub(super) fn child(&self, token: &str, value: &'a Value) -> Self {
        Self {
            document: self.document,
            pointer: broker_model::json::child_pointer(&self.pointer, token),
            value,
        }
    }

    pub(super) fn below(&self, keyword: &str, token: &str, value: &'a Value) -> Self {
        self.child(keyword, value).moved_to(token)
    }

    fn moved_to(mut self, token: &str) -> Self {
        self.pointer = broker_model::json::child_pointer(&self.pointer, token);
        self
    }

    pub(super) fn members(&self) -> Option<&'a Map<String, Value>> {
        self.value.as_object()
    }
}

/// Whether a base address is set anywhere below. A property called `id` counts as one as well, which only
/// loses proofs.
fn has_id(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            members.get("$id").is_some_and(Value::is_string)
                || members.get("id").is_some_and(Value::is_string)
                || members.get("$schema").is_some_and(Value::is_string)
                || members.contains_key("$anchor")
                || members.contains_key("$dynamicAnchor")
                || members.values().any(has_id)
        }
        Value::Array(items) => items.iter().any(has_id),
        _ => false,
    }
}

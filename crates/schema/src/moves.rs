//! Subschemas that a reading of a schema moved to other places, and the references to them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use broker_model::json::escape_token;

use super::graph::Graph;

/// The moved members of a schema: the new place of each, below its parent, by its old pointer.
#[derive(Clone, Debug, Default)]
pub(super) struct Moves {
    places: BTreeMap<String, String>,
    /// The old pointers by the new ones.
    origins: BTreeMap<String, String>,
}

impl Moves {
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Records that the member at `pointer` is now at `place`, relative to its parent and without the first `/`.
    pub(super) fn add(&mut self, pointer: String, place: String) {
        self.places.insert(pointer, place);
    }

    /// The new pointer to the subschema at an old one.
    pub(super) fn moved(&self, pointer: &str) -> String {
        let (mut old, mut new) = (String::new(), String::new());
        for token in pointer.split('/').skip(1) {
            old.push('/');
            old.push_str(token);
            new.push('/');
            new.push_str(self.places.get(&old).map_or(token, String::as_str));
        }
        new
    }

    /// Ends the recording, so that new pointers have their old ones.
    pub(super) fn seal(&mut self) {
        let origins = self.places.keys().map(|old| (self.moved(old), old.clone()));
        self.origins = origins.collect();
    }

    /// The old pointer to the place at a new one.
    #[cfg(feature = "validate")]
    pub(super) fn original(&self, pointer: &str) -> String {
        let mut end = pointer.len();
        loop {
            if let Some(old) = self.origins.get(&pointer[..end]) {
                return format!("{old}{}", &pointer[end..]);
            }
            match pointer[..end].rfind('/') {
                Some(parent) => end = parent,
                None => return pointer.to_owned(),
            }
        }
    }

    /// The moves of this reading and then the moves of a reading of its result. Only the old pointers are complete.
    #[cfg(feature = "validate")]
    pub(super) fn followed_by(&self, later: &Self) -> Self {
        let mut origins = self.origins.clone();
        for (new, between) in &later.origins {
            origins.insert(new.clone(), self.original(between));
        }
        Self {
            places: BTreeMap::new(),
            origins,
        }
    }

    /// Moves a member of a subschema to another keyword, which is free.
    pub(super) fn rename(
        &mut self,
        pointer: &str,
        keywords: &mut Map<String, Value>,
        from: &str,
        to: &str,
    ) {
        if let Some(value) = keywords.remove(from) {
            keywords.insert(to.to_owned(), value);
            let old = broker_model::json::child_pointer(pointer, from);
            self.add(old, escape_token(to));
        }
    }

    /// Writes every reference of the moved schema as a pointer, and removes the names that are then unused.
    /// `graph` is the graph of the schema before.
    pub(super) fn point_references(&self, graph: &Graph, schema: &mut Value) {
        for node in &graph.nodes {
            let Some(Value::Object(keywords)) = schema.pointer_mut(&self.moved(&node.pointer))
            else {
                continue;
            };
            for reference in &node.references {
                if let Some(target) = reference.node {
                    let target = self.moved(&graph.nodes[target].pointer);
                    let written = format!("#{}", encoded(&target));
                    keywords.insert(reference.keyword.to_owned(), written.into());
                }
            }
            for name in ["$id", "id", "$anchor"] {
                if keywords.get(name).is_some_and(Value::is_string) {
                    keywords.remove(name);
                }
            }
        }
    }
}

/// A pointer as the fragment of a reference.
pub(super) fn encoded(pointer: &str) -> String {
    let mut out = String::with_capacity(pointer.len());
    for byte in pointer.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' | b'$' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

//! Admission classes: what decides the entries that a caller sees.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use broker_model::access::GroupSet;
use serde_json::Value;

use super::filters::Excluded;

/// Callers of one class see and may call the same entries, with the same arguments, so caches are kept for each class.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AdmissionClass {
    /// The number of the policy, since a reload brings another one.
    policy: u64,
    groups: GroupSet,
    /// The claims that rules read, if the caller has any of them.
    claims: Option<Arc<ClaimValues>>,
    /// The tools that filters exclude, if they exclude any.
    excluded: Option<Excluded>,
}

/// Claims of a token, and their text.
#[derive(Debug)]
pub(crate) struct ClaimValues {
    pub(super) values: BTreeMap<String, Value>,
    pub(super) text: String,
}

impl PartialEq for ClaimValues {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for ClaimValues {}

impl Hash for ClaimValues {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl ClaimValues {
    pub(super) fn new(values: BTreeMap<String, Value>) -> Self {
        let text = serde_json::to_string(&values).expect("JSON values always serialize");
        Self { values, text }
    }
}

impl AdmissionClass {
    pub(crate) const fn new(
        policy: u64,
        groups: GroupSet,
        claims: Option<Arc<ClaimValues>>,
    ) -> Self {
        Self {
            policy,
            groups,
            claims,
            excluded: None,
        }
    }

    /// Returns the class of these callers without the tools that filters exclude.
    pub(super) fn without(self, excluded: Option<Excluded>) -> Self {
        Self { excluded, ..self }
    }

    /// Returns the bytes that a key of a cache takes.
    pub(crate) fn bytes(&self) -> usize {
        let claims = self.claims().map_or(0, |claims| claims.text.len());
        size_of::<Self>() + claims + self.excluded.as_deref().map_or(0, size_of_val)
    }

    /// Whether filters exclude any tool.
    pub(super) const fn has_excluded_tools(&self) -> bool {
        self.excluded.is_some()
    }

    /// Whether filters exclude a tool.
    pub(super) fn excludes(&self, tool: u32) -> bool {
        let excluded = self.excluded.as_deref();
        excluded.is_some_and(|bits| bits[tool as usize / 64] >> (tool % 64) & 1 == 1)
    }

    pub(super) const fn groups(&self) -> GroupSet {
        self.groups
    }

    pub(super) fn claims(&self) -> Option<&ClaimValues> {
        self.claims.as_deref()
    }

    /// Returns a text that differs for classes of one policy that differ.
    pub(crate) fn text(&self) -> String {
        let claims = self.claims().map_or("", |claims| claims.text.as_str());
        let excluded = self.excluded.as_deref().unwrap_or_default();
        format!("{:x} {excluded:x?} {claims}", self.groups.bits())
    }
}

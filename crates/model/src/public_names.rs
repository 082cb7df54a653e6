//! Names that a lock and its config show to everyone who reads them: paths, names of tools and members, aliases. A
//! report of drift shows them even if a secret has the same characters, since a masked name would hide the change.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::{Map, Value};

use crate::filter::ToolFilter;
use crate::item::ItemKind;
use crate::json::escape_token;
use crate::lock::{Lock, LockedSource};
use crate::shown_forms::{continues_word, shown_forms};

/// Shorter names contain no secret that is masked.
const MIN_BYTES: usize = 4;

/// A set of public names, each in every form that a report shows. The segments of paths are names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicNames(BTreeSet<String>);

impl PublicNames {
    /// Collects the names of a locked source.
    pub fn from_source(source: &LockedSource) -> Self {
        let mut names = Self::default();
        names.add_path(source.path.as_str());
        for tool in &source.exposed {
            names.add_key(&tool.upstream_name);
            names.add(&tool.exposed_name);
            names.add_members(&tool.raw);
        }
        source
            .hidden
            .iter()
            .for_each(|tool| names.add_key(&tool.name));
        let left_out = source.left_out.iter().filter_map(|one| one.name.as_deref());
        left_out.for_each(|name| names.add(name));
        names
    }

    /// Collects the names of a lock.
    pub fn from_lock(lock: &Lock) -> Self {
        let mut names = Self::default();
        for source in &lock.sources {
            names.extend(Self::from_source(source));
        }
        lock.left_out
            .iter()
            .for_each(|source| names.add_path(source.path.as_str()));
        names
    }

    /// Adds a name, also as a segment of a pointer writes it.
    pub fn add(&mut self, name: &str) {
        if name.len() >= MIN_BYTES {
            self.0.extend(shown_forms(name));
            self.0.extend(shown_forms(&escape_token(name)));
        }
    }

    /// Adds other names.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Whether a part of a text is inside one of the names, and the text contains the whole name.
    pub(crate) fn around(&self, text: &str, part: &Range<usize>) -> bool {
        let found = &text[part.clone()];
        self.0.iter().any(|name| {
            name.match_indices(found).any(|(at, _)| {
                let Some(start) = part.start.checked_sub(at) else {
                    return false;
                };
                let end = start + name.len();
                text.get(start..end) == Some(name)
                    && !text[..start].ends_with(continues_word)
                    && !goes_on(&text[end..])
            })
        })
    }

    /// Whether a text is one of the names.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Adds the segments of a path.
    pub fn add_path(&mut self, path: &str) {
        path.split('/').for_each(|segment| self.add(segment));
    }

    /// Adds the patterns of a filter that match one name only.
    pub fn add_filter(&mut self, filter: &ToolFilter) {
        let patterns = filter
            .patterns()
            .iter()
            .map(|one| one.trim_start_matches('!'));
        let is_name = |pattern: &&str| !pattern.contains(['*', '?', '[', '{']);
        patterns.filter(is_name).for_each(|name| self.add(name));
    }

    /// Adds the name in the key of a tool or another item.
    pub fn add_key(&mut self, key: &str) {
        self.add(ItemKind::parse_key(key).1);
    }

    /// Adds the names of all members of a tool.
    fn add_members(&mut self, tool: &Map<String, Value>) {
        let mut objects = vec![tool];
        let mut lists: Vec<&Vec<Value>> = Vec::new();
        loop {
            let values: Vec<&Value> = if let Some(object) = objects.pop() {
                object.keys().for_each(|name| self.add(name));
                object.values().collect()
            } else if let Some(list) = lists.pop() {
                list.iter().collect()
            } else {
                return;
            };
            for value in values {
                match value {
                    Value::Object(object) => objects.push(object),
                    Value::Array(list) => lists.push(list),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
                }
            }
        }
    }
}

/// Whether the text continues the word before it. A full stop ends a sentence unless a letter follows.
fn goes_on(text: &str) -> bool {
    let rest = text.trim_start_matches('.');
    match rest.len() < text.len() {
        true => rest.starts_with(|c| c != '.' && continues_word(c)),
        false => rest.starts_with(continues_word),
    }
}

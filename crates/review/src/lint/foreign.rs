//! Tools of other sources that a text names.

use std::collections::{BTreeMap, BTreeSet};

use super::texts::{Role, Text, texts_of};
use super::{TextFinding, path_of, quoted};
use broker_model::lock::LockedSource;

/// Shorter names are ordinary words.
const MIN_NAME_LENGTH: usize = 7;

/// The names of tools that are not ordinary words.
#[derive(Debug)]
pub(super) struct Named<'a> {
    /// The numbers of the sources that have a tool of this name, and its first place.
    names: BTreeMap<&'a str, (Vec<usize>, String)>,
    paths: BTreeMap<String, usize>,
}

/// Names of a source itself: its tools, its parameters, and the values of those.
#[derive(Debug)]
pub(super) struct Own<'a>(BTreeSet<&'a str>);

impl<'a> Own<'a> {
    pub(super) fn collect(source: &'a LockedSource) -> Self {
        let mut own: BTreeSet<&str> = source.hidden.iter().map(|tool| &*tool.name).collect();
        for tool in &source.exposed {
            own.extend([tool.upstream_name.as_str(), tool.exposed_name.as_str()]);
            let texts = texts_of(tool).into_iter();
            own.extend(
                texts
                    .filter(|text| matches!(text.role, Role::Parameter | Role::Key | Role::Data))
                    .map(|text| text.text),
            );
        }
        Self(own)
    }
}

impl<'a> Named<'a> {
    pub(super) fn collect(sources: &'a [LockedSource]) -> Self {
        let mut names: BTreeMap<&str, (Vec<usize>, String)> = BTreeMap::new();
        let mut paths = BTreeMap::new();
        for (number, source) in sources.iter().enumerate() {
            for tool in &source.exposed {
                let path = path_of(source, tool);
                for name in [tool.upstream_name.as_str(), tool.exposed_name.as_str()] {
                    if is_distinctive(name) {
                        let (owners, _) = names.entry(name).or_insert((Vec::new(), path.clone()));
                        owners.push(number);
                    }
                }
                if path.matches('/').count() >= 2 {
                    paths.insert(path, number);
                }
            }
        }
        Self { names, paths }
    }

    /// The first tool of another source that a text of source `number` names.
    pub(super) fn check(&self, number: usize, own: &Own<'_>, text: &Text<'_>) -> Vec<TextFinding> {
        if text.role != Role::Prose {
            return Vec::new();
        }
        let found = |at: usize, word: &str, path: &str| TextFinding {
            rule: "foreign-tool-named",
            at,
            to: at + word.len(),
            message: format!("names {}, a tool of another source", quoted(path)),
        };
        for (at, word) in tokens(text.text) {
            if word.starts_with('/') {
                let path = word.trim_end_matches(['.', '/', '-']);
                if self.paths.get(path).is_some_and(|owner| *owner != number) {
                    return vec![found(at, path, path)];
                }
                continue;
            }
            let name = word.trim_end_matches(['.', '-']);
            let Some((owners, path)) = self.names.get(name) else {
                continue;
            };
            if !owners.contains(&number) && !own.0.contains(name) {
                return vec![found(at, name, path)];
            }
        }
        Vec::new()
    }
}

/// Runs of characters of names and paths.
fn tokens(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    text.split(move |c: char| !in_name(c))
        .filter(|word| word.len() >= MIN_NAME_LENGTH)
        .map(move |word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

/// Whether a name has the form of an identifier: `search_code`, `searchCode`, but not `search`; words with a
/// hyphen are English.
fn is_distinctive(name: &str) -> bool {
    let hump = |pair: &[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
    name.len() >= MIN_NAME_LENGTH
        && (name.trim_matches('_').contains('_')
            || name.as_bytes().windows(2).any(hump)
            || name.matches('-').count() >= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_name_is_distinctive_only_if_it_looks_like_one() {
        for name in ["search_code", "searchCode", "list-all-items"] {
            assert!(is_distinctive(name), "{name}");
        }
        for name in ["search", "web-search", "_private", "a_b", "SEARCHING"] {
            assert!(!is_distinctive(name), "{name}");
        }
        let words: Vec<_> = tokens("use `get_file`, or /a/b_c_d. Now").collect();
        assert_eq!(words, [(5, "get_file"), (19, "/a/b_c_d.")]);
    }
}

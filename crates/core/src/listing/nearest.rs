//! Similar paths for a path that does not exist: names with the same beginning, with the same words, or
//! with a typing error.

use broker_model::path_words::{has_words, words};

use crate::catalog::EntryKind;
use crate::listing::scope::Scope;

/// The maximum number of unknown paths of one request that get suggestions.
pub(crate) const MAX_UNKNOWN: usize = 5;
/// The maximum number of suggestions in one error.
const MAX_SUGGESTIONS: usize = 3;
/// The maximum number of names that one request compares, over all its paths: unknown paths must stay
/// cheap for every catalog and every request.
const MAX_COMPARED: usize = 4000;
/// The limit for the word search, because it costs less.
const MAX_SEARCHED: usize = 20_000;
/// The maximum number of whole paths that one request compares.
const MAX_RANKED: usize = 500;
/// Only the beginning of a longer last segment is compared.
const MAX_COMPARED_CHARS: usize = 64;
/// The maximum number of words of a path that are searched.
const MAX_WORDS: usize = 12;
/// Names below this likeness are not suggested.
const MIN_LIKENESS: f64 = 0.6;
/// The likeness of a name that begins with the wanted one.
const PREFIX_LIKENESS: f64 = 0.95;
/// The likeness of a path that differs in `_` and `-` only: more than the likeness of every other one.
const SEPARATORS_LIKENESS: f64 = 3.0;
/// The likeness of a path that has all words of the wanted one.
const WORDS_LIKENESS: f64 = 0.85;

/// The work that one request may still cause by unknown paths, and the nodes that its errors have listed.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Unknown paths that may still get suggestions.
    unknown: usize,
    /// Names that may still be compared.
    pub(crate) names: usize,
    /// Names that may still be searched for words.
    searched: usize,
    /// Whole paths that may still be compared.
    ranked: usize,
    /// The nodes whose children an error of this request has.
    pub(super) listed: Vec<u32>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            unknown: MAX_UNKNOWN,
            names: MAX_COMPARED,
            searched: MAX_SEARCHED,
            ranked: MAX_RANKED,
            listed: Vec::new(),
        }
    }
}

/// Returns at most three paths that may have been meant: sibling names first, then the same or a similar name anywhere.
pub(super) fn nearest(scope: Scope<'_>, text: &str, budget: &mut Budget) -> Vec<String> {
    if budget.names == 0 || budget.unknown == 0 {
        return Vec::new();
    }
    budget.unknown -= 1;
    let (parent, wanted) = split(text);
    let wanted: String = wanted.chars().take(MAX_COMPARED_CHARS).collect();
    let sought = words(text).take(MAX_WORDS);
    let sought: Vec<String> = sought.map(str::to_ascii_lowercase).collect();
    let mut found: Vec<(f64, &'static str)> = Vec::new();
    let catalog = scope.catalog;
    let mut offer = |at: u32, bonus: f64| {
        // First of all, so that entries that do not exist for the caller do not use the budget.
        if !scope.admits(at) {
            return;
        }
        let entry = catalog.entry(at);
        let leaf = split(entry.path).1;
        let like = if differs_in_separators(entry.path, text) {
            SEPARATORS_LIKENESS
        } else if leaf.eq_ignore_ascii_case(&wanted) {
            1.0
        } else if begins_with(leaf, &wanted) {
            PREFIX_LIKENESS
        } else if budget.searched > 0 && {
            budget.searched -= 1;
            has_words(entry.words, &sought)
        } {
            WORDS_LIKENESS
        } else if budget.names > 0 && may_be_like(&wanted, leaf) {
            budget.names -= 1;
            likeness(&wanted, leaf)
        } else {
            0.0
        };
        if like >= MIN_LIKENESS {
            found.push((like + bonus, entry.path));
        }
    };
    let siblings: &[u32] = match catalog.find(parent).map(|at| &catalog.entry(at).kind) {
        Some(EntryKind::Node { children, .. }) => children,
        _ => &[],
    };
    for child in siblings {
        offer(*child, 1.0);
    }
    for at in scope.searched() {
        let path = catalog.entry(at).path;
        if path != "/" && split(path).0 != parent {
            offer(at, 0.0);
        }
    }
    best(found, text, budget)
}

/// Returns the paths with the greatest likeness. Equal ones are ordered by the likeness of the whole path. It costs the
/// product of both lengths, so only the first of many equal ones are compared.
fn best(mut found: Vec<(f64, &'static str)>, text: &str, budget: &mut Budget) -> Vec<String> {
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    if let Some((last, _)) = found.get(MAX_SUGGESTIONS - 1).copied() {
        found.retain(|(like, _)| *like >= last);
    }
    found.truncate(budget.ranked.max(MAX_SUGGESTIONS));
    budget.ranked = budget.ranked.saturating_sub(found.len());
    let mut ranked: Vec<_> = found
        .into_iter()
        .map(|(like, path)| (like, strsim::jaro_winkler(text, path), path))
        .collect();
    ranked.sort_by(|a, b| {
        b.0.total_cmp(&a.0)
            .then_with(|| b.1.total_cmp(&a.1))
            .then_with(|| a.2.cmp(b.2))
    });
    let paths = ranked.into_iter().take(MAX_SUGGESTIONS);
    paths.map(|(_, _, path)| path.to_owned()).collect()
}

/// Whether the paths are equal if `_` and `-` are, and capitals and small letters.
fn differs_in_separators(path: &str, wanted: &str) -> bool {
    let plain = |byte: u8| match byte {
        b'_' => b'-',
        other => other.to_ascii_lowercase(),
    };
    path.len() == wanted.len() && path.bytes().map(plain).eq(wanted.bytes().map(plain))
}

/// Whether `leaf` is longer than `wanted` and begins with it.
fn begins_with(leaf: &str, wanted: &str) -> bool {
    !wanted.is_empty()
        && leaf
            .get(..wanted.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(wanted))
}

/// Whether names can be similar enough at all: they differ in at least as many characters as in length.
fn may_be_like(wanted: &str, name: &str) -> bool {
    let (short, long) = (wanted.len().min(name.len()), wanted.len().max(name.len()));
    long <= 2 * MAX_COMPARED_CHARS && short as f64 >= MIN_LIKENESS * long as f64
}

/// Computes the likeness of two names: 1 for equal names, 0 for entirely different names; a swap of neighbours is one
/// edit.
fn likeness(wanted: &str, name: &str) -> f64 {
    let longest = wanted.len().max(name.len()).max(1);
    1.0 - strsim::osa_distance(wanted, name) as f64 / longest as f64
}

/// Returns the path above and the last segment.
pub(super) fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", leaf)) => ("/", leaf),
        Some((parent, leaf)) => (parent, leaf),
        None => ("/", path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_of_a_path_are_equal_to_each_other_alone() {
        assert!(differs_in_separators(
            "/my-files/get_it",
            "/my_files/Get-it"
        ));
        for other in ["/my/files/get_it", "/my-files/get.it", "/my-files/get_i"] {
            assert!(!differs_in_separators("/my-files/get_it", other), "{other}");
        }
    }

    #[test]
    fn suggestions_compare_a_limited_number_of_whole_paths() {
        let equal = |count: usize| -> Vec<(f64, &'static str)> {
            let path = |at| -> &'static str { format!("/n{at:04}/get").leak() };
            (0..count).map(|at| (0.95, path(at))).collect()
        };
        let mut budget = Budget::default();
        let found = best(equal(400), "/n0321/ge", &mut budget);
        assert_eq!((found[0].as_str(), budget.ranked), ("/n0321/get", 100));
        let found = best(equal(3000), "/n0321/ge", &mut budget);
        assert_eq!((found.len(), budget.ranked), (MAX_SUGGESTIONS, 0));
        let mut better = equal(200);
        better.push((1.95, "/x/get"));
        let found = best(better, "/n0001/ge", &mut budget);
        // The suggestions themselves are still put in order.
        assert_eq!(found, ["/x/get", "/n0001/get", "/n0000/get"]);
    }
}

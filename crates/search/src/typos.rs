//! Terms that a mistyped word may mean.

use strsim::osa_distance;

use crate::index::{Index, letters};
use crate::scope::SearchScope;

/// Shorter words have too many neighbours.
const MIN_CHARS: usize = 4;
/// Words of fewer characters may have one mistake, longer ones two.
const TWO_MISTAKES_FROM: usize = 6;
/// Longer words are encoded data or several words, not typos.
const MAX_CHARS: usize = 32;
/// The number of terms that replace a word.
const MAX_TERMS: usize = 3;

/// Finds the nearest terms of the scope to a term that it does not have, the nearest first, then by their text. They
/// have the first or the last byte in common with it: few typos change both ends, and few other terms are compared.
pub(crate) fn nearest_terms(index: &Index<'_>, scope: &SearchScope, term: &str) -> Vec<u32> {
    let length = term.chars().count();
    if !(MIN_CHARS..=MAX_CHARS).contains(&length) {
        return Vec::new();
    }
    let max = if length < TWO_MISTAKES_FROM { 1 } else { 2 };
    let letters = letters(term);
    let near = match max {
        1 => index.terms_with_letters::<2>(letters),
        _ => index.terms_with_letters::<4>(letters),
    };
    let mut found: Vec<(usize, u32)> = Vec::new();
    for at in near {
        let other = index.term(at);
        let has_same_end =
            other.first() == term.as_bytes().first() || other.last() == term.as_bytes().last();
        if !has_same_end || other.len().abs_diff(term.len()) > 4 * max {
            continue;
        }
        let Ok(other) = std::str::from_utf8(other) else {
            continue;
        };
        let other_length = other.chars().count();
        let added = other_length.abs_diff(length);
        if other_length < MIN_CHARS - 1 || added > max {
            continue;
        }
        // An added character changes one letter of the set, any other mistake two.
        let differing = (index.letters(at) ^ letters).count_ones() as usize;
        if differing > 2 * max - added {
            continue;
        }
        let distance = osa_distance(term, other);
        if distance <= max && scope.tool_count(index, at) > 0 {
            found.push((distance, at));
        }
    }
    // Terms are sorted by their text, and so are their numbers.
    found.sort_unstable();
    found
        .into_iter()
        .take(MAX_TERMS)
        .map(|(_, term)| term)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;
    use crate::index::index_bytes;

    #[test]
    fn nearest_terms_are_those_of_the_scope() {
        let names = ["calendar", "calender_x", "cylinder", "file", "fire"];
        let documents = names.map(|name| Document {
            name,
            ..Document::default()
        });
        let bytes = index_bytes(&documents, None);
        let index = Index::new(&bytes).unwrap();
        let nearest = |scope: &SearchScope, term| {
            let terms = nearest_terms(&index, scope, term).into_iter();
            terms
                .map(|term| String::from_utf8_lossy(index.term(term)).into_owned())
                .collect::<Vec<_>>()
        };
        let all = SearchScope::new(&index, |_| true);
        assert_eq!(nearest(&all, "calandar"), ["calendar"]);
        assert_eq!(
            nearest(&all, "fiile"),
            ["file"],
            "one mistake in five characters"
        );
        assert!(nearest(&all, "fie").is_empty(), "three characters");
        let without_first = SearchScope::new(&index, |tool| tool != 0);
        assert!(!nearest(&without_first, "calandar").contains(&"calendar".to_owned()));
    }

    #[test]
    fn no_mistake_changes_more_than_two_letters_of_the_set() {
        for (word, other) in [
            ("read", "raed"),
            ("read", "reads"),
            ("read", "rend"),
            ("read", "red"),
        ] {
            assert!((letters(word) ^ letters(other)).count_ones() <= 2);
        }
    }
}

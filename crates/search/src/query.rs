//! A query as weighted terms.

use crate::aliases::aliases;
use crate::deprecated::DEPRECATED;
use crate::foreign::in_english;
use crate::index::Index;
use crate::scope::SearchScope;
use crate::tokens::{Token, tokens};
use crate::typos::nearest_terms;

/// The weight of a term that a word may also mean.
const ALIAS_WEIGHT: f64 = 0.5;
/// The weight that the replacements of a mistyped word share.
const TYPO_WEIGHT: f64 = 0.8;
/// The maximum number of words of one query that are corrected: each one is compared with every term.
const MAX_CORRECTED: usize = 8;
/// Stop words stay if fewer other words would remain.
const MIN_WORDS: usize = 2;

/// The kind of match between a term of the index and a word of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchKind {
    /// The word has this stem.
    Word,
    /// The word is an abbreviation of it, or an everyday word for it.
    Alias,
    /// The word is not in the index, and the term differs from it in one or two characters.
    Typo,
}

/// A term that a query looks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryTerm {
    /// The index of its word in the query.
    pub(crate) word: usize,
    /// Its number in the index.
    pub(crate) term: u32,
    pub(crate) weight: f64,
    pub(crate) kind: MatchKind,
}

/// The words of a query and the terms that they look for.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) words: Vec<Token>,
    pub(crate) terms: Vec<QueryTerm>,
    /// The query in English, if it was written in another language.
    pub(crate) english: Option<String>,
}

impl Query {
    /// Makes the query for a scope.
    pub(crate) fn new(index: &Index<'_>, scope: &SearchScope, text: &str) -> Self {
        let mut words = words(text);
        let find = |words: &[Token]| -> Vec<Option<u32>> {
            let found = words.iter().map(|word| scope.find(index, &word.term));
            found.collect()
        };
        let mut found = find(&words);
        let english = match found.contains(&None) {
            true => in_english(text, |stem| scope.find(index, stem).is_some()),
            false => None,
        };
        if let Some(english) = &english {
            words = self::words(english);
            found = find(&words);
        }
        let mut terms: Vec<QueryTerm> = Vec::new();
        let mut corrected = 0;
        let mut push = |word, term, weight, kind| {
            // A second mention of a term has no effect.
            if terms.iter().all(|known: &QueryTerm| known.term != term) {
                terms.push(QueryTerm {
                    word,
                    term,
                    weight,
                    kind,
                });
            }
        };
        for ((at, word), found) in words.iter().enumerate().zip(found) {
            let also: Vec<_> = aliases(&word.word)
                .iter()
                .filter_map(|alias| scope.find(index, alias))
                .collect();
            if let Some(term) = found {
                push(at, term, 1.0, MatchKind::Word);
            } else if also.is_empty() && corrected < MAX_CORRECTED {
                corrected += 1;
                let nearest = nearest_terms(index, scope, &word.term);
                let share = TYPO_WEIGHT / nearest.len().max(1) as f64;
                for term in nearest {
                    push(at, term, share, MatchKind::Typo);
                }
            }
            for term in also {
                push(at, term, ALIAS_WEIGHT, MatchKind::Alias);
            }
        }
        Self {
            words,
            terms,
            english,
        }
    }
}

impl Query {
    /// Whether it names tools that are deprecated.
    pub(crate) fn asks_for_deprecated(&self) -> bool {
        self.words.iter().any(|word| word.word == DEPRECATED)
    }
}

/// Returns the words of a query, each once, without stop words if at least two others remain.
fn words(text: &str) -> Vec<Token> {
    let mut words: Vec<Token> = Vec::new();
    for token in tokens(text) {
        if words.iter().all(|known| known.term != token.term) {
            words.push(token);
        }
    }
    if words.iter().filter(|word| !word.is_stop_word).count() >= MIN_WORDS {
        words.retain(|word| !word.is_stop_word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_stay_if_fewer_than_two_others_remain() {
        let check = |text, want: &[&str]| {
            let words = words(text);
            let words: Vec<_> = words.iter().map(|word| word.word.as_str()).collect();
            assert_eq!(words, want);
        };
        check("delete the old file", &["delete", "old", "file"]);
        check("who am I", &["who", "am", "i"]);
        check("the file", &["the", "file"]);
        check("file files file", &["file"]);
    }
}

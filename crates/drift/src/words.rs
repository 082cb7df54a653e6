//! The words of names and texts, as hashes: two tools or properties are similar if they share many.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The percentage of features that both have; two empty sets share none.
pub(super) fn shared(one: &BTreeSet<u64>, other: &BTreeSet<u64>) -> u32 {
    let all = one.union(other).count();
    let both = one.intersection(other).count() * 100;
    both.checked_div(all)
        .and_then(|share| u32::try_from(share).ok())
        .unwrap_or(0)
}

/// The hashes of a text's words, for comparison only.
pub(super) fn words(text: &str) -> BTreeSet<u64> {
    let mut words = BTreeSet::new();
    let (mut word, mut lower) = (String::new(), false);
    let mut end = |word: &mut String| {
        if !word.is_empty() {
            words.insert(hash(word));
            word.clear();
        }
    };
    for c in text.chars().chain([' ']) {
        if !c.is_alphanumeric() || (c.is_uppercase() && lower) {
            end(&mut word);
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        lower = c.is_lowercase();
    }
    words
}

/// Returns the hash of a word.
pub(super) fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

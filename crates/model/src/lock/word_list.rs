//! The record of a lock about the list of sensitive words. With this list an `untrusted` source hides tools.
//!
//! A source of version 3 names the version of the list (`sensitive_words`) if it is not the first one. Build, start and
//! check compare names with that version, so that a newer program neither hides a reviewed tool nor finds the lock
//! stale. A new lock uses the newest version. A source that is otherwise unchanged stays as it is locked.

use super::{Lock, LockedSource};
use crate::trust::{TrustLevel, WordList};

impl LockedSource {
    /// Returns the version of the list at the time of the lock; `None` at a level without sensitive names.
    pub fn word_list(&self) -> Option<WordList> {
        let is_compared = self.trust_level() == TrustLevel::Untrusted;
        is_compared.then(|| self.sensitive_words.unwrap_or(WordList::First))
    }
}

impl Lock {
    /// Whether a source was locked with an older version of the list than the newest one.
    pub fn has_older_words(&self) -> bool {
        let mut versions = self.sources.iter().filter_map(LockedSource::word_list);
        versions.any(|version| version < WordList::NEWEST)
    }

    /// Whether a source names the version of the list.
    pub(super) fn names_words(&self) -> bool {
        self.sources.iter().any(|one| one.sensitive_words.is_some())
    }

    /// Takes over the version of the list of each source that is otherwise the same in a lock of `known`.
    pub(super) fn keep_words<'a>(&mut self, known: impl Iterator<Item = &'a Self> + Clone) {
        for source in &mut self.sources {
            let newest = source.sensitive_words;
            let is_kept = known.clone().any(|lock| {
                let Some(other) = lock.source(source.path.as_str()) else {
                    return false;
                };
                source.sensitive_words = other.sensitive_words;
                other.sensitive_words < newest && *source == *other
            });
            if !is_kept {
                source.sensitive_words = newest;
            }
        }
    }
}

//! The record of a lock about the access rules of its config, and the format version that follows from its members.
//!
//! `config_digest` covers the sources and the section `access` together: if a source has changed, it cannot tell
//! whether these are the reviewed rules. Version 3 therefore has `access_digest` beside it whenever the config has the
//! section. A lock of an older version stays unchanged while its contents are unchanged.

use super::{LOCK_VERSION, Lock, PARTIAL_LOCK_VERSION};
use crate::digest::Digest;

/// What a lock records of the section `access` of its config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockedAccess<'a> {
    /// The lock has no record: its version is older.
    NotRecorded,
    /// The config had no such section.
    Absent,
    /// The config had one with this digest.
    Rules(&'a Digest),
}

impl Lock {
    /// Returns the record of the lock about the access rules.
    pub fn access(&self) -> LockedAccess<'_> {
        match &self.access_digest {
            Some(digest) => LockedAccess::Rules(digest),
            None if self.version < PARTIAL_LOCK_VERSION => LockedAccess::NotRecorded,
            None => LockedAccess::Absent,
        }
    }

    /// The format version of a new lock with this content.
    pub fn new_version(&self) -> u64 {
        let has_url_paths = self.sources.iter().any(|source| source.url_path.is_some());
        let is_bare = self.access_digest.is_none() && !self.names_words() && !has_url_paths;
        match is_bare && self.left_out_parts().is_empty() {
            true => LOCK_VERSION,
            false => PARTIAL_LOCK_VERSION,
        }
    }

    /// Gives a new lock its format version: the older version of a lock in `known` if both are the same in it, else the
    /// version of a new lock.
    ///
    /// A source that is the same apart from a newer list of sensitive words keeps the version of the older list.
    pub fn settle_version<'a, I>(&mut self, known: I)
    where
        I: IntoIterator<Item = &'a Self>,
        I::IntoIter: Clone,
    {
        let known = known.into_iter();
        let version = self.new_version();
        if self.left_out_parts().is_empty() {
            let mut same = self.clone();
            same.access_digest = None;
            for source in &mut same.sources {
                (source.sensitive_words, source.url_path) = (None, None);
            }
            for other in known.clone().filter(|other| other.version < version) {
                same.version = other.version;
                if same.root_digest() == other.root_digest() {
                    *self = same;
                    return;
                }
            }
        }
        self.keep_words(known);
        self.version = self.new_version();
    }
}

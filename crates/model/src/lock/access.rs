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

#[cfg(test)]
mod tests {
    use super::super::{LockedSource, MIN_LOCK_VERSION};
    use super::*;
    use crate::DiagnosticCode;
    use crate::config::Config;
    use crate::snapshot::Snapshot;

    /// Returns a new lock of a config with access rules, and one without.
    fn locks() -> [Lock; 2] {
        let rules = r#", "access": {"groups": ["g"], "rules": [{"allow": ["/a/*"], "to": ["g"]}]}"#;
        [rules, ""].map(|access| {
            let text = format!(r#"{{"mcpServers": {{"a": {{"command": "x"}}}}{access}}}"#);
            let config = Config::parse("c.json", text.as_bytes()).unwrap().config;
            let source = config.sources().next().unwrap();
            let mut lock = Lock {
                version: MIN_LOCK_VERSION,
                config_digest: config.digest(),
                access_digest: config.access_digest(),
                generator: "test".to_owned(),
                sources: vec![LockedSource::from_snapshot(source, &Snapshot::empty())],
                left_out: Vec::new(),
            };
            lock.settle_version([]);
            lock
        })
    }

    fn code_of(text: &str) -> DiagnosticCode {
        Lock::parse("x", text).unwrap_err()[0].code
    }

    #[test]
    fn lock_of_rules_has_version_3_and_is_read_back() {
        let [with, without] = locks();
        assert_eq!((with.version, without.version), (3, 2));
        let text = with.to_text();
        let again = Lock::parse("x", &text).unwrap();
        assert_eq!((&again, again.to_text()), (&with, text.clone()));
        let digest = with.access_digest.clone().unwrap();
        assert_eq!(again.access(), LockedAccess::Rules(&digest));
        assert!(text.starts_with(&format!("{{\n  \"access_digest\": \"{digest}\",\n")));
        assert!(!without.to_text().contains("access_digest"));
        assert_eq!(without.access(), LockedAccess::NotRecorded);
    }

    #[test]
    fn access_digest_is_covered_and_only_of_version_3() {
        let [with, _] = locks();
        let (text, digest) = (with.to_text(), with.access_digest.clone().unwrap());
        let other = Digest::of_text("test", "other");
        let edited = text.replace(digest.as_str(), other.as_str());
        assert_eq!(code_of(&edited), DiagnosticCode::LockCorrupt);
        let line = format!("  \"access_digest\": \"{digest}\",\n");
        assert_eq!(
            code_of(&text.replace(&line, "")),
            DiagnosticCode::LockCorrupt
        );
        let null = text.replace(&format!("\"{digest}\""), "null");
        assert_eq!(code_of(&null), DiagnosticCode::LockCorrupt);
        let older = |version: &str| {
            text.replace(
                "\"lock_version\": 3",
                &format!("\"lock_version\": {version}"),
            )
        };
        assert_eq!(code_of(&older("1")), DiagnosticCode::LockCorrupt);
        assert_eq!(code_of(&older("2")), DiagnosticCode::LockVersion);
        // Without a member of version 3 a lock does not have this version, even if its digest is right.
        let mut bare = with;
        bare.access_digest = None;
        assert_eq!(bare.access(), LockedAccess::Absent);
        assert_eq!(code_of(&bare.to_text()), DiagnosticCode::LockCorrupt);
    }

    #[test]
    fn lock_of_a_source_at_another_path_has_version_3_and_is_read_back() {
        let [_, mut lock] = locks();
        let old = lock.clone();
        lock.sources[0].url_path = Some("/mcp".to_owned());
        let mut same = lock.clone();
        same.settle_version([&old]);
        assert_eq!(same, old, "nothing that the older format holds has changed");
        lock.settle_version([]);
        assert_eq!(lock.version, PARTIAL_LOCK_VERSION);
        let text = lock.to_text();
        let again = Lock::parse("x", &text).unwrap();
        assert_eq!((&again, again.to_text()), (&lock, text.clone()));
        let edited = text.replace("\"url_path\": \"/mcp\"", "\"url_path\": \"/other\"");
        assert_eq!(code_of(&edited), DiagnosticCode::LockCorrupt);
        let older = text.replace("\"lock_version\": 3", "\"lock_version\": 2");
        assert_eq!(code_of(&older), DiagnosticCode::LockVersion);
    }

    #[test]
    fn lock_keeps_the_older_version_of_one_that_is_the_same() {
        let [new, _] = locks();
        for version in [MIN_LOCK_VERSION, LOCK_VERSION] {
            let mut old = new.clone();
            (old.version, old.access_digest) = (version, None);
            let mut same = new.clone();
            same.settle_version([&new, &old]);
            assert_eq!(same.to_text(), old.to_text());
            old.sources[0].protocol_version.push('x');
            let mut changed = new.clone();
            changed.settle_version([&old]);
            assert_eq!(changed, new);
        }
    }
}

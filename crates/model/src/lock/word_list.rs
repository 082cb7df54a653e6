//! The record of a lock about the list of sensitive words. With this list an `untrusted` source hides tools.
//!
//! A source of version 3 names the version of the list (`sensitive_words`) if it is not the first one. Build, start and
//! check compare names with that version, so that a newer program neither hides a reviewed tool nor finds the lock
//! stale. A new lock uses the newest version. A source that is otherwise unchanged stays as it is locked.

use super::{Lock, LockedSource};
use crate::config::Source;
use crate::trust::{TrustLevel, WordList};

impl LockedSource {
    /// Returns the version of the list at the time of the lock; `None` at a level without sensitive names.
    pub fn word_list(&self) -> Option<WordList> {
        let is_compared = self.trust_level() == TrustLevel::Untrusted;
        is_compared.then(|| self.sensitive_words.unwrap_or(WordList::First))
    }

    /// The member of a source that is locked now.
    pub(super) fn words_of(source: &Source) -> Option<WordList> {
        let version = source.exposure.sensitive().version();
        let is_compared = source.exposure.level() == TrustLevel::Untrusted;
        Some(version).filter(|version| is_compared && *version != WordList::First)
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

#[cfg(test)]
mod tests {
    use super::super::{LOCK_VERSION, MIN_LOCK_VERSION};
    use super::*;
    use crate::DiagnosticCode;
    use crate::config::Config;
    use crate::snapshot::{ListedTool, Snapshot};

    fn config(text: &str) -> Config {
        Config::parse("c.json", text.as_bytes()).unwrap().config
    }

    /// A new lock of two untrusted sources and a trusted one, each with these tools.
    fn lock(tools: &[&str]) -> Lock {
        let config = config(
            r#"{"mcpServers": {"a": {"url": "https://h.example/a"}, "b": {"command": "x", "trust": "untrusted"},
                "c": {"command": "x"}}}"#,
        );
        let mut snapshot = Snapshot::empty();
        let tool = |name: &&str| {
            let text = format!(r#"{{"name": "{name}", "inputSchema": {{"type": "object"}}}}"#);
            ListedTool::new((*name).to_owned(), &text)
        };
        snapshot.tools = tools.iter().map(tool).collect();
        let locked = |source| {
            let mut locked = LockedSource::from_snapshot(source, &snapshot);
            locked.describe(&config, |_, _| String::new());
            locked
        };
        let mut lock = Lock {
            version: LOCK_VERSION,
            config_digest: config.digest(),
            access_digest: None,
            generator: "test".to_owned(),
            sources: config.sources().map(locked).collect(),
            left_out: Vec::new(),
        };
        lock.settle_version([]);
        lock
    }

    /// The lock as a program wrote it that knew only the first list.
    fn older(lock: &Lock, version: u64) -> Lock {
        let mut older = lock.clone();
        older.version = version;
        older
            .sources
            .iter_mut()
            .for_each(|one| one.sensitive_words = None);
        Lock::parse("x", &older.to_text()).unwrap()
    }

    #[test]
    fn lock_names_the_word_list_of_untrusted_sources_and_is_read_back() {
        let new = lock(&["get", "rm_all"]);
        assert_eq!(new.version, 3);
        let text = new.to_text();
        assert_eq!(text.matches("\"sensitive_words\": 2").count(), 2);
        let again = Lock::parse("x", &text).unwrap();
        assert_eq!((&again, again.to_text()), (&new, text.clone()));
        let versions: Vec<_> = again.sources.iter().map(LockedSource::word_list).collect();
        assert_eq!(
            versions,
            [Some(WordList::NEWEST), Some(WordList::NEWEST), None]
        );
        let code = |from: &str, to: &str| {
            let text = text.replacen(from, to, 1);
            Lock::parse("x", &text).unwrap_err()[0].code
        };
        let member = "\"sensitive_words\": 2";
        let corrupt = DiagnosticCode::LockCorrupt;
        assert_eq!(code(member, "\"sensitive_words\": 1"), corrupt);
        assert_eq!(code(member, "\"sensitive_words\": null"), corrupt);
        assert_eq!(code(&format!("{member},"), ""), corrupt);
        let newer = code(member, "\"sensitive_words\": 3");
        assert_eq!(newer, DiagnosticCode::LockVersion);
    }

    #[test]
    fn lock_of_an_older_word_list_is_kept_until_its_source_changes() {
        let new = lock(&["get"]);
        for version in [MIN_LOCK_VERSION, LOCK_VERSION] {
            let old = older(&new, version);
            let mut same = new.clone();
            same.settle_version([&old]);
            assert_eq!(same.to_text(), old.to_text(), "version {version}");
            assert!(same.has_older_words());
        }
        let old = older(&new, LOCK_VERSION);
        let mut changed = new.clone();
        changed.sources[0].protocol_version.push('x');
        changed.settle_version([&old]);
        let words: Vec<_> = changed
            .sources
            .iter()
            .map(|one| one.sensitive_words)
            .collect();
        assert_eq!(words, [Some(WordList::NEWEST), None, None]);
        assert_eq!(changed.version, 3);
        // A tool that the new list hides is a change.
        let new = lock(&["get", "rm_all"]);
        let mut of_first = new.clone();
        let hidden = of_first.sources[1].hidden.pop().unwrap();
        assert_eq!(hidden.name, "rm_all");
        let mut again = new.clone();
        again.settle_version([&older(&of_first, LOCK_VERSION)]);
        let words: Vec<_> = again
            .sources
            .iter()
            .map(|one| one.sensitive_words)
            .collect();
        assert_eq!(words, [None, Some(WordList::NEWEST), None]);
    }

    #[test]
    fn config_uses_the_word_lists_of_its_lock() {
        let mut config = config(
            r#"{"mcpServers": {"a": {"url": "https://h.example/a"}, "b": {"command": "x", "trust": "untrusted"},
                "c": {"command": "x"}}}"#,
        );
        let exposes = |config: &Config| -> Vec<bool> {
            let sources = config.sources();
            sources.map(|one| one.exposure.exposes("rm_all")).collect()
        };
        assert_eq!(exposes(&config), [false, false, true]);
        let digest = config.digest();
        config.use_word_lists_of(&older(&lock(&["get"]), LOCK_VERSION));
        assert_eq!(exposes(&config), [true, true, true]);
        assert_eq!(config.digest(), digest, "the lock is not stale");
        config.use_word_lists_of(&lock(&["get"]));
        assert_eq!(exposes(&config), [false, false, true]);
    }
}

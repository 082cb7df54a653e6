//! The version of the list of sensitive words in a lock.

use crate::Config;
use broker_model::DiagnosticCode;
use broker_model::lock::*;
use broker_model::snapshot::{ListedTool, Snapshot};
use broker_model::trust::WordList;

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
    let locked = |source: &crate::Source| {
        let mut locked = source.to_locked(&snapshot);
        config.describe(&mut locked, |_, _| String::new());
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

//! The record of a lock about the access rules, and the version that follows from it.

use crate::Config;
use broker_model::DiagnosticCode;
use broker_model::digest::Digest;
use broker_model::lock::*;
use broker_model::snapshot::Snapshot;

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
            sources: vec![source.to_locked(&Snapshot::empty())],
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
    let other = Digest::from_text("test", "other");
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

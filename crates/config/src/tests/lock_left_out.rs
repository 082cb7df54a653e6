//! Parts that a lock leaves out are read back, and a wrong record is refused.

use crate::Config;
use broker_model::DiagnosticCode;
use broker_model::LeftOutCode;
use broker_model::item::ItemKind;
use broker_model::left_out::{LeftOut, MAX_RECORDS};
use broker_model::lock::*;
use broker_model::snapshot::Snapshot;

fn record(name: &str) -> LeftOut {
    LeftOut {
        kind: ItemKind::Tool,
        name: Some(name.to_owned()),
        code: LeftOutCode::SchemaRefused,
        place: "/inputSchema".to_owned(),
        reason: "a reason".to_owned(),
        digest: LeftOut::digest_of(name),
    }
}

fn lock() -> Lock {
    let text = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}}}"#;
    let config = Config::parse("c.json", text.as_bytes()).unwrap().config;
    let snapshot = Snapshot::empty();
    let sources = config.sources();
    Lock {
        version: LOCK_VERSION,
        config_digest: config.digest(),
        access_digest: None,
        generator: "test".to_owned(),
        sources: sources.map(|source| source.to_locked(&snapshot)).collect(),
        left_out: Vec::new(),
    }
}

/// The lock with its second source left out and a part of the first one.
fn partial() -> Lock {
    let mut lock = lock();
    let gone = lock.sources.remove(1);
    lock.left_out.push(LeftOutSource {
        path: gone.path,
        code: LeftOutCode::NotStarted,
        place: String::new(),
        reason: LeftOutCode::NotStarted.cause().to_owned(),
        config_digest: gone.config_digest,
        digest: None,
    });
    let prompt = LeftOut {
        kind: ItemKind::Prompt,
        name: None,
        ..record("x")
    };
    lock.sources[0].leave_out([record("t"), prompt]);
    lock.sources[0].kept = Some(LeftOutCode::NotStarted);
    lock.version = lock.new_version();
    lock
}

#[test]
fn partial_lock_is_read_back_and_written_with_the_same_bytes() {
    let lock = partial();
    assert_eq!(lock.version, PARTIAL_LOCK_VERSION);
    let text = lock.to_text();
    let again = Lock::parse("x.lock.json", &text).unwrap();
    assert_eq!(again, lock);
    assert_eq!(again.to_text(), text);
    let parts = again.left_out_parts();
    let shown: Vec<_> = parts
        .iter()
        .map(|part| {
            (
                part.source.as_str(),
                part.tool.as_deref(),
                part.code.as_str(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("/a", None, "not_started"),
            ("/a", Some("t"), "schema_refused"),
            ("/a", None, "schema_refused"),
            ("/b", None, "not_started"),
        ]
    );
}

#[test]
fn root_digest_covers_what_is_left_out() {
    let text = partial().to_text();
    for (from, to) in [
        ("schema_refused", "lint_refused"),
        ("not_started", "unstable"),
        ("\"name\": \"t\"", "\"name\": \"u\""),
    ] {
        let problems = Lock::parse("x", &text.replacen(from, to, 1)).unwrap_err();
        assert_eq!(problems[0].code, DiagnosticCode::LockCorrupt, "{from}");
    }
}

#[test]
fn version_3_is_only_that_of_a_lock_with_left_out_parts() {
    let mut whole = lock();
    assert_eq!(whole.new_version(), LOCK_VERSION);
    assert!(!whole.to_text().contains("left_out"));
    whole.version = PARTIAL_LOCK_VERSION;
    let problems = Lock::parse("x", &whole.to_text()).unwrap_err();
    assert_eq!(problems[0].code, DiagnosticCode::LockCorrupt);
    let text = partial().to_text();
    let older = text.replace("\"lock_version\": 3", "\"lock_version\": 2");
    let problems = Lock::parse("x", &older).unwrap_err();
    assert_eq!(problems[0].code, DiagnosticCode::LockVersion);
}

#[test]
fn records_over_the_limit_are_counted_in_any_order() {
    let names: Vec<_> = (0..MAX_RECORDS + 3).map(|at| format!("t{at}")).collect();
    let mut one = lock().sources.remove(0);
    let mut other = one.clone();
    one.leave_out(names.iter().map(|name| record(name)));
    other.leave_out(names.iter().rev().map(|name| record(name)));
    assert_eq!(one, other);
    assert_eq!(one.left_out.len(), MAX_RECORDS + 3);
    one.count_rest();
    other.count_rest();
    assert_eq!(one, other);
    assert_eq!(one.left_out.len(), MAX_RECORDS);
    assert_eq!(one.more_left_out.as_ref().map(|more| more.count), Some(3));
    assert_eq!(one.left_out_parts().len(), MAX_RECORDS + 1);
    let compiled = LockedSource::from_compiled(&one.to_json().to_string()).unwrap();
    assert_eq!(compiled.left_out, one.left_out);
}

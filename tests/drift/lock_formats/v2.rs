//! Locks of format version 2: read as long as they use none of its new members, else refused with the
//! member and what to upgrade. None is written yet.

use broker_model::lock::{LOCK_VERSION, Lock};
use broker_model::{Diagnostic, DiagnosticCode};
use serde_json::{Value, json};

const LOCK_V1: &str = include_str!("lock-v1.json");

/// The lock of the fixture as version 2, with a root digest that fits.
fn version_2() -> String {
    let mut lock = Lock::parse("lock.json", LOCK_V1).expect("a lock of version 1 is read");
    lock.version = 2;
    lock.to_text()
}

/// Puts a member into the object that `pointer` leads to, as the first one.
fn with(pointer: &str, name: &str, value: Value) -> String {
    let mut lock: Value = serde_json::from_str(&version_2()).expect("JSON");
    let place = lock.pointer_mut(pointer).and_then(Value::as_object_mut);
    place.expect("an object").insert(name.to_owned(), value);
    serde_json::to_string_pretty(&lock).expect("JSON")
}

fn refused(text: &str) -> Vec<Diagnostic> {
    Lock::parse("lock.json", text).expect_err("it is refused")
}

#[test]
fn lock_v2_without_new_members_is_read_and_written_unchanged() {
    let text = version_2();
    assert!(text.contains("\"lock_version\": 2"), "{text:.300}");
    let lock = Lock::parse("lock.json", &text).expect("version 2 is read");
    assert_eq!(lock.to_text(), text);
    let old = Lock::parse("lock.json", LOCK_V1).expect("version 1 is read");
    assert_eq!(lock.sources, old.sources);
    // The digest covers the version, so that it cannot be changed alone.
    assert_ne!(lock.root_digest(), old.root_digest());
    let relabelled = LOCK_V1.replace("\"lock_version\": 1", "\"lock_version\": 2");
    let problems = refused(&relabelled);
    assert_eq!(problems[0].code, DiagnosticCode::LockCorrupt);
    assert_eq!(problems[0].pointer.as_deref(), Some("/root_digest"));
}

#[test]
fn lock_v2_is_not_written_while_its_members_are_unused() {
    assert_eq!(LOCK_VERSION, 1);
    let lock = Lock::parse("lock.json", LOCK_V1).expect("version 1 is read");
    assert_eq!(lock.version, LOCK_VERSION);
    assert_eq!(lock.to_text(), LOCK_V1);
}

#[test]
fn lock_v2_with_a_new_member_is_refused_with_its_name() {
    let tool = "/sources/0/exposed/0";
    for (pointer, name, value) in [
        ("", "tokenizer_version", json!(1)),
        ("/sources/0", "command", json!(["npx", "server"])),
        ("/sources/0", "tool_filter", json!(["*"])),
        ("/sources/0", "path_aliases", json!({"a": "b"})),
        ("/sources/0", "url", json!("https://${HOST}/mcp")),
        ("/sources/0", "header_names", json!(["Authorization"])),
        ("/sources/1", "trust", json!("untrusted")),
        (tool, "kind", json!("resource")),
        (tool, "summary", json!("Finds a place.")),
        (tool, "search_hints", json!(["where is it"])),
        ("/sources/0/hidden/0", "kind", json!("prompt")),
        ("/sources/0", "of_a_later_day", Value::Null),
    ] {
        let problems = refused(&with(pointer, name, value));
        let [problem] = &problems[..] else {
            panic!("{name}: {problems:?}");
        };
        assert_eq!(problem.code, DiagnosticCode::LockVersion, "{name}");
        assert_eq!(
            problem.message,
            format!(
                "the lock uses `{name}` of format version 2, which mcp-broker and broker-gen {} do not support",
                env!("CARGO_PKG_VERSION")
            )
        );
        let place = format!("{pointer}/{name}");
        assert_eq!(problem.pointer.as_deref(), Some(&place[..]));
        assert!(problem.position.is_some_and(|at| at.line > 1), "{name}");
        let help = problem.remedy();
        for part in ["broker-gen 0.1.0", "upgrade mcp-broker", "make a new lock"] {
            assert!(help.contains(part), "{help}");
        }
    }
}

#[test]
fn lock_v2_with_several_new_members_names_each_once() {
    let mut lock: Value = serde_json::from_str(&version_2()).expect("JSON");
    for source in lock["sources"].as_array_mut().expect("sources") {
        source["command"] = json!(["x"]);
        for tool in source["exposed"].as_array_mut().expect("tools") {
            tool["summary"] = json!("x");
        }
    }
    let problems = refused(&lock.to_string());
    let pointers: Vec<_> = problems
        .iter()
        .map(|problem| problem.pointer.as_deref().unwrap_or_default())
        .collect();
    assert_eq!(
        pointers,
        ["/sources/0/command", "/sources/0/exposed/0/summary"]
    );
}

#[test]
fn lock_v1_with_a_member_of_version_2_is_refused() {
    let newer = LOCK_V1.replacen(
        "\"backend\"",
        "\"command\": [\"npx\"],\n      \"backend\"",
        1,
    );
    let problems = refused(&newer);
    assert_eq!(problems[0].code, DiagnosticCode::LockCorrupt);
    let message = &problems[0].message;
    assert!(message.starts_with("unknown field `command`"), "{message}");
    assert_eq!(problems[0].pointer.as_deref(), Some("/sources/0/command"));
}

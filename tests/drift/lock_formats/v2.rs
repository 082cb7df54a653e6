//! Locks of format version 2: their members and their order, and the refusal of members that this program does
//! not know. A lock of version 1 never has them.

use broker_config::Config;
use broker_model::lock::{EndpointSettings, LOCK_VERSION, Lock, MIN_LOCK_VERSION};
use broker_model::{Diagnostic, DiagnosticCode};
use serde_json::{Value, json};

const CONFIG: &str = include_str!("lock-v1-config.json");
const LOCK_V1: &str = include_str!("lock-v1.json");

/// The lock of the fixture as version 2, with a root digest that fits.
fn version_2() -> String {
    let mut lock = Lock::parse("lock.json", LOCK_V1).expect("a lock of version 1 is read");
    lock.version = 2;
    lock.to_text()
}

/// The lock of the fixture as `broker-gen lock` writes it now.
fn described() -> String {
    let mut lock = Lock::parse("lock.json", LOCK_V1).expect("a lock of version 1 is read");
    let config = Config::parse("c.json", CONFIG.as_bytes()).expect("a config");
    lock.version = LOCK_VERSION;
    for source in &mut lock.sources {
        config.config.describe(source, |_, tool| {
            format!("Summary of {}", tool.upstream_name)
        });
    }
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
fn lock_v2_is_read_and_written_with_the_same_bytes() {
    let text = described();
    let lock = Lock::parse("lock.json", &text).expect("version 2 is read");
    assert_eq!(lock.to_text(), text);
    let settings = lock.sources[0].settings.as_ref().expect("its fields");
    assert!(
        matches!(&settings.endpoint, EndpointSettings::Process(command) if !command.words().is_empty())
    );
    // The same lock in version 1 has the bytes of the fixture.
    let mut old = lock.clone();
    old.version = MIN_LOCK_VERSION;
    assert_eq!(old.to_text(), LOCK_V1);
    // Any order of members is read.
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(Lock::parse("x", &value.to_string()).expect("read"), lock);
}

#[test]
fn lock_v2_blocks_begin_with_what_they_are_about() {
    let text = described();
    let order = |from: &str, indent: &str| -> Vec<String> {
        let at = text.find(from).expect("the block");
        let lines = text[at..].lines().skip(1);
        let begin = format!("{indent}\"");
        lines
            .take_while(|line| {
                line.len() > indent.len() - 2 && !line.starts_with(&format!("{}}}", &indent[2..]))
            })
            .filter(|line| line.starts_with(&begin))
            .map(|line| line.trim().split('"').nth(1).expect("a key").to_owned())
            .collect()
    };
    assert_eq!(
        order("\"sources\": [\n    {", "      ")[..4],
        ["path", "command", "tool_filter", "path_aliases"]
    );
    assert_eq!(
        order("        {\n          \"exposed_name\"", "          "),
        ["exposed_name", "summary", "upstream_name", "raw", "digests"]
    );
}

#[test]
fn lock_v2_members_are_covered_by_the_root_digest() {
    let text = described();
    for (old, new) in [
        ("\"Summary of ", "\"Title of "),
        ("\"command\": [\n        \"", "\"command\": [\n        \"x"),
        (
            "\"tool_filter\": [\n        \"",
            "\"tool_filter\": [\n        \"x",
        ),
    ] {
        assert!(text.contains(old), "{old}");
        let problems = refused(&text.replacen(old, new, 1));
        assert_eq!(problems[0].code, DiagnosticCode::LockCorrupt, "{old}");
        assert_eq!(problems[0].pointer.as_deref(), Some("/root_digest"));
    }
}

#[test]
fn lock_v2_word_of_another_form_is_refused() {
    let digest = json!({"digest": format!("sha256/1:{}", "0".repeat(64))});
    for command in [
        json!([["one"]]),
        json!([[]]),
        json!([["a", "b"]]),
        json!([["", digest]]),
        json!([{"digest": "x"}]),
        json!([{"digest": digest["digest"], "more": 1}]),
        json!([null]),
        json!({"shell": ["a"], "more": 1}),
        json!("npx"),
    ] {
        let mut lock: Value = serde_json::from_str(&described()).expect("JSON");
        lock["sources"][0]["command"] = command.clone();
        let problems = refused(&lock.to_string());
        assert_eq!(problems[0].code, DiagnosticCode::LockCorrupt, "{command}");
        assert_eq!(
            problems[0].message,
            "`command` has another form than `broker-gen lock` writes"
        );
        assert_eq!(problems[0].pointer.as_deref(), Some("/sources/0/command"));
    }
    let mut lock: Value = serde_json::from_str(&described()).expect("JSON");
    let source = lock["sources"][0].as_object_mut().expect("a source");
    source.remove("command");
    let problems = refused(&lock.to_string());
    assert_eq!(
        problems[0].message,
        "the source has `tool_filter`, and neither `command` nor `url`"
    );
    assert_eq!(
        problems[0].pointer.as_deref(),
        Some("/sources/0/tool_filter")
    );
}

#[test]
fn lock_v2_with_a_new_member_is_refused_with_its_name() {
    let tool = "/sources/0/exposed/0";
    for (pointer, name, value) in [
        ("", "tokenizer_version", json!(1)),
        ("/sources/1", "of_another_day", json!("untrusted")),
        (tool, "kind", json!("resource")),
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
        source["of_a_later_day"] = json!("https://h");
        for tool in source["exposed"].as_array_mut().expect("tools") {
            tool["kind"] = json!("prompt");
        }
    }
    let problems = refused(&lock.to_string());
    let pointers: Vec<_> = problems
        .iter()
        .map(|problem| problem.pointer.as_deref().unwrap_or_default())
        .collect();
    assert_eq!(
        pointers,
        ["/sources/0/of_a_later_day", "/sources/0/exposed/0/kind"]
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

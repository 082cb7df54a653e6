//! The content of a lock, the texts that its reader refuses, and its stable bytes.

use serde_json::{Value, json};

use crate::Config;
use broker_model::codes::DiagnosticCode;
use broker_model::digest::Digest;
use broker_model::lock::*;
use broker_model::snapshot::Snapshot;
use broker_model::trust::TrustLevel;

fn snapshot(tools: Vec<Value>) -> Snapshot {
    Snapshot {
        resources: Vec::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
        server_info: json!({"name": "s", "version": "1"}),
        protocol_version: "2025-11-25".to_owned(),
        capabilities: json!({"tools": {}}),
        instructions: Some("one\ntwo".to_owned()),
        tools: tools
            .into_iter()
            .map(|tool| tool.as_object().unwrap().clone().into())
            .collect(),
    }
}

fn locked(tools: Vec<Value>, volatile: &[&str]) -> Lock {
    let document = json!({"tree": [{"path": "/a", "type": "node", "source": {
        "command": "server", "tool_filter": ["*", "!secret*"],
        "path_aliases": {"get_file_contents": "get_file"}, "volatile": volatile,
    }}]});
    let config = Config::parse("c.json", document.to_string().as_bytes())
        .unwrap()
        .config;
    let source = config.sources().next().unwrap().to_locked(&snapshot(tools));
    Lock {
        version: LOCK_VERSION,
        config_digest: config.digest(),
        access_digest: None,
        generator: "broker-gen 0".to_owned(),
        sources: vec![source],
        left_out: Vec::new(),
    }
}

fn tools() -> Vec<Value> {
    vec![
        json!({"name": "get_file_contents", "description": "first\r\n\nlast\u{202e}", "inputSchema": {"type": "object", "maximum": 18446744073709551615u64}, "x-new": [1.5, null]}),
        json!({"name": "add", "inputSchema": true}),
        json!({"name": "secret_key", "inputSchema": {}}),
    ]
}

fn code_of(text: &str) -> (DiagnosticCode, Option<usize>) {
    let problems = Lock::parse("x.lock.json", text).unwrap_err();
    (problems[0].code, problems[0].position.map(|p| p.line))
}

#[test]
fn lock_is_read_back_and_written_with_the_same_bytes() {
    let lock = locked(tools(), &[]);
    let text = lock.to_text();
    let again = Lock::parse("x.lock.json", &text).unwrap();
    assert_eq!(again, lock);
    assert_eq!(again.to_text(), text);
    let mut shuffled = tools();
    shuffled.reverse();
    assert_eq!(locked(shuffled, &[]).to_text(), text);
    assert!(
        text.contains("\"first\\r\",\n")
            && text.contains("\"last\\u202e\"")
            && text.contains("18446744073709551615"),
        "{text}"
    );
    let source = &again.sources[0];
    assert_eq!(
        source
            .exposed
            .iter()
            .map(|t| t.exposed_name.as_str())
            .collect::<Vec<_>>(),
        ["add", "get_file"]
    );
    assert_eq!(source.hidden[0].name, "secret_key");
    assert_eq!(source.exposed[1].raw, *tools()[0].as_object().unwrap());
}

#[test]
fn lock_root_digest_covers_the_package_if_there_is_one() {
    let mut lock = locked(tools(), &[]);
    let without = lock.to_text();
    assert!(!without.contains("\"package\""), "{without}");
    lock.sources[0].package = Some(Package {
        kind: PackageKind::Npm,
        name: "@a/b".to_owned(),
        version: Some("1.0.0".to_owned()),
        integrity: Some("sha512-AA==".to_owned()),
        pinned: true,
    });
    let text = lock.to_text();
    assert_eq!(Lock::parse("x.lock.json", &text).unwrap(), lock);
    let edited = text.replace("sha512-AA==", "sha512-BB==");
    assert_eq!(code_of(&edited).0, DiagnosticCode::LockCorrupt);
    let unknown = text.replace("\"kind\": \"npm\"", "\"kind\": \"cargo\"");
    let line = unknown.lines().position(|line| line.contains("\"cargo\""));
    assert_eq!(
        code_of(&unknown),
        (DiagnosticCode::LockCorrupt, line.map(|at| at + 1))
    );
}

#[test]
fn lock_leaves_volatile_members_out_of_bytes_and_digests() {
    let with = |default: i64| json!({"name": "t", "inputSchema": {"properties": {"fields": {"default": default}, "o": {"default": 1}}}});
    let pattern = ["/tools/*/inputSchema/properties/fields/default"];
    assert_eq!(
        locked(vec![with(1)], &pattern).to_text(),
        locked(vec![with(2)], &pattern).to_text()
    );
    assert_ne!(
        locked(vec![with(1)], &[]).to_text(),
        locked(vec![with(2)], &[]).to_text()
    );
    assert!(
        locked(vec![with(1)], &pattern)
            .to_text()
            .contains(pattern[0])
    );
}

#[test]
fn lock_of_another_version_is_refused_before_other_checks() {
    let text = locked(tools(), &[]).to_text();
    let line_of = |needle: &str| text.lines().position(|line| line.contains(needle)).unwrap() + 1;
    let newer = text
        .replace("\"lock_version\": 2", "\"lock_version\": 4")
        .replace("\"sources\"", "\"origins\"");
    assert_eq!(code_of(&newer).0, DiagnosticCode::LockVersion);
    assert_eq!(
        code_of(&text.replace("\"lock_version\": 2", "\"lock_version\": 0")).0,
        DiagnosticCode::LockVersion
    );
    assert_eq!(
        code_of(&text.replace(
            "\"hash_model\": \"sha256/1\"",
            "\"hash_model\": \"blake/9\""
        )),
        (DiagnosticCode::LockVersion, Some(line_of("\"hash_model\"")))
    );
}

#[test]
fn lock_edited_torn_or_conflicting_is_refused_with_the_line() {
    let text = locked(tools(), &[]).to_text();
    let line_of = |needle: &str| text.lines().position(|line| line.contains(needle)).unwrap() + 1;

    let edited = text.replace("\"first\\r\"", "\"hello\"");
    let (code, line) = code_of(&edited);
    assert_eq!(code, DiagnosticCode::LockCorrupt);
    assert!(
        edited
            .lines()
            .nth(line.unwrap() - 1)
            .unwrap()
            .contains("\"description\": \"sha256/1:"),
        "{line:?}"
    );

    let edited = text.replace(
        "\"protocol_version\": \"2025-11-25\"",
        "\"protocol_version\": \"2025-06-18\"",
    );
    assert_eq!(
        code_of(&edited),
        (DiagnosticCode::LockCorrupt, Some(line_of("root_digest")))
    );

    assert_eq!(
        code_of(&text[..text.len() / 2]).0,
        DiagnosticCode::LockCorrupt
    );
    let conflict = text.replacen("  \"sources\"", "<<<<<<< ours\n  \"sources\"", 1);
    assert_eq!(
        code_of(&conflict),
        (DiagnosticCode::LockCorrupt, Some(line_of("\"sources\"")))
    );
    for empty in ["", "\n"] {
        let problems = Lock::parse("x.lock.json", empty).unwrap_err();
        assert!(
            problems[0]
                .position
                .is_some_and(|at| at.line > 0 && at.column > 0),
            "{problems:?}"
        );
    }
    assert_eq!(code_of("[]").0, DiagnosticCode::LockCorrupt);
    assert_eq!(code_of("{}").0, DiagnosticCode::LockCorrupt);
}

#[test]
fn lock_with_a_member_of_a_wrong_form_is_refused_at_its_place() {
    // In version 2 an unknown member is refused before.
    let mut lock = locked(tools(), &[]);
    lock.version = MIN_LOCK_VERSION;
    let text = lock.to_text();
    let edited = |edit: &dyn Fn(&mut Value)| {
        let mut lock: Value = serde_json::from_str(&text).unwrap();
        edit(&mut lock);
        let mut problems = Lock::parse("x.lock.json", &lock.to_string()).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        let problem = problems.remove(0);
        assert_eq!(problem.code, DiagnosticCode::LockCorrupt);
        (problem.pointer.unwrap(), problem.message)
    };
    for (at, value, message) in [
        ("/backend", json!("x"), "unknown variant `x`"),
        ("/config_digest", json!("sha256/1:0"), "not a digest"),
        ("/path", json!("a"), "begins with `/`"),
        ("/exposed/1/exposed_name", json!(1), "expected a string"),
        (
            "/exposed/1/raw",
            json!({"description": "x"}),
            "not a list of lines",
        ),
        ("/hidden/0/digest", json!(null), "expected a string"),
    ] {
        let at = format!("/sources/0{at}");
        let (pointer, found) = edited(&|lock| *lock.pointer_mut(&at).unwrap() = value.clone());
        assert_eq!(pointer, at);
        assert!(found.contains(message), "{found}");
    }
    let source = |lock: &mut Value, member: &str, value: Option<Value>| {
        let source = lock["sources"][0].as_object_mut().unwrap();
        source.remove(member);
        source.extend(value.map(|value| (member.to_owned(), value)));
    };
    let (pointer, found) = edited(&|lock| source(lock, "hidden", None));
    assert_eq!(
        (&pointer[..], &found[..]),
        ("/sources/0", "missing field `hidden`")
    );
    let (pointer, found) = edited(&|lock| source(lock, "a/b", Some(json!(1))));
    assert_eq!(pointer, "/sources/0/a~1b");
    assert!(found.starts_with("unknown field `a/b`"), "{found}");
    // Serde accepts these forms, and a lock never has them.
    let raw = "/sources/0/exposed/1/raw/description";
    let (pointer, found) = edited(&|lock| *lock.pointer_mut(raw).unwrap() = json!([]));
    assert_eq!(pointer, raw);
    assert!(
        found.starts_with("`description` has another form"),
        "{found}"
    );
    for (member, value) in [
        ("package", json!(null)),
        ("instructions", json!([])),
        ("volatile", json!([])),
    ] {
        let (pointer, found) = edited(&|lock| source(lock, member, Some(value.clone())));
        assert_eq!(pointer, format!("/sources/0/{member}"));
        let expected = format!("`{member}` has another form than");
        assert!(found.starts_with(&expected), "{found}");
    }
}

#[test]
fn lock_with_a_duplicate_tool_or_source_is_refused() {
    let lock = locked(tools(), &[]);
    let mut twice = lock.clone();
    twice.sources.push(lock.sources[0].clone());
    assert_eq!(code_of(&twice.to_text()).0, DiagnosticCode::LockOrphan);
    let mut twice = lock.clone();
    let tool = twice.sources[0].exposed[0].clone();
    twice.sources[0].exposed.push(tool);
    assert_eq!(code_of(&twice.to_text()).0, DiagnosticCode::LockOrphan);
}

#[test]
fn lock_with_other_white_space_or_key_order_is_equal() {
    let lock = locked(tools(), &[]);
    let text = lock.to_text();
    assert_eq!(Lock::parse("x", &text.replace('\n', "\r\n")).unwrap(), lock);
    let value: Value = serde_json::from_str(&text).unwrap();
    let reversed: Vec<String> = value
        .as_object()
        .unwrap()
        .iter()
        .rev()
        .map(|(k, v)| format!("{}:{v}", Value::from(k.as_str())))
        .collect();
    assert_eq!(
        Lock::parse("x", &format!("{{{}}}", reversed.join(","))).unwrap(),
        lock
    );
}

#[test]
fn lock_digest_is_equal_for_other_number_forms() {
    let digest = |text: &str| {
        Digest::from_tool(
            broker_model::json::parse(text)
                .unwrap()
                .as_object()
                .unwrap(),
        )
    };
    assert_eq!(
        digest(r#"{"a":1.0,"b":-0,"c":"A"}"#),
        digest(r#"{"a":1,"b":0,"c":"\u0041"}"#)
    );
    assert_ne!(
        digest(r#"{"a":9007199254740993}"#),
        digest(r#"{"a":9007199254740992}"#)
    );
}

#[test]
fn locks_here_have_digests_of_the_first_range() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut files = vec![format!("{root}/smoke_config.lock.json")];
    for folder in std::fs::read_dir(format!("{root}/tests")).unwrap() {
        files.push(format!(
            "{}/config.lock.json",
            folder.unwrap().path().display()
        ));
    }
    let mut count = 0;
    for text in files
        .into_iter()
        .filter_map(|file| std::fs::read_to_string(file).ok())
    {
        // Reading computes every digest again.
        Lock::parse("x", &text).unwrap();
        assert!(!text.contains("sha256/2:"));
        count += 1;
    }
    assert!(count > 5);
}

/// A lock of one source whose config has these members.
fn locked_with(members: Value) -> Lock {
    let mut source = json!({"command": "server"});
    for (key, value) in members.as_object().unwrap() {
        source[key] = value.clone();
    }
    let document = json!({"tree": [{"path": "/a", "source": source}]}).to_string();
    let config = Config::parse("c.json", document.as_bytes()).unwrap().config;
    let tools = ["get", "delete"].map(|name| json!({"name": name, "inputSchema": {}}));
    let source = config.sources().next().unwrap();
    let mut locked = source.to_locked(&snapshot(tools.to_vec()));
    config.describe(&mut locked, |_, _| "s".to_owned());
    let mut lock = Lock {
        version: LOCK_VERSION,
        config_digest: config.digest(),
        access_digest: None,
        generator: "broker-gen 0".to_owned(),
        sources: vec![locked],
        left_out: Vec::new(),
    };
    lock.settle_version([]);
    lock
}

#[test]
fn lock_has_the_level_if_it_is_not_the_default_and_hides_by_it() {
    for (members, level, hidden) in [
        (json!({}), TrustLevel::Trusted, &[] as &[&str]),
        (json!({"trust": "trusted"}), TrustLevel::Trusted, &[]),
        (
            json!({"trust": "untrusted"}),
            TrustLevel::Untrusted,
            &["delete"],
        ),
        (
            json!({"trust": "verified", "tool_filter": ["delete"]}),
            TrustLevel::Verified,
            &["get"],
        ),
    ] {
        let lock = locked_with(members.clone());
        let text = lock.to_text();
        assert_eq!(Lock::parse("x.lock.json", &text).unwrap(), lock);
        let source = &lock.sources[0];
        assert_eq!(source.trust_level(), level, "{members}");
        let names: Vec<_> = source.hidden.iter().map(|tool| &tool.name[..]).collect();
        assert_eq!(names, hidden, "{members}");
        let written = members["trust"].as_str();
        let written = written.filter(|level| *level != "trusted");
        let expected =
            written.map(|level| format!("\"path\": \"/a\",\n      \"trust\": \"{level}\","));
        match expected {
            Some(expected) => assert!(text.contains(&expected), "{text}"),
            None => assert!(!text.contains("\"trust\""), "{text}"),
        }
    }
}

#[test]
fn lock_with_a_level_of_another_form_is_refused() {
    let text = locked_with(json!({"trust": "untrusted"})).to_text();
    for (from, to) in [
        ("\"untrusted\"", "\"none\""),
        ("\"untrusted\"", "null"),
        ("\"trust\": \"untrusted\"", "\"trust\": \"trusted\""),
    ] {
        assert_eq!(
            code_of(&text.replace(from, to)).0,
            DiagnosticCode::LockCorrupt,
            "{to}"
        );
    }
    let mut lock: Value = serde_json::from_str(&text).unwrap();
    lock["sources"][0]
        .as_object_mut()
        .unwrap()
        .remove("command");
    let problems = Lock::parse("x.lock.json", &lock.to_string()).unwrap_err();
    assert!(
        problems[0].message.starts_with("the source has `trust`"),
        "{problems:?}"
    );
}

#[test]
fn settings_name_a_raised_and_a_lowered_level() {
    let settings = |members| locked_with(members).sources.remove(0).settings.unwrap();
    let (default, trusted, lower) = (
        settings(json!({})),
        settings(json!({"trust": "trusted"})),
        settings(json!({"trust": "untrusted"})),
    );
    assert_eq!(default.changes(&trusted), []);
    let changes = trusted.changes(&lower);
    assert_eq!(changes.len(), 1);
    assert_eq!(
        (changes[0].member, &changes[0].message[..]),
        (
            "trust",
            "the trust level was lowered from `trusted` to `untrusted`"
        )
    );
    // An absent level is the default.
    let changes = lower.changes(&default);
    assert_eq!(
        (&changes[0].new, &changes[0].message[..]),
        (
            &json!("trusted"),
            "the trust level was raised from `untrusted` to `trusted`"
        )
    );
}

#[test]
fn lock_repeats_search_hints_and_version_1_has_none() {
    let mut lock = locked(tools(), &[]);
    let without = lock.to_text();
    lock.sources[0].exposed[0].search_hints = vec!["plus".to_owned(), "sum of".to_owned()];
    let text = lock.to_text();
    assert!(text.contains("\"search_hints\": [\n"), "{text}");
    assert_eq!(Lock::parse("x.lock.json", &text).unwrap(), lock);
    assert_ne!(lock.root_digest(), locked(tools(), &[]).root_digest());
    // The element of a catalog does not have them: no broker shows them.
    assert!(!lock.sources[0].to_json().to_string().contains("plus"));
    lock.version = MIN_LOCK_VERSION;
    assert!(!lock.to_text().contains("search_hints"));
    assert!(!without.contains("search_hints"));
    let damaged = text.replace("\"lock_version\": 2", "\"lock_version\": 1");
    assert_eq!(code_of(&damaged).0, DiagnosticCode::LockCorrupt);
}

//! The lock in format version 2: what it says of the config, what it hides, and locks of older versions that stay.

use broker_model::lock::{LOCK_VERSION, Lock, MIN_LOCK_VERSION};
use harness::{Bench, contains};
use serde_json::{Value, json};

use super::bench::tool;

/// Rewrites the lock as a program that knew this version wrote it.
fn as_version(bench: &Bench, version: u64) -> String {
    let mut lock = Lock::parse("c.lock.json", &bench.lock_text()).expect("the lock is whole");
    (lock.version, lock.access_digest) = (version, None);
    lock.generator = "broker-gen 0.0.1".to_owned();
    let text = lock.to_text();
    bench.write("c.lock.json", &text);
    text
}

/// Asserts that no form of `lock` writes the lock, and that it is valid.
fn assert_is_left(bench: &Bench) {
    let before = bench.lock_state();
    for args in [
        &["lock"][..],
        &["lock", "--source", "/a"],
        &["lock", "--dry-run"],
    ] {
        let output = bench.verb(args);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        contains(&output.stderr, &["c.lock.json is up to date"]);
        assert_eq!(bench.lock_state(), before, "{args:?}");
    }
    assert_eq!(bench.check().0, Some(0));
}

#[test]
fn lock_of_version_1_is_left_as_it_is_until_it_changes() {
    let bench = Bench::with_sources(&["a", "b"]);
    bench.lock();
    assert_eq!(bench.lock_json()["lock_version"], 2);
    let old = as_version(&bench, MIN_LOCK_VERSION);
    assert_is_left(&bench);
    let diff = bench.run(&["verify", "--config", "c.json", "--offline"]);
    assert_eq!(diff.code, Some(0), "{}", diff.stderr);

    bench.one_tool("a", tool("new"));
    let output = bench.lock();
    contains(
        &output.stderr,
        &["wrote c.lock.json", "had format version 1"],
    );
    let lock = bench.lock_json();
    assert_eq!(lock["lock_version"], 2);
    // The source that did not change has the new members as well.
    assert!(lock["sources"][1]["command"].is_array(), "{lock:#}");
    assert_ne!(bench.lock_text(), old);
    let again = bench.lock();
    assert!(!again.stderr.contains("format version"), "{}", again.stderr);
}

#[test]
fn lock_of_rules_in_an_older_version_is_left_as_it_is_until_it_changes() {
    let bench = Bench::with_sources(&["a", "b"]);
    let mut config: Value = serde_json::from_str(&bench.read("c.json")).expect("JSON");
    let rules = json!([{"allow": ["/a/*"], "to": ["g"]}, {"allow": ["/b/*"], "to": ["g"]}]);
    config["access"] = json!({"groups": ["g"], "local": ["g"], "rules": rules});
    bench.write("c.json", &config.to_string());
    bench.lock();
    let new = bench.lock_text();
    contains(&new, &["\"access_digest\": \"sha256/1:"]);
    assert_eq!(bench.lock_json()["lock_version"], 3);
    for version in [MIN_LOCK_VERSION, LOCK_VERSION] {
        bench.write("c.lock.json", &new);
        as_version(&bench, version);
        assert_is_left(&bench);
    }
    // A change of the rules alone is one of the lock.
    config["access"]["rules"] = json!([{"allow": ["/*/*"], "to": ["g"]}]);
    bench.write("c.json", &config.to_string());
    let output = bench.verb(&["verify", "--offline"]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    bench.lock();
    assert_eq!(bench.lock_json()["lock_version"], 3);
    assert_ne!(bench.lock_text(), new);
    // The next one is named by what the lock records.
    config["access"]["rules"] = rules;
    bench.write("c.json", &config.to_string());
    let output = bench.verb(&["verify", "--offline"]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    let change = "the section `access` has changed since it was locked\n  --> c.json:1:";
    contains(&output.stderr, &[change]);
    bench.lock();
    assert_eq!(bench.lock_text(), new);
    config.as_object_mut().expect("an object").remove("access");
    bench.write("c.json", &config.to_string());
    let output = bench.verb(&["verify", "--offline"]);
    contains(&output.stderr, &["the section `access` was removed"]);
    bench.lock();
    assert_eq!(bench.lock_json()["lock_version"], 2);
}

#[test]
fn lock_shows_the_words_of_a_command_and_hides_secrets() {
    let (first, second) = (Bench::new(), Bench::new());
    let source = json!({
        "command": ["env", "API_TOKEN=canary-one", "DB=postgres://me:canary-two@db.example/x", "DIR=/canary-dir/x",
            "A=${MODE:-fast}", "K=${SOME_KEY}", "B=canary-env", "chaos-mcp", "--script", "a.json"],
        "env": {"SERVICE_SECRET": "canary-env", "LEVEL": "debug"},
        "tool_filter": ["*", "!none*"],
        "path_aliases": {"x": "y"},
        "tool_overrides": {"x": {"summary": "Does what x does"}},
    });
    for bench in [&first, &second] {
        bench.configure([("a", source.clone())]);
        bench.one_tool("a", tool("x"));
    }
    let output = first.verb_with(&["lock"], &[("SOME_KEY", "canary-value")]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "warning[literal_secret]: the command of `/a` contains the value of `API_TOKEN`",
            "contains the password of a URL",
            "Write `${NAME}`",
        ],
    );
    let text = first.lock_text();
    assert!(!text.contains("canary"), "{text}");
    assert!(!output.stderr.contains("canary"), "{}", output.stderr);
    // The value of a variable and the folder change nothing.
    let output = second.verb_with(&["lock"], &[("SOME_KEY", "fast")]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(second.lock_text(), text);

    let lock = first.lock_json();
    let source = &lock["sources"][0];
    let words = source["command"].as_array().expect("words");
    let is_digest = |value: &Value| {
        let digest = value["digest"].as_str().expect("a digest");
        assert!(digest.starts_with("sha256/1:"), "{digest}");
        true
    };
    assert_eq!((words.len(), &words[0]), (10, &json!("env")));
    assert!(is_digest(&words[1]) && is_digest(&words[6]));
    assert_eq!(words[2][0], "DB=postgres://");
    assert!(is_digest(&words[2][1]));
    assert_eq!(words[2][2], "@db.example/x");
    assert_eq!(words[3][0], "DIR=");
    assert!(is_digest(&words[3][1]));
    assert_eq!(
        words[4..6],
        [json!("A=${MODE:-fast}"), json!("K=${SOME_KEY}")]
    );
    assert_eq!(source["tool_filter"], json!(["!none*", "*"]));
    assert_eq!(source["path_aliases"], json!({"x": "y"}));
    assert_eq!(source["exposed"][0]["summary"], "Does what x does");
}

#[test]
fn lock_shows_no_absolute_path() {
    let bench = Bench::new();
    let inside = bench.path("data").to_string_lossy().into_owned();
    let source = json!({"command": ["env", format!("IN={inside}"), "OUT=/canary/x", "chaos-mcp", "--script", "a.json"]});
    bench.configure([("a", source)]);
    bench.one_tool("a", tool("x"));
    bench.lock();
    let words = &bench.lock_json()["sources"][0]["command"];
    assert_eq!(
        (&words[1][0], &words[2][0]),
        (&json!("IN="), &json!("OUT="))
    );
    let text = bench.lock_text();
    assert!(
        !text.contains("canary") && !text.contains(&inside),
        "{words}"
    );
}

#[test]
fn lock_of_a_shell_command_has_its_words() {
    let bench = Bench::new();
    let source = json!({"command": "API_TOKEN=canary chaos-mcp --script a.json 2>> a.err"});
    bench.configure([("a", source)]);
    bench.one_tool("a", tool("x"));
    bench.lock();
    let words = &bench.lock_json()["sources"][0]["command"]["shell"];
    assert!(words[0]["digest"].is_string(), "{words}");
    assert_eq!(
        words.as_array().expect("words")[1..],
        ["chaos-mcp", "--script", "a.json", "2", ">>", "a.err"].map(Value::from)
    );
}

#[test]
fn check_with_a_stale_lock_shows_the_changed_fields() {
    let bench = Bench::new();
    let source = |version: &str, more: Value| {
        let mut source =
            json!({"command": ["env", format!("V={version}"), "chaos-mcp", "--script", "a.json"]});
        for (key, value) in more.as_object().expect("members") {
            source[key] = value.clone();
        }
        source
    };
    bench.configure([("a", source("1", json!({})))]);
    bench.one_tool("a", tool("x"));
    bench.lock();
    let changed = source(
        "2",
        json!({"tool_filter": ["x*"], "path_aliases": {"x": "z"}}),
    );
    bench.configure([("a", changed)]);
    for verb in ["check", "verify"] {
        let output = bench.verb(&[verb]);
        assert_eq!(output.code, Some(5), "{}", output.stderr);
        contains(
            &output.stderr,
            &[
                "has changed since it was locked: the word `V=1` of `command` is now `V=2`; ",
                "`tool_filter` has the new pattern `x*`; in `path_aliases`, `x` is `z` now",
                "c.json:1:",
            ],
        );
        assert!(!output.stderr.contains("sha256/1:"), "{}", output.stderr);
    }
    bench.configure([("a", source("1", json!({"env": {"LEVEL": "1"}})))]);
    let output = bench.verb(&["check"]);
    contains(
        &output.stderr,
        &["since it was locked: `env` or `inherit_env` has other names"],
    );
}

//! `mcp-broker key new`: the key, its entry, and what goes where.

use harness::{Output, Run, assert_inert, binary};
use serde_json::{Value, json};

fn key(args: &[&str]) -> Output {
    let output = Run::new(&binary("mcp-broker"))
        .args([&["key"][..], args].concat())
        .output();
    assert_inert("stdout", &output.stdout);
    assert_inert("stderr", &output.stderr);
    output
}

#[test]
fn key_is_printed_in_a_line_and_its_entry_in_the_next_one() {
    let output = key(&["new", "ci"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let [key, entry] = output.stdout.lines().collect::<Vec<_>>()[..] else {
        panic!("{}", output.stdout);
    };
    assert!(key.starts_with("mbk_") && key.len() == 36, "{key}");
    let value: Value = serde_json::from_str(entry).expect("an object");
    assert_eq!(
        (&value["name"], &value["groups"]),
        (&json!("ci"), &json!([]))
    );
    assert!(entry.starts_with(r#"{"name":"ci","sha256":""#), "{entry}");
    assert!(value.get("not_after").is_none());
    assert!(!output.stderr.contains(&key[4..]), "{}", output.stderr);
    assert!(
        output.stderr.contains("identities.keys"),
        "{}",
        output.stderr
    );
}

#[test]
fn key_with_groups_and_an_end_as_json_for_scripts() {
    let end = "2999-12-31T00:00:00Z";
    let output = key(&["new", "ci", "--groups", "a,b", "--not-after", end, "--json"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let value: Value = serde_json::from_str(&output.stdout).expect("one object");
    assert!(value["key"].as_str().expect("a key").starts_with("mbk_"));
    let entry = &value["entry"];
    assert_eq!(
        (&entry["groups"], &entry["not_after"]),
        (&json!(["a", "b"]), &json!(end))
    );
    assert_eq!(entry["sha256"].as_str().expect("a digest").len(), 64);
}

#[test]
fn key_with_an_invalid_argument_is_refused() {
    for (args, message) in [
        (&["new", "a b"][..], "`a b` is not the name of a key"),
        (
            &["new", "a", "--groups", "x,"],
            "is not the name of a group",
        ),
        (
            &["new", "a", "--not-after", "tomorrow"],
            "2027-01-31T12:00:00Z",
        ),
        (
            &["new", "a", "--not-after", "2020-01-01T00:00:00Z"],
            "in the past",
        ),
        (&["new"], "<NAME>"),
    ] {
        let output = key(args);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(2), ""),
            "{args:?}"
        );
        assert!(
            output.stderr.contains(message),
            "{args:?}: {}",
            output.stderr
        );
    }
}

//! Tests of the supported part of YAML, and of the bounds.

use serde_json::json;

use super::*;

#[track_caller]
fn refused(text: &str) -> Diagnostic {
    let mut problems = parse("f.yaml", text).expect_err("refused");
    assert_eq!(problems.len(), 1);
    problems.remove(0)
}

#[test]
fn yaml_is_read_in_the_order_of_the_file() {
    let text = "# é\nz: 0x10\nt:\n  b: [1.5, true, ~, 'null', 1.2.1, .5, 007, 1e3, -3]\n  a: {y: \"v\\n\", d: 2025-01-01, n: no}\ns: |\n  é x\n  y\ne:\n";
    let root = parse("f.yaml", text).expect("valid");
    let keys: Vec<_> = root.members().iter().map(|one| one.key.as_str()).collect();
    assert_eq!(keys, ["z", "t", "s", "e"]);
    assert_eq!(
        root.to_value(),
        json!({"z": 16, "t": {"b": [1.5, true, null, "null", "1.2.1", 0.5, 7, 1000, -3],
            "a": {"y": "v\n", "d": "2025-01-01", "n": "no"}}, "s": "é x\ny\n", "e": null})
    );
    for member in root.members() {
        assert!(text[member.at..].starts_with(&member.key), "{}", member.key);
    }
    let t = root.get("t").expect("there");
    assert_eq!(t.members()[1].at, text.find("a: {").expect("there"));
    assert_eq!(t.members()[1].value.at, text.find("{y").expect("there"));
}

#[test]
fn aliases_and_merged_objects_are_expanded() {
    let text = "a: &x {k: 1, l: [2]}\nb: *x\nc:\n  <<: *x\n  k: 3\nd:\n  <<: [{m: 1}, *x]\n";
    let root = parse("f.yaml", text).expect("valid");
    assert_eq!(
        root.to_value(),
        json!({"a": {"k": 1, "l": [2]}, "b": {"k": 1, "l": [2]}, "c": {"k": 3, "l": [2]},
            "d": {"m": 1, "k": 1, "l": [2]}})
    );
}

#[test]
fn yaml_that_is_not_read_is_refused_at_its_place() {
    for (text, code, place) in [
        ("a: 1\nb: 's3cret\n", Code::ImportSyntax, "f.yaml:"),
        ("a: 1\na: s3cret\n", Code::ConfigDupKey, "f.yaml:2:1"),
        ("a: 1\n---\nb: s3cret\n", Code::ImportSyntax, "f.yaml:2:"),
        ("a: !x s3cret\n", Code::ImportSyntax, "f.yaml:1:"),
        ("[s3cret]: 1\n", Code::ImportSyntax, "f.yaml:1:"),
        ("a: *s3cret\n", Code::ImportSyntax, "f.yaml:1:"),
        ("a: &b [*b]\n", Code::ImportSyntax, "f.yaml:1:8"),
        ("", Code::ImportSyntax, "f.yaml"),
        ("# s3cret\n", Code::ImportSyntax, "f.yaml"),
    ] {
        let problem = refused(text);
        let shown = problem.to_string();
        assert!(shown.contains(place), "{text}: {shown}");
        assert_eq!(problem.code, code, "{text}: {shown}");
        if !text.starts_with("a: *") {
            assert!(!shown.contains("s3cret"), "{shown}");
        }
    }
}

#[test]
fn bounds_count_what_aliases_expand_to() {
    let list = format!("[{}]", "1,".repeat(MAX_VALUES));
    assert_eq!(refused(&list).code, Code::ConfigSize);
    let most = format!("[{}]", "1,".repeat(MAX_VALUES - 1));
    assert!(parse("f.yaml", &most).is_ok());
    let deep = "[".repeat(MAX_DEPTH + 1);
    assert_eq!(refused(&deep).code, Code::ConfigSize);
    let deepest = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    assert!(parse("f.yaml", &deepest).is_ok());
    // Each line has ten times the values of the one before.
    let mut bomb = "a0: &a0 [x]\n".to_owned();
    for at in 1..20 {
        let alias = format!("*a{}", at - 1);
        bomb += &format!("a{at}: &a{at} [{}]\n", vec![alias; 10].join(", "));
    }
    assert_eq!(refused(&bomb).code, Code::ConfigSize);
    // Few values with much text: by aliases, and by an anchor in an anchor.
    let long = "x".repeat(1 << 20);
    let aliases = vec!["*a"; 40].join(", ");
    let texts = format!("a: &a {long}\nb: [{aliases}]\n");
    assert_eq!(refused(&texts).code, Code::ConfigSize);
    let anchors: String = (0..60).map(|at| format!("&a{at} [")).collect();
    let nested = format!("{anchors}{long}{}", "]".repeat(60));
    assert_eq!(refused(&nested).code, Code::ConfigSize);
    assert!(parse("f.yaml", &format!("a: &a {long}\nb: [*a, *a]\n")).is_ok());
    let mut deep = "a0: &a0 [x]\n".to_owned();
    for at in 1..80 {
        deep += &format!("a{at}: &a{at} [*a{}]\n", at - 1);
    }
    assert_eq!(refused(&deep).code, Code::ConfigSize);
}

//! A config at start, beside the one that was compiled in.

use super::*;
use crate::narrow::{KnownTools, Narrowing, compare};
use broker_model::path::NodePath;

const BUILT: &str = r#"{"tree":[{"path":"/a","summary":"s","source":{"command":"x","env":{"K":"1"},
    "tool_filter":["get_*","!get_secret"],"tool_overrides":{"get_a":{"summary":"o"}}}},{"path":"/b"}]}"#;

fn compared(given: &str) -> Result<Narrowing, Vec<Diagnostic>> {
    let known = |_: &NodePath| KnownTools {
        exposed: vec!["get_a".to_owned(), "get_b".to_owned()],
        hidden: vec!["get_secret".to_owned(), "put_a".to_owned()],
    };
    compare(&parse(BUILT).config, &parse(given).config, &known)
}

fn codes(given: &str) -> Vec<Code> {
    compared(given)
        .unwrap_err()
        .iter()
        .map(|d| d.code)
        .collect()
}

#[test]
fn config_at_start_may_change_values_and_limits() {
    let given = BUILT
        .replace(
            r#"{"K":"1"}"#,
            r#"{"K":"2"},"cwd":"/x","timeout":3,"required":false,"max_in_flight":1"#,
        )
        .replace(
            r#"{"tree""#,
            r#"{"limits":{"body_bytes":2048},"allowed_hosts":["h"],"tree""#,
        )
        .replace(r#"{"summary":"o"}"#, r#"{"summary":"o","timeout":9}"#);
    assert_eq!(compared(&given), Ok(Narrowing::default()));
}

#[test]
fn config_at_start_with_a_narrower_filter_hides_tools() {
    let narrowing = compared(&BUILT.replace("get_*", "get_a")).unwrap();
    let path = NodePath::parse("/a").unwrap();
    assert_eq!(
        narrowing.hidden.into_iter().collect::<Vec<_>>(),
        [(path, "get_b".to_owned())]
    );
    // A pattern of another form that admits the same tools is not a difference.
    assert_eq!(
        compared(&BUILT.replace("get_*", "get_?")),
        Ok(Narrowing::default())
    );
}

#[test]
fn config_at_start_cannot_serve_a_tool_unvalidated() {
    let source = BUILT.replace(r#"{"K":"1"}"#, r#"{"K":"1"},"schema":"as_is""#);
    assert_ne!(source, BUILT);
    assert_eq!(codes(&source), [Code::LockWiden]);
    let tool = BUILT.replace(r#"{"summary":"o"}"#, r#"{"summary":"o","schema":"as_is"}"#);
    assert_ne!(tool, BUILT);
    assert_eq!(codes(&tool), [Code::LockWiden]);
}

#[test]
fn config_at_start_that_exposes_more_is_refused() {
    assert_eq!(
        codes(&BUILT.replace(r#","!get_secret""#, "")),
        [Code::LockWiden]
    );
    let found = compared(&BUILT.replace("get_*", "*")).unwrap_err();
    assert!(found[0].message.contains("`put_a`"), "{}", found[0]);
    assert_eq!(
        found[0].pointer.as_deref(),
        Some("/tree/0/source/tool_filter")
    );
    let new = BUILT.replace(
        r#"{"path":"/b"}"#,
        r#"{"path":"/b","source":{"command":"y"}}"#,
    );
    assert_eq!(codes(&new), [Code::LockWiden]);
}

#[test]
fn config_at_start_with_another_digest_is_refused() {
    let given = BUILT
        .replace(r#""x""#, r#""y""#)
        .replace(r#"{"K":"1"}"#, r#"{"L":"1"},"path_aliases":{"get_a":"z"}"#);
    let found = compared(&given).unwrap_err();
    assert_eq!(places(&found), [(Code::LockMismatch, "/tree/0/source")]);
    for part in [
        "`command`, `env`, `path_aliases`",
        "built sha256/1:",
        "given sha256/1:",
    ] {
        assert!(found[0].message.contains(part), "{}", found[0]);
    }
    assert_eq!(
        codes(r#"{"tree":[{"path":"/a","summary":"s"},{"path":"/b"}]}"#),
        [Code::LockMismatch]
    );
}

#[test]
fn config_at_start_with_another_text_or_tree_needs_a_build() {
    for (from, to) in [
        (r#""summary":"s""#, r#""summary":"t""#),
        (r#""summary":"s""#, r#""summary":"s","description":"d""#),
        (r#"{"summary":"o"}"#, r#"{"summary":"p"}"#),
        (r#"{"summary":"o"}"#, r#"{"summary":"o","example_args":{}}"#),
        (r#"{"summary":"o"}"#, r#"{"summary":"o","hints":["h"]}"#),
        (r#"{"tree":"#, r#"{"search":{"table":false},"tree":"#),
        (r#"{"path":"/b"}"#, r#"{"path":"/c"}"#),
        (r#",{"path":"/b"}"#, ""),
    ] {
        let found = compared(&BUILT.replace(from, to)).unwrap_err();
        assert_eq!(found.len(), 1, "{}", shown(&found));
        assert_eq!(found[0].code, Code::LockMismatch, "{to}");
        assert!(found[0].remedy().contains("build"), "{}", found[0]);
    }
}

#[test]
fn config_at_start_may_change_the_mode_and_not_the_flat_names() {
    let with = |mcp: &str| BUILT.replace(r#"{"tree""#, &format!(r#"{{"mcp":{mcp},"tree""#));
    let given = with(r#"{"mode":"direct","session_idle":60,"max_name":46}"#);
    assert_eq!(compared(&given), Ok(Narrowing::default()));
    let found = compared(&with(r#"{"max_name":60}"#)).unwrap_err();
    assert_eq!(places(&found), [(Code::LockMismatch, "/mcp/max_name")]);
    assert!(found[0].remedy().contains("build"), "{}", found[0]);
}

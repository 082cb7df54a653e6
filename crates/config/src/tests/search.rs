//! The section `search`, and the hints of a tool.

use super::*;

fn with_hints(hints: &str) -> String {
    with_source(&format!(r#""tool_overrides":{{"t":{{"hints":{hints}}}}}"#))
}

fn hints(list: &str) -> Vec<String> {
    let parsed = parse(&with_hints(list));
    let source = parsed.config.sources().next().unwrap();
    let hints = source.overrides["t"].search_hints.iter();
    hints.map(|hint| hint.text.clone()).collect()
}

#[test]
fn hints_are_read_sorted_and_without_escapes() {
    assert_eq!(
        hints(r#"["what is on my plate","costs $${USD}","Was steht an?","会議"]"#),
        [
            "Was steht an?",
            "costs ${USD}",
            "what is on my plate",
            "会議"
        ]
    );
    assert_eq!(
        hints(&format!("[{:?}]", "é".repeat(120))),
        ["é".repeat(120)]
    );
}

#[test]
fn hint_outside_the_bounds_is_refused_at_its_place() {
    let place = "/tree/0/source/tool_overrides/t/hints";
    for (list, at, part) in [
        (format!("[\"a\",{:?}]", "é".repeat(121)), "/1", "121"),
        (r#"["a\nb"]"#.to_owned(), "/0", "one line"),
        (r#"["a\u202eb"]"#.to_owned(), "/0", "\\u{202e}"),
        (r#"["!?"]"#.to_owned(), "/0", "letter or digit"),
        (r#"[""]"#.to_owned(), "/0", "letter or digit"),
        (r#"["a","a"]"#.to_owned(), "/1", "twice"),
        (r#"["1","2","3","4","5","6"]"#.to_owned(), "", "at most 5"),
    ] {
        let found = only(&with_hints(&list));
        assert_eq!(found.code, Code::ConfigRange, "{list}");
        let pointer = found.pointer.as_deref();
        assert_eq!(pointer, Some(&*format!("{place}{at}")), "{list}");
        assert!(found.message.contains(part), "{found}");
    }
    for (list, code) in [
        ("{}", Code::ConfigType),
        ("[1]", Code::ConfigType),
        (r#"["${NAME}"]"#, Code::TextVariable),
    ] {
        assert_eq!(only(&with_hints(list)).code, code, "{list}");
    }
}

#[test]
fn lock_depends_on_hints_and_not_on_their_order() {
    let digest = |list: &str| parse(&with_hints(list)).config.digest();
    let without = parse(&with_source(r#""tool_overrides":{"t":{}}"#));
    assert_eq!(digest("[]"), without.config.digest());
    assert_eq!(digest(r#"["a","b"]"#), digest(r#"["b","a"]"#));
    assert_ne!(digest(r#"["a"]"#), digest("[]"));
    assert_ne!(digest(r#"["a"]"#), digest(r#"["b"]"#));
}

#[test]
fn table_is_compiled_in_unless_the_config_leaves_it_out() {
    let table = |search: &str| {
        parse(&format!(r#"{{"tree":[]{search}}}"#))
            .config
            .search
            .table
    };
    assert!(table(""));
    assert!(table(r#","search":{}"#));
    assert!(table(r#","search":{"table":true}"#));
    assert!(!table(r#","search":{"table":false}"#));
    let found = only(r#"{"tree":[],"search":{"tabel":false}}"#);
    assert_eq!(found.code, Code::ConfigUnknownKey);
    assert_eq!(
        only(r#"{"tree":[],"search":{"table":0}}"#).code,
        Code::ConfigType
    );
}

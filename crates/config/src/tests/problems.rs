//! The problems of a config that parsing finds, one test for each.

use super::*;

fn at(diagnostic: &Diagnostic) -> (usize, usize) {
    let position = diagnostic.position.unwrap();
    (position.line, position.column)
}

#[test]
fn config_syntax_error_has_a_caret_and_masked_strings() {
    let found = only("{\n  \"tree\": [],\n  \"note\": \"hunter2\", }\n");
    assert_eq!(found.code, Code::ConfigSyntax);
    assert_eq!(at(&found), (3, 22));
    assert_eq!(
        found.whole_message(),
        "trailing comma\n  3 |   \"note\": \"•••••••\", }\n    |                      ^"
    );
    for hostile in [
        r#"{"env":{"TOKEN":"hunter2""#,
        r#"{"env":{"TOKEN":"hunter2}"#,
        r#"{"env":{"TOKEN":hunter2}}"#,
        r#"{"env":{"TOKEN":'hunter2'}}"#,
        r#"{"env":{"TOKEN":"a"hunter2"}}"#,
        r#"{"env":{"TOKEN":"hunter2":1}}"#,
        "{\"env\":{\"TOKEN\":\"x\nhunter2\"}}",
        r#"{"env":{"TOKEN":"x\qhunter2"}}"#,
        r#"{"TOKEN":"\ud800hunter2"}"#,
    ] {
        let found = only(hostile);
        assert_eq!(found.code, Code::ConfigSyntax, "{hostile}");
        assert!(!found.to_string().contains("hunter2"), "{found}");
    }
}

#[test]
fn config_comment_is_a_syntax_error() {
    assert_eq!(at(&only("{\n // note\n \"tree\": []}")), (2, 2));
}

#[test]
fn config_byte_order_mark_is_accepted() {
    let text = "\u{feff}{\"tree\":[]}";
    assert!(Config::parse("c.json", text.as_bytes()).is_ok());
    // It takes up no column.
    assert_eq!(at(&only("\u{feff}{\"tree\":1}")), (1, 9));
}

#[test]
fn config_in_another_encoding_is_refused() {
    let utf16: Vec<u8> = "{\"tree\":[]}"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for bytes in [&utf16[..], &[&[0xff, 0xfe][..], &utf16].concat()] {
        let found = Config::parse("c.json", bytes).unwrap_err();
        assert_eq!(found[0].code, Code::ConfigEncoding);
        assert!(found[0].message.contains("byte 0") && found[0].message.contains("UTF-16"));
    }
    let found = Config::parse("c.json", b"{\n\"tree\": \"\xff\"}").unwrap_err();
    assert_eq!(found[0].code, Code::ConfigEncoding);
    assert!(found[0].message.contains("byte 11"), "{}", found[0]);
    assert_eq!(at(&found[0]), (2, 10));
}

#[test]
fn config_without_a_tree_is_refused() {
    for text in ["", " \n", "null", "[]", "3", "\"tree\"", "{}"] {
        let found = only(text);
        assert_eq!(found.code, Code::ConfigShape, "{text}");
        assert!(
            found.message.contains("expected an object with `tree`"),
            "{found}"
        );
    }
    assert_eq!(
        only(r#"{"tree":[],"mcpServers":{}}"#).code,
        Code::ConfigShape
    );
}

#[test]
fn config_unknown_key_is_refused_with_a_suggestion() {
    let found = refused(r#"{"tree":[{"path":"/a","source":{"comand":"x"}}]}"#);
    let unknown = found
        .iter()
        .find(|d| d.code == Code::ConfigUnknownKey)
        .unwrap();
    assert_eq!(unknown.pointer.as_deref(), Some("/tree/0/source/comand"));
    assert_eq!(unknown.help.as_deref(), Some("did you mean `command`?"));
    assert_eq!(at(unknown), (1, 33));
}

#[test]
fn config_key_of_another_level_is_refused_with_its_level() {
    for (text, help) in [
        (
            r#"{"tree":[],"startup_timeout":3}"#,
            "`startup_timeout` belongs in a source",
        ),
        (
            r#"{"tree":[{"path":"/a","command":"x"}]}"#,
            "`command` belongs in a source",
        ),
        (
            r#"{"tree":[],"body_bytes":3}"#,
            "`body_bytes` belongs in `limits`",
        ),
        (
            r#"{"tree":[],"limits":{"bodyBytes":3000}}"#,
            "did you mean `body_bytes`?",
        ),
        (
            r#"{"tree":[],"zzz":3}"#,
            "known here: $schema, tree, mcpServers",
        ),
        (
            &with_source(r#""tool_overrides":{"t":{"sumary":"x"}}"#),
            "did you mean `summary`?",
        ),
    ] {
        let found = only(text);
        assert_eq!(found.code, Code::ConfigUnknownKey, "{text}");
        assert!(found.remedy().starts_with(help), "{found}");
    }
}

#[test]
fn config_duplicate_keys_are_all_reported() {
    let found = refused(
        "{\"tree\":[{\"path\":\"/a\",\n\"path\":\"/b\",\"source\":{\"command\":\"x\",\n\"env\":{\"K\":\"1\",\"K\":2}}}],\n\"tree\":[],\"nope\":1}",
    );
    assert_eq!(
        places(&found),
        [
            (Code::ConfigDupKey, "/tree/0/path"),
            (Code::ConfigDupKey, "/tree/0/source/env/K"),
            (Code::ConfigType, "/tree/0/source/env/K"),
            (Code::ConfigDupKey, "/tree"),
            (Code::ConfigUnknownKey, "/nope"),
        ]
    );
    assert_eq!(at(&found[0]), (2, 1));
    assert!(
        found[0].message.ends_with("(first at c.json:1:11)"),
        "{}",
        found[0]
    );
}

#[test]
fn config_duplicate_keys_in_a_large_object_are_reported() {
    let mut members: Vec<String> = (0..40).map(|i| format!("\"K{i}\":\"v\"")).collect();
    members.extend([
        "\"K3\":\"v\"".to_owned(),
        "\"K39\":\"v\"".to_owned(),
        "\"K3\":\"v\"".to_owned(),
    ]);
    let found = refused(&with_source(&format!("\"env\":{{{}}}", members.join(","))));
    assert_eq!(
        places(&found),
        [
            "/tree/0/source/env/K3",
            "/tree/0/source/env/K39",
            "/tree/0/source/env/K3"
        ]
        .map(|pointer| (Code::ConfigDupKey, pointer))
    );
}

#[test]
fn config_value_of_a_wrong_type_is_refused() {
    let found = refused(&with_source(
        r#""args":"a b","env":[],"cwd":1,"required":"yes","tool_filter":"get_*","path_aliases":{"t":1},"max_in_flight":"x","tool_overrides":{"t":{"example_args":[]}}"#,
    ));
    assert!(
        found.iter().all(|d| d.code == Code::ConfigType),
        "{}",
        shown(&found)
    );
    let pointers: Vec<_> = found
        .iter()
        .map(|d| d.pointer.as_deref().unwrap())
        .collect();
    assert_eq!(
        pointers,
        [
            "args",
            "env",
            "cwd",
            "required",
            "tool_filter",
            "path_aliases/t",
            "max_in_flight",
            "tool_overrides/t/example_args"
        ]
        .map(|key| format!("/tree/0/source/{key}"))
    );
    assert_eq!(found[0].message, "expected a list of strings, got a string");
}

#[test]
fn config_command_and_url_together_are_refused() {
    for source in [
        r#""command":"x","url":"http://y""#,
        r#""env":{}"#,
        r#""backend":"stdio","url":"http://y""#,
        r#""backend":"http","command":"x""#,
        r#""backend":"http""#,
        r#""args":["x"]"#,
        r#""command":" ""#,
        r#""command":[]"#,
        r#""command":"'' x""#,
        r#""command":"x 'y""#,
        r#""command":"x $(y""#,
    ] {
        let text = format!(r#"{{"tree":[{{"path":"/a","source":{{{source}}}}}]}}"#);
        assert_eq!(only(&text).code, Code::ConfigSourceKind, "{source}");
    }
}

#[test]
fn config_variable_with_wrong_syntax_is_refused_everywhere() {
    for bad in [
        "${VAR", "$${A}", "${A${B}}", "${}", "${1A}", "${A-b}", "${env:A}",
    ] {
        for member in [
            format!(r#""env":{{"K":"{bad}"}}"#),
            format!(r#""args":["{bad}"]"#),
            format!(r#""cwd":"{bad}""#),
        ] {
            let found = only(&with_source(&member));
            assert_eq!(found.code, Code::EnvSyntax, "{member}");
        }
        let text =
            format!(r#"{{"tree":[],"allowed_hosts":["{bad}"],"allowed_origins":["{bad}"]}}"#);
        let found = refused(&text);
        assert_eq!(found.len(), 2);
        let text = format!(r#"{{"tree":[{{"path":"/a","source":{{"command":"x | {bad}"}}}}]}}"#);
        assert_eq!(only(&text).code, Code::EnvSyntax);
    }
}

#[test]
fn config_variable_of_the_broker_is_refused_everywhere() {
    for own in [
        "${MCP_BROKER_SECRET}",
        "x${MCP_BROKER_SECRET:-y}",
        "${MCP_BROKER_GUARD}",
    ] {
        for member in [
            format!(r#""env":{{"K":"{own}"}}"#),
            format!(r#""args":["{own}"]"#),
            format!(r#""cwd":"{own}""#),
        ] {
            let found = only(&with_source(&member));
            assert_eq!(found.code, Code::EnvSyntax, "{member}");
            assert!(found.message.contains("of the broker itself"), "{member}");
            assert!(found.remedy().contains("MCP_BROKER_"), "{member}");
        }
        for command in [
            format!(r#""x {own}""#),
            format!(r#""x | y {own}""#),
            format!(r#"["x","{own}"]"#),
        ] {
            let text = format!(r#"{{"tree":[{{"path":"/a","source":{{"command":{command}}}}}]}}"#);
            assert_eq!(only(&text).code, Code::EnvSyntax, "{text}");
        }
    }
}

#[test]
fn config_secret_variable_never_has_a_name_of_the_broker() {
    use crate::source::variable_for;
    for (name, header) in [("MCP_BROKER_SECRET", false), ("Mcp-Broker-Secret", true)] {
        let variable = variable_for(name, header);
        assert_eq!(variable, "_MCP_BROKER_SECRET");
        assert!(!crate::is_own_variable(&variable));
    }
}

#[test]
fn config_value_with_a_nul_is_refused() {
    let found = only(&with_source(r#""env":{"K":"a\u0000b"}"#));
    assert_eq!(found.code, Code::EnvValue);
    assert_eq!(
        only(&with_source(r#""env":{"A=B":"v"}"#)).code,
        Code::EnvSyntax
    );
}

#[test]
fn config_invalid_path_is_refused_with_its_rule() {
    let long = format!("/{}", "a/".repeat(300));
    for (path, rule) in [
        ("a", "begins with `/`"),
        ("/a//b", "no empty segment"),
        ("/a/../b", "`.` and `..`"),
        ("/%2e", "letters, digits"),
        ("/a b", "letters, digits"),
        (&long, "at most 512 bytes"),
    ] {
        let found = only(&format!(r#"{{"tree":[{{"path":"{path}"}}]}}"#));
        assert_eq!(
            (found.code, found.pointer.as_deref()),
            (Code::PathInvalid, Some("/tree/0/path"))
        );
        assert!(found.message.contains(rule), "{found}");
    }
    assert_eq!(
        only(r#"{"tree":[{"type":"node"}]}"#).code,
        Code::PathInvalid
    );
    let found = only(&with_source(r#""path_aliases":{"t":"a/b"}"#));
    assert_eq!(found.code, Code::PathInvalid);
}

#[test]
fn config_duplicate_path_is_refused() {
    let found = only(
        "{\"tree\":[{\"path\":\"/a\"},\n{\"path\":\"/b\",\"children\":[]},{\"path\":\"/a\"}]}",
    );
    assert_eq!(found.code, Code::PathDup);
    assert_eq!(found.pointer.as_deref(), Some("/tree/2/path"));
    assert!(found.message.contains("first at c.json:1:18"), "{found}");
    assert_eq!(at(&found), (2, 37));
}

#[test]
fn config_aliases_with_one_name_are_refused() {
    let found = only(&with_source(
        r#""path_aliases":{"one":"x","two":"y","three":"x"}"#,
    ));
    assert_eq!(found.code, Code::LeafClash);
    assert!(found.message.contains("`one` and `three`"), "{found}");
}

#[test]
fn config_paths_that_differ_only_in_case_give_a_warning() {
    let parsed = parse(r#"{"tree":[{"path":"/a"},{"path":"/A"}]}"#);
    assert_eq!(places(&parsed.warnings), [(Code::PathCase, "/tree/1/path")]);
    assert!(parsed.warnings[0].message.contains("`/A` and `/a`"));
}

#[test]
fn config_child_outside_its_parent_is_refused() {
    for child in ["/b", "/a", "/ab", "/"] {
        let found = refused(&format!(
            r#"{{"tree":[{{"path":"/a","children":[{{"path":"{child}"}}]}}]}}"#
        ));
        assert_eq!(found[0].code, Code::PathParent, "{child}");
    }
    let found = only(r#"{"tree":[{"path":"/a","children":[{"path":"/b"}]}]}"#);
    assert_eq!(
        found.help.as_deref(),
        Some("write `/a/b`, or move the node")
    );
}

#[test]
fn config_invalid_glob_is_refused() {
    let found = refused(&with_source(
        r#""tool_filter":["ok","[","!{a"],"inherit_env":["LC_*","[",""]"#,
    ));
    assert_eq!(
        places(&found),
        [
            "tool_filter/1",
            "tool_filter/2",
            "inherit_env/1",
            "inherit_env/2"
        ]
        .map(|key| format!("/tree/0/source/{key}"))
        .each_ref()
        .map(|pointer| (Code::GlobSyntax, pointer.as_str()))
    );
}

#[test]
fn config_number_out_of_range_is_refused() {
    for value in [
        "-1",
        "0",
        "1e99",
        "1e999",
        "86401",
        "\"30 bananas\"",
        "0.05",
    ] {
        let found = only(&with_source(&format!(r#""timeout":{value}"#)));
        assert_eq!(found.code, Code::ConfigRange, "{value}");
        assert!(found.message.contains("from 0.1 to 86400"), "{found}");
    }
    assert_eq!(
        only(&with_source(r#""timeout":NaN"#)).code,
        Code::ConfigSyntax
    );
    for member in [
        r#""startup_timeout":0.5"#,
        r#""startup_timeout":3601"#,
        r#""max_in_flight":0"#,
        r#""max_in_flight":10001"#,
        r#""max_in_flight":1.5"#,
        r#""instances":65"#,
        r#""tool_overrides":{"t":{"timeout":0}}"#,
        r#""tool_overrides":{"t":{"max_output_chars":99}}"#,
        r#""tool_overrides":{"t":{"render_mode":"yaml"}}"#,
        r#""tool_overrides":{"t":{"example_args":{"n":1e10001}}}"#,
        r#""volatile":["/tools/t"]"#,
        r#""volatile":["tools/t/x"]"#,
        r#""volatile":["/tools/t/*"]"#,
        r#""backend":"grpc""#,
    ] {
        assert_eq!(
            only(&with_source(member)).code,
            Code::ConfigRange,
            "{member}"
        );
    }
    for limits in [
        r#""body_bytes":1023"#,
        r#""line_bytes":1073741825"#,
        r#""listing_bytes":0"#,
        r#""memory_bytes":16777215"#,
    ] {
        let text = format!(r#"{{"tree":[],"limits":{{{limits}}}}}"#);
        assert_eq!(only(&text).code, Code::ConfigRange, "{limits}");
    }
    for origin in ["https://a/b", "a.example", "*", "https://*.a"] {
        let text = format!(r#"{{"tree":[],"allowed_origins":["{origin}"]}}"#);
        assert_eq!(only(&text).code, Code::ConfigRange, "{origin}");
    }
}

#[test]
fn config_too_large_or_too_deep_is_refused() {
    let large = format!("{{\"tree\":[],\"note\":\"{}\"}}", "x".repeat(10 << 20));
    assert_eq!(only(&large).code, Code::ConfigSize);
    let deep = "[".repeat(1_000) + &"]".repeat(1_000);
    let found = only(&format!("{{\"tree\":{deep}}}"));
    assert_eq!(found.code, Code::ConfigSize);
    assert_eq!(at(&found), (1, 72));
    assert_eq!(only(&"{\"a\":".repeat(100_000)).code, Code::ConfigSize);
    // Brackets inside strings are none.
    parse(&format!(
        r#"{{"tree":[{{"path":"/a","summary":"{}"}}]}}"#,
        "[".repeat(100)
    ));
}

#[test]
fn config_problems_are_limited_in_number() {
    let nodes = |count: usize| -> String {
        let nodes: Vec<String> = (0..count)
            .map(|i| format!("{{\"path\":\"/n{i}\"}}"))
            .collect();
        format!("{{\"tree\":[{}]}}", nodes.join(","))
    };
    assert_eq!(only(&nodes(100_000)).code, Code::ConfigSize);
    let parsed = parse(&nodes(40_000));
    assert_eq!(parsed.config.root.children.len(), 40_000);
    let nodes = vec!["{\"path\":\"/n\",\"path\":0}"; 20_000];
    let found = refused(&format!("{{\"tree\":[{}]}}", nodes.join(",")));
    assert_eq!(found.len(), 101);
    assert_eq!(found[100].message, "and 39900 more; correct these first");
}

#[test]
fn config_text_with_a_variable_is_refused_at_its_place() {
    let node = |members: &str| format!(r#"{{"tree":[{{"path":"/a",{members}}}]}}"#);
    for (text, place, kind) in [
        (
            node(r#""summary":"in ${HOME}""#),
            "/tree/0/summary",
            "a summary",
        ),
        (
            node(r#""description":"x\n${A:-canary}""#),
            "/tree/0/description",
            "a description",
        ),
        (
            node(r#""summary":"an open ${""#),
            "/tree/0/summary",
            "a summary",
        ),
        (
            with_source(r#""tool_overrides":{"t":{"summary":"$${A} ${B}"}}"#),
            "/tree/0/source/tool_overrides/t/summary",
            "a summary",
        ),
        (
            with_source(r#""tool_overrides":{"t":{"description":"${B}"}}"#),
            "/tree/0/source/tool_overrides/t/description",
            "a description",
        ),
        (
            with_source(r#""path_aliases":{"t":"${B}"}"#),
            "/tree/0/source/path_aliases/t",
            "an alias",
        ),
        (
            r#"{"tree":[{"path":"/${B}"}]}"#.to_owned(),
            "/tree/0/path",
            "a path",
        ),
        (
            r#"{"mcpServers":{"${B}":{"command":"x"}}}"#.to_owned(),
            "/mcpServers/${B}",
            "the name of a server",
        ),
        (
            with_source(r#""tool_filter":["a","!${B}"]"#),
            "/tree/0/source/tool_filter/1",
            "a pattern of a filter",
        ),
        (
            with_source(r#""prompt_filter":["${B:-canary}"]"#),
            "/tree/0/source/prompt_filter/0",
            "a pattern of a filter",
        ),
        (
            with_source(r#""resources":"locked","resource_filter":["x://${B}/*"]"#),
            "/tree/0/source/resource_filter/0",
            "a pattern of a filter",
        ),
        (
            with_access(r#"{"allow":["/${B}/*"],"to":["g"]}"#),
            "/access/rules/0/allow/0",
            "a path of a rule",
        ),
        (
            with_access(r#"{"deny":["/a"],"to":["${B}"]}"#),
            "/access/rules/0/to/0",
            "the name of a group",
        ),
        (
            with_access(
                r#"{"allow":["/a"],"to":["g"],"args":{"enum":["x",{"y":"${B:-canary}"}]}}"#,
            ),
            "/access/rules/0/args/enum/1/y",
            "`args` of a rule",
        ),
        (
            with_access(
                r#"{"allow":["/a"],"to":["g"],"args":{"required":[],"properties":{"${B}":{}}}}"#,
            ),
            "/access/rules/0/args/properties/${B}",
            "`args` of a rule",
        ),
    ] {
        let found = only(&text);
        assert_eq!(found.code, Code::TextVariable, "{text}");
        assert_eq!(found.pointer.as_deref(), Some(place));
        assert!(found.message.starts_with(kind), "{found}");
        assert!(found.remedy().contains("`$${`"), "{found}");
        assert!(!found.message.contains("canary"), "{found}");
    }
}

/// A config with a rule of access.
fn with_access(rule: &str) -> String {
    format!(
        r#"{{"mcpServers":{{"a":{{"command":"x"}}}},"access":{{"groups":["g"],"rules":[{rule}]}}}}"#
    )
}

#[test]
fn config_pattern_with_an_escaped_variable_loses_the_escape() {
    let text = with_source(r#""tool_filter":["$${a,b}","!$$"],"prompt_filter":["$${a}"]"#);
    let config = parse(&text).config;
    let exposure = &config.sources().next().unwrap().exposure;
    assert_eq!(exposure.filter().patterns(), ["${a,b}", "!$$"]);
    assert!(exposure.exposes("$a") && !exposure.exposes("a"));
    let rule = r#"{"allow":["/$${a}"],"to":["g"],"args":{"const":"$${A}"}}"#;
    let access = parse(&with_access(rule)).config.access.unwrap();
    assert_eq!(
        access.rules[0].args,
        Some(serde_json::json!({"const": "${A}"}))
    );
}

#[test]
fn config_text_with_an_escaped_variable_loses_the_escape() {
    let text = r#"{"tree":[{"path":"/a","summary":"write $${NAME}, $$${ or $5","description":"$${",
        "source":{"command":"x","tool_overrides":{"t":{"description":"$$${A}"}}}}]}"#;
    let config = parse(text).config;
    let node = &config.root.children[0];
    assert_eq!(node.summary.as_deref(), Some("write ${NAME}, $${ or $5"));
    assert_eq!(node.description.as_deref(), Some("${"));
    let said = &config.sources().next().unwrap().overrides["t"];
    assert_eq!(said.description.as_deref(), Some("$${A}"));
    // The compiled-in document is read again at the start.
    let again = parse(&config.compiled_text()).config;
    assert_eq!(again.root.children[0].summary, node.summary);
}

#[test]
fn config_value_of_the_wrong_type_is_refused() {
    for member in [
        r#""retry_idempotent":1"#,
        r#""instances":"2""#,
        r#""tool_overrides":{"t":{"render_mode":1}}"#,
    ] {
        assert_eq!(
            only(&with_source(member)).code,
            Code::ConfigType,
            "{member}"
        );
    }
    parse(&with_source(
        r#""instances":2,"retry_idempotent":true,"tool_overrides":{"t":{"render_mode":"text","max_output_chars":500}}"#,
    ));
}

#[test]
fn extension_that_the_broker_does_not_have_is_refused_with_its_place() {
    let found = only(&with_source(
        r#""extensions":["io.modelcontextprotocol/tasks","a/b"]"#,
    ));
    assert_eq!(found.code, Code::ConfigRange);
    assert_eq!(
        found.pointer.as_deref(),
        Some("/tree/0/source/extensions/1")
    );
    assert!(found.message.contains("`a/b`"), "{}", found.message);
    let help = found.help.as_deref().unwrap_or_default();
    assert!(help.contains("io.modelcontextprotocol/tasks"), "{help}");
    for wrong in [r#""extensions":{}"#, r#""extensions":[1]"#] {
        assert_eq!(only(&with_source(wrong)).code, Code::ConfigType, "{wrong}");
    }
}

#[test]
fn stderr_for_callers_is_refused_for_a_url_and_for_an_untrusted_source() {
    let url =
        r#"{"tree":[{"path":"/a","source":{"url":"https://h/mcp","stderr_to_callers":true}}]}"#;
    let found = only(url);
    assert_eq!(found.code, Code::ConfigSourceKind);
    let pointer = Some("/tree/0/source/stderr_to_callers");
    assert_eq!(found.pointer.as_deref(), pointer);
    let found = only(&with_source(
        r#""stderr_to_callers":true,"trust":"untrusted""#,
    ));
    assert_eq!(
        (found.code, found.pointer.as_deref()),
        (Code::ConfigRange, pointer)
    );
    let source = parse(&with_source(
        r#""stderr_to_callers":true,"trust":"verified""#,
    ));
    assert!(source.config.sources().next().unwrap().stderr_to_callers);
    parse(&with_source(
        r#""stderr_to_callers":false,"trust":"untrusted""#,
    ));
}

#[test]
fn config_problems_are_reported_in_file_order() {
    let found = refused(
        "{\n\"limits\":{\"body_bytes\":1},\n\"tree\":[\n{\"path\":\"x\",\"kind\":1},\n{\"path\":\"/b\",\"source\":{\"command\":\"x `${A}`\",\"timeout\":0}}],\n\"types\":1}",
    );
    let lines: Vec<_> = found.iter().map(|d| at(d).0).collect();
    assert_eq!(lines, [2, 4, 4, 5, 5, 6], "{}", shown(&found));
    assert!(found.iter().all(|d| d.file.as_deref() == Some("c.json")));
}

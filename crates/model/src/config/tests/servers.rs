//! `mcpServers` files as other clients write them.

use super::*;

#[test]
fn mcp_servers_file_is_accepted_as_a_config() {
    let parsed = parse(
        r#"{"globalShortcut":"x","mcpServers":{
             "my server":{"type":"stdio","command":"npx -y","args":["a b","$HOME","${DIR}"],"env":{"K":"v"},
               "autoApprove":[],"disabled":false,"description":"d","tool_filter":["get_*"],"timeout":30},
             "off":{"url":"http://x","disabled":true},
             "off2":{"url":"http://x","enabled":false}}}"#,
    );
    let config = parsed.config;
    let sources: Vec<_> = config.sources().collect();
    assert_eq!(sources.len(), 1);
    assert_eq!(sources[0].path.as_str(), "/my-server");
    // The program itself: neither split nor run by a shell.
    assert_eq!(
        words(&sources[0].command),
        ["npx -y", "a b", "$HOME", "${DIR}"]
    );
    assert!(!sources[0].filter.admits("put"));
    assert_eq!(sources[0].timeout.as_secs(), 30);
    assert!(parsed.warnings.iter().all(|w| w.code == Code::KeyIgnored));
    let keys: Vec<_> = parsed
        .warnings
        .iter()
        .map(|w| w.pointer.as_deref().unwrap())
        .collect();
    assert_eq!(
        keys,
        [
            "/globalShortcut",
            "/mcpServers/my server/autoApprove",
            "/mcpServers/my server/description",
            "/mcpServers/off",
            "/mcpServers/off2",
        ]
    );
}

#[test]
fn server_names_with_one_path_are_refused() {
    let found = only(r#"{"mcpServers":{"a b":{"command":"x"},"a/b":{"command":"y"}}}"#);
    assert_eq!(found.code, Code::NameClash);
    assert!(
        found
            .message
            .contains("`a b` and `a/b` both give the path `/a-b`"),
        "{found}"
    );
}

#[test]
fn server_name_without_a_valid_path_is_refused() {
    for name in ["", ".", "..", &"n".repeat(129)] {
        let text = format!(r#"{{"mcpServers":{{"{name}":{{"command":"x"}}}}}}"#);
        assert_eq!(only(&text).code, Code::PathInvalid, "{name}");
    }
}

#[test]
fn server_key_similar_to_a_known_one_is_refused() {
    let found = refused(
        r#"{"mcpServers":{"a":{"command":"x","argz":[],"toolFilter":["x"],"whatever":1}}}"#,
    );
    assert_eq!(
        places(&found),
        [
            (Code::ConfigUnknownKey, "/mcpServers/a/argz"),
            (Code::ConfigUnknownKey, "/mcpServers/a/toolFilter"),
            (Code::KeyIgnored, "/mcpServers/a/whatever"),
        ]
    );
    assert_eq!(
        found[1].help.as_deref(),
        Some("did you mean `tool_filter`?")
    );
}

#[test]
fn server_type_is_read_as_the_backend() {
    for entry in [
        r#"{"type":"http","url":"http://x"}"#,
        r#"{"type":"sse","url":"http://x"}"#,
        r#"{"type":"streamable-http","url":"http://x"}"#,
        r#"{"url":"http://x"}"#,
    ] {
        let found = only(&format!(r#"{{"mcpServers":{{"a":{entry}}}}}"#));
        assert_eq!(found.code, Code::NotSupportedYet, "{entry}");
    }
    for entry in [
        r#"{"type":"http","command":"x"}"#,
        r#"{"type":"stdio","backend":"http","command":"x"}"#,
        "{}",
    ] {
        let found = only(&format!(r#"{{"mcpServers":{{"a":{entry}}}}}"#));
        assert_eq!(found.code, Code::ConfigSourceKind, "{entry}");
    }
}

#[test]
fn server_timeout_above_an_hour_is_used_with_a_warning() {
    let parsed = parse(
        r#"{"mcpServers":{"a":{"command":"x","timeout":60000},"b":{"command":"x","timeout":3600}}}"#,
    );
    assert_eq!(
        places(&parsed.warnings),
        [(Code::TimeoutUnit, "/mcpServers/a/timeout")]
    );
    let warning = &parsed.warnings[0];
    assert_eq!(
        warning.message,
        "`timeout` is in seconds: 60000 seconds are 16 h 40 min"
    );
    assert!(warning.remedy().contains("write `60`"), "{warning}");
    let sources: Vec<_> = parsed
        .config
        .sources()
        .map(|one| one.timeout.as_secs())
        .collect();
    assert_eq!(sources, [60_000, 3_600]);
    // The broker's config form counts seconds, which its operator knows.
    assert_eq!(parse(&with_source(r#""timeout":60000"#)).warnings, []);
}

#[test]
fn server_with_a_url_is_refused_with_three_ways_out() {
    for key in ["url", "serverUrl", "httpUrl"] {
        let found = only(&format!(
            r#"{{"mcpServers":{{"a":{{"{key}":"https://h/mcp"}}}}}}"#
        ));
        assert_eq!(found.code, Code::NotSupportedYet, "{key}");
        let help = found.remedy();
        for way in ["remove the entry", "`\"disabled\": true`", "a bridge"] {
            assert!(help.contains(way), "{help}");
        }
    }
    let found = only(r#"{"tree":[{"path":"/a","source":{"url":"https://h/mcp"}}]}"#);
    assert!(found.remedy().contains("remove the source"), "{found}");
    assert!(!found.remedy().contains("disabled"), "{found}");
    let parsed = parse(r#"{"mcpServers":{"a":{"command":"x","serverUrl":"https://h"}}}"#);
    assert_eq!(
        places(&parsed.warnings),
        [(Code::KeyIgnored, "/mcpServers/a/serverUrl")]
    );
}

#[test]
fn server_timeout_in_milliseconds_is_ignored_with_a_warning() {
    let parsed = parse(r#"{"mcpServers":{"a":{"command":"x","timeout":300000}}}"#);
    assert_eq!(
        places(&parsed.warnings),
        [(Code::KeyIgnored, "/mcpServers/a/timeout")]
    );
    assert_eq!(
        parsed.config.sources().next().unwrap().timeout.as_secs(),
        60
    );
    let found = only(r#"{"mcpServers":{"a":{"command":"x","timeout":-1}}}"#);
    assert_eq!(found.code, Code::ConfigRange);
}

//! Valid configs, parsed: both shapes of `tree`, defaults, the variables that it names.

use std::time::Duration;

use super::*;
use crate::Limits;
use crate::ProcessEndpoint;
use broker_model::path::NodePath;

const FULL: &str = r#"{ "$schema": "x", "types": false, "limits": {"body_bytes": 1024},
  "allowed_hosts": ["${HOST:-broker.example}"], "allowed_origins": ["https://app.example:8443"],
  "tree": [ { "path": "/repo", "type": "node", "summary": "s", "description": "d",
    "children": [ {"path": "/repo/read", "source": {
      "backend": "stdio", "command": "npx -y some-server@1.2.3", "env": {"API_TOKEN": "${GITHUB}", "PORT": "1"},
      "inherit_env": ["NPM_*"], "cwd": "${DIR:-.}/x", "tool_filter": ["get_*", "!get_secret_*"],
      "path_aliases": {"get_file_contents": "get_file"}, "required": false, "startup_timeout": 300,
      "timeout": 0.5, "max_in_flight": 4, "types": true, "volatile": ["/tools/*/_meta/x"],
      "tool_overrides": {"get_file_contents": {"summary": "S", "description": "D", "timeout": 30,
        "example_args": {"path": ["a", 1.5]}, "render_mode": "json"}}}} ]}]}"#;

#[test]
fn config_source_accepts_every_key() {
    let parsed = parse(FULL);
    assert_eq!(parsed.warnings, []);
    let config = parsed.config;
    let path = NodePath::parse("/repo/read").unwrap();
    let source = config.source(&path).unwrap();
    assert_eq!(
        words(&source.process().unwrap().command),
        ["npx", "-y", "some-server@1.2.3"]
    );
    assert!(source.exposure.exposes("get_x") && !source.exposure.exposes("get_secret_x"));
    assert_eq!(source.aliases["get_file_contents"], "get_file");
    assert!(!source.required && source.types && !config.types);
    assert_eq!(source.startup_timeout, Duration::from_secs(300));
    assert_eq!(source.timeout, Duration::from_millis(500));
    assert_eq!(source.max_in_flight, 4);
    assert_eq!(source.pointer, "/tree/0/children/0/source");
    let tool = &source.overrides["get_file_contents"];
    assert_eq!(tool.timeout, Some(Duration::from_secs(30)));
    assert_eq!(tool.example_args.as_ref().unwrap()["path"][1], 1.5);
    assert_eq!(
        config.limits,
        Limits {
            body_bytes: 1024,
            ..Limits::default()
        }
    );
    assert_eq!(
        config.variables().into_iter().collect::<Vec<_>>(),
        ["DIR", "GITHUB", "HOST"]
    );
    assert_eq!(config.root.children[0].summary.as_deref(), Some("s"));
}

#[test]
fn config_source_has_defaults() {
    let source = source_with_command("[\"x\"]");
    assert_eq!(source.timeout, Duration::from_secs(60));
    assert_eq!(source.startup_timeout, Duration::from_secs(120));
    assert_eq!(source.max_in_flight, 32);
    assert!(source.required && source.types && source.exposure.exposes("anything"));
}

#[test]
fn config_root_is_optional() {
    let list = parse(r#"{"tree":[{"path":"/a"},{"path":"/b"}]}"#).config;
    let root = parse(r#"{"tree":{"path":"/","type":"node","summary":"all","children":[{"path":"/a"},{"path":"/b"}]}}"#).config;
    let paths =
        |config: &Config| -> Vec<String> { config.nodes().map(|n| n.path.to_string()).collect() };
    assert_eq!(paths(&list), ["/", "/a", "/b"]);
    assert_eq!(paths(&root), paths(&list));
    assert_eq!(root.root.summary.as_deref(), Some("all"));
    assert_eq!(root.root.pointer, "/tree");
    let one = parse(r#"{"tree":{"path":"/a"}}"#).config;
    assert_eq!(paths(&one), ["/", "/a"]);
}

#[test]
fn config_literal_arguments_of_secret_options_are_found() {
    let text = with_source(
        r#""args":["--token=lit1","--api-key","lit2","--port","80","${ARG}","--secret=${ARG}"]"#,
    );
    let config = parse(&text).config;
    let masked: Vec<_> = config
        .sources()
        .filter_map(Source::process)
        .flat_map(ProcessEndpoint::literal_secret_arguments)
        .collect();
    assert_eq!(masked, ["lit1", "lit2"]);
}

#[test]
fn config_debug_output_has_no_value() {
    let text = with_source(r#""args":["--token=canary1"],"env":{"API_KEY":"canary2"}"#);
    let shown = format!("{:?}", parse(&text));
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains("API_KEY"), "{shown}");
}

#[test]
fn config_digest_covers_what_a_lock_depends_on() {
    let digest = |members: &str| parse(&with_source(members)).config.digest();
    let plain = digest(r#""env":{"A":"1"}"#);
    for same in [
        r#""env":{"A":"2"},"cwd":"/x","timeout":3,"required":false"#,
        r#""env":{"A":"1"},"tool_filter":[],"path_aliases":{},"args":[],"max_in_flight":3"#,
        r#""env":{"A":"1"},"tool_overrides":{"t":{"summary":"x"}}"#,
        r#""backend":"stdio","env":{"A":"1"}"#,
    ] {
        assert_eq!(digest(same), plain, "{same}");
    }
    for other in [
        r#""env":{"B":"1"}"#,
        r#""env":{"A":"1"},"args":["y"]"#,
        r#""env":{"A":"1"},"tool_filter":["x"]"#,
        r#""env":{"A":"1"},"path_aliases":{"a":"b"}"#,
        r#""env":{"A":"1"},"inherit_env":["x"]"#,
        r#""env":{"A":"1"},"volatile":["/tools/a/b"]"#,
    ] {
        assert_ne!(digest(other), plain, "{other}");
    }
    assert_eq!(
        digest(r#""tool_filter":["a","!b"],"inherit_env":["x","y"]"#),
        digest(r#""tool_filter":["!b","a"],"inherit_env":["y","x"]"#)
    );
    let of = |text: &str| parse(text).config.digest();
    assert_eq!(
        of(
            r#"{"tree":[{"path":"/a","source":{"command":"x y"}},{"path":"/b","source":{"command":"x"}}]}"#
        ),
        of(r#"{"mcpServers":{"b":{"command":"x"},"a":{"command":"x","args":["y"]}}}"#)
    );
    assert_ne!(
        of(r#"{"tree":[{"path":"/a","source":{"command":"x y"}}]}"#),
        of(r#"{"mcpServers":{"a":{"command":"x y"}}}"#)
    );
    assert_ne!(
        of(r#"{"tree":[{"path":"/a","source":{"command":"x;${A}"}}]}"#),
        of(r#"{"tree":[{"path":"/a","source":{"command":"x;${B}"}}]}"#)
    );
}

#[test]
fn config_diagnostic_has_its_position_in_the_file() {
    let config = parse("{\"tree\":[\n {\"path\":\"/a\"}]}").config;
    let placed = config.place(Diagnostic::error(Code::FilterEmpty, "x").at("/tree/0/path"));
    assert_eq!(
        placed.to_string().lines().nth(1),
        Some("  --> c.json:2:10 at /tree/0/path")
    );
}

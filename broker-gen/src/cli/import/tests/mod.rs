//! Files as clients write them, and the configs that they become. Every secret in them has `canary` in it, which
//! must be nowhere in the result.

use broker_config::{Config, Endpoint};
use serde_json::{Value, json};

use super::*;

mod clients;
mod field;
mod secrets;

/// The parts of a result for people.
fn texts(imported: &Imported) -> String {
    let notes = imported.notes.iter().map(|note| note.as_str().to_owned());
    let warnings = imported.warnings.iter().map(ToString::to_string);
    let variables = imported.variables.iter();
    let variables = variables.map(|(name, meaning)| format!("{name}  {meaning}"));
    let lines: Vec<_> = notes.chain(warnings).chain(variables).collect();
    lines.join("\n")
}

/// Files of a machine with one file of variables.
fn files(exists: &dyn Fn(&str) -> bool) -> Files<'_> {
    let read = &|name: &str| (name == "v.env").then(|| "FROM_FILE\nWITH_VALUE=canary\n".to_owned());
    Files { exists, read }
}

/// Converts a file on a machine on which every command is a program.
fn convert_text(file: &str, text: &str) -> Result<Imported, Vec<Diagnostic>> {
    convert(file, text.as_bytes(), None, files(&|_| true))
}

/// Converts a file, which must succeed without a trace of a secret.
#[track_caller]
fn imported(file: &str, text: &str) -> Imported {
    let imported = match convert_text(file, text) {
        Ok(imported) => imported,
        Err(problems) => panic!("{problems:#?}"),
    };
    let shown = format!("{}\n{}", imported.config, texts(&imported));
    assert!(!shown.contains("canary"), "{shown}");
    let config = parsed(&imported.config);
    let (_, warnings) = config.compiled();
    assert!(warnings.is_empty(), "{warnings:?}\n{}", imported.config);
    imported
}

#[track_caller]
fn parsed(config: &str) -> Config {
    match Config::parse("config.json", config.as_bytes()) {
        Ok(parsed) => parsed.config,
        Err(problems) => panic!("{problems:#?}\n{config}"),
    }
}

/// The sources by path.
fn sources(imported: &Imported) -> Value {
    let config: Value = serde_json::from_str(&imported.config).expect("JSON");
    let nodes = config["tree"].as_array().expect("a list").iter();
    nodes
        .map(|node| {
            let path = node["path"].as_str().expect("a path");
            (path.to_owned(), node["source"].clone())
        })
        .collect()
}

fn names(imported: &Imported) -> Vec<&str> {
    let variables = imported.variables.iter();
    variables.map(|(name, _)| name.as_str()).collect()
}

#[track_caller]
fn refused(file: &str, text: &str) -> Vec<Diagnostic> {
    let problems = convert_text(file, text).expect_err("refused");
    let shown = format!("{problems:?}");
    assert!(!shown.contains("canary"), "{shown}");
    problems
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
}

#[test]
fn settings_of_a_config_in_a_client_file_are_taken() {
    let text = r#"{"mcpServers": {
        "a": {"command": "x", "tool_filter": ["get_*"], "disabled_tools": ["get_b"], "path_aliases": {"get_a": "a"}, "instances": 2, "on_text_drift": "withdraw", "trust": "verified"},
        "b": {"url": "http://10.0.0.1/mcp", "headers": {"X-Key": "canary"}, "allow_plain_http": true, "ca_file": "${CA}"},
        "c": {"url": "https://h/", "auth": {"client_credentials": {"token_url": "https://id/", "client_id": "c", "client_secret": "canary"}}},
        "d": {"url": "https://h/", "auth": {"token_command": "print-token --key canary"}, "env": {"A": "b"}},
        "e": {"url": "https://h/", "auth": {"token_file": "/run/token"}}
    }, "types": false, "mcp": {"mode": "direct"}, "limits": {"body_bytes": 2048}, "trust": {"sensitive": ["x"]}}"#;
    let imported = imported("mcp.json", text);
    assert_eq!(
        sources(&imported),
        json!({
            "/a": {"command": "x", "tool_filter": ["get_*", "!get_b"], "path_aliases": {"get_a": "a"}, "instances": 2, "on_text_drift": "withdraw", "trust": "verified"},
            "/b": {"url": "http://10.0.0.1/mcp", "headers": {"X-Key": "${B_X_KEY}"}, "allow_plain_http": true, "ca_file": "${CA}"},
            "/c": {"url": "https://h/", "auth": {"client_credentials": {"token_url": "https://id/", "client_id": "c", "client_secret": "${C_CLIENT_SECRET}"}}},
            "/d": {"url": "https://h/", "auth": {"token_command": "print-token --key ${D_KEY}"}, "env": {"A": "b"}},
            "/e": {"url": "https://h/", "auth": {"token_file": "/run/token"}},
        })
    );
    let config: Value = serde_json::from_str(&imported.config).expect("JSON");
    assert_eq!(config["mcp"]["mode"], "direct");
    assert_eq!(config["trust"]["sensitive"], json!(["x"]));
    assert_eq!(
        (&config["types"], &config["limits"]["body_bytes"]),
        (&json!(false), &json!(2048))
    );
}

/// The sources of a result as a file of a client.
fn again(imported: &Imported) -> String {
    let mut entries = Vec::new();
    let config: Value = serde_json::from_str(&imported.config).expect("JSON");
    for node in config["tree"].as_array().expect("a list") {
        let name = node["path"]
            .as_str()
            .expect("a path")
            .trim_start_matches('/');
        entries.push(format!("\"{name}\": {}", node["source"]));
    }
    format!("{{\"mcpServers\": {{{}}}}}", entries.join(", "))
}

#[test]
fn file_without_secrets_is_imported_unchanged() {
    let first = imported(
        "mcp.json",
        r#"{"mcpServers": {
            "z": {"command": "npx", "args": ["-y", "z@1", "--token", "canary"], "env": {"A": "a", "B": "b", "KEY": "canary"}},
            "a": {"url": "https://h/mcp?key=canary", "headers": {"Authorization": "Bearer canary", "X-Auth": "ApiKey ${X}"}, "timeout": 30},
            "b": {"command": "/a b", "disabledTools": ["x"]}
        }}"#,
    );
    let second = imported("mcp.json", &again(&first));
    assert_eq!(second.config, first.config);
    assert_eq!(imported("mcp.json", &again(&second)).config, first.config);
    assert!(
        second
            .variables
            .iter()
            .all(|(_, meaning)| meaning.starts_with("the file names it"))
    );
    assert!(second.notes.is_empty(), "{:?}", second.notes);
    let mut before = names(&first);
    before.sort_unstable();
    before.push("X");
    before.sort_unstable();
    before.dedup();
    assert_eq!(names(&second), before);
}

#[test]
fn file_that_cannot_be_imported_is_refused_at_its_place() {
    for (file, text, code, place) in [
        (
            "a.json",
            "{\n  \"mcpServers\": {\"a\": {\"env\": {\"T\": \"canary\" \"b\"}}}",
            DiagnosticCode::ImportSyntax,
            "a.json:2:46",
        ),
        (
            "a.toml",
            "[mcp_servers.a]\ntoken = 'canary\n",
            DiagnosticCode::ImportSyntax,
            "a.toml:2:",
        ),
        (
            "a.conf",
            "[mcp_servers.a]\ncommand = canary\n",
            DiagnosticCode::ImportSyntax,
            "a.conf:2:11",
        ),
        ("a.json", "", DiagnosticCode::ImportSyntax, "a.json"),
        ("a.json", "[]", DiagnosticCode::ImportServers, "a.json:1:1"),
        (
            "a.json",
            r#"{"tree": []}"#,
            DiagnosticCode::ImportServers,
            "a.json:1:10",
        ),
        (
            "a.json",
            r#"{"theme": "canary"}"#,
            DiagnosticCode::ImportServers,
            "a.json:1:1",
        ),
        (
            "a.json",
            r#"{"mcpServers": {}}"#,
            DiagnosticCode::ImportServers,
            "a.json:1:1",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"a": {"command": "x", "disabled": true}}}"#,
            DiagnosticCode::ImportServers,
            "a.json",
        ),
        (
            "a.json",
            r#"{"mcpServers": ["canary"]}"#,
            DiagnosticCode::ConfigType,
            "a.json:1:16",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"a": {"command": "x", "env": "canary"}}}"#,
            DiagnosticCode::ConfigType,
            "a.json:1:46",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"a": {"command": "x", "env": {"T": ["canary"]}}}}"#,
            DiagnosticCode::ConfigType,
            "a.json:1:52",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"a": {"command": "x", "args": "canary"}}}"#,
            DiagnosticCode::ConfigType,
            "a.json:1:47",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"a": {"command": "x", "disabled": "canary"}}}"#,
            DiagnosticCode::ConfigType,
            "a.json:1:51",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"a": {"command": "x", "url": "canary"}}}"#,
            DiagnosticCode::ConfigSourceKind,
            "a.json:1:46",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"a": {"type": "http", "command": "x"}}}"#,
            DiagnosticCode::ConfigSourceKind,
            "a.json:1:50",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"a": {"url": "ftp://canary"}}}"#,
            DiagnosticCode::UrlInvalid,
            "a.json:1:30 at /mcpServers/a/url",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"a": {"serverUrl": "http://h/", "headers": {"X-Key": "canary"}}}}"#,
            DiagnosticCode::PlainHttp,
            "a.json:1:36 at /mcpServers/a/serverUrl",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"a": {"command": "x", "instances": 0}}}"#,
            DiagnosticCode::ConfigRange,
            "a.json:1:52 at /mcpServers/a/instances",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"a": {"command": "x"}, "a": {"command": "x"}}}"#,
            DiagnosticCode::ConfigDupKey,
            "a.json:1:40",
        ),
        (
            "a.toml",
            "[mcp_servers.a]\nurl = 'https://h'\nmax_timeout = 'canary'",
            DiagnosticCode::ConfigRange,
            "a.toml:3:15",
        ),
    ] {
        let problems = refused(file, text);
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        let shown = problems[0].to_string();
        assert_eq!(problems[0].code, code, "{text}: {shown}");
        has(&shown, &[place]);
    }
    let size = vec![b' '; broker_config::MAX_BYTES + 1];
    let problems = convert("a.json", &size, None, files(&|_| true)).expect_err("too large");
    assert_eq!(problems[0].code, DiagnosticCode::ConfigSize);
    let deep = format!("{{\"mcpServers\": {}", "[".repeat(100));
    assert_eq!(refused("a.json", &deep)[0].code, DiagnosticCode::ConfigSize);
}

#[test]
fn file_with_too_many_servers_or_secrets_is_refused() {
    let entries = |count: usize, entry: &str| {
        let entries =
            (0..count).map(|at| format!("\"s{at}\": {}", entry.replace('#', &at.to_string())));
        format!(
            "{{\"mcpServers\": {{{}}}}}",
            entries.collect::<Vec<_>>().join(",")
        )
    };
    for text in [
        entries(MAX_SERVERS + 1, r#"{"command": "x"}"#),
        entries(
            MAX_VARIABLES + 1,
            r#"{"command": "x", "env": {"TOKEN": "canary#"}}"#,
        ),
    ] {
        let problems = refused("a.json", &text);
        assert_eq!(problems[0].code, DiagnosticCode::ConfigSize, "{problems:?}");
    }
    let most = entries(
        MAX_VARIABLES,
        r#"{"command": "x", "env": {"TOKEN": "canary#"}}"#,
    );
    assert_eq!(imported("a.json", &most).servers.len(), MAX_VARIABLES);
}

#[test]
fn sources_have_the_endpoint_of_the_file() {
    let imported = imported(
        "mcp.json",
        r#"{"mcpServers": {"a": {"command": "x y", "args": ["$HOME", "a b"]}, "b": {"type": "sse", "url": "https://h/sse"}}}"#,
    );
    let config = parsed(&imported.config);
    let endpoints: Vec<_> = config.sources().map(|source| &source.endpoint).collect();
    assert!(matches!(
        endpoints[..],
        [Endpoint::Process(_), Endpoint::Http(_)]
    ));
    let process = endpoints[0].process().expect("a process");
    // The program itself: neither split nor run by a shell.
    assert!(!process.is_shell());
    let words: Vec<_> = process.templates().map(|word| word.raw()).collect();
    assert_eq!(words, ["x y", "$HOME", "a b"]);
}

//! Files from reports of people, as `import` and `--config` read them.

use broker_config::client_file::Client;

use super::*;

/// Imports a file on a machine with `python3` and the file `server.py`.
#[track_caller]
fn import(file: &str, text: &str) -> Imported {
    let exists = |name: &str| ["python3", "server.py"].contains(&name);
    match convert(file, text.as_bytes(), None, files(&exists)) {
        Ok(imported) => imported,
        Err(problems) => panic!("{problems:#?}"),
    }
}

/// The messages of `lock --config` about a file, and its config.
#[track_caller]
fn locked(file: &str, text: &str) -> (Config, Vec<Diagnostic>) {
    let exists = |name: &str| ["python3", "server.py"].contains(&name);
    match Config::parse_file(file, text.as_bytes(), &exists) {
        Ok(parsed) => (parsed.config, parsed.warnings),
        Err(problems) => panic!("{problems:#?}"),
    }
}

fn python() -> Value {
    json!({"command": "python3", "args": ["server.py"]})
}

#[test]
fn settings_of_gemini_are_no_errors() {
    let text = include_str!("field/gemini_settings.json");
    let (config, warnings) = locked("settings.json", text);
    assert_eq!((config.sources().count(), warnings.len()), (1, 0));
    let imported = import("settings.json", text);
    assert_eq!(sources(&imported), json!({"/a": python()}));
}

#[test]
fn dollar_name_of_gemini_is_a_variable_and_its_times_are_milliseconds() {
    let text = include_str!("field/gemini_dollar.json");
    let imported = import("dollar.json", text);
    assert_eq!(imported.client, Some(Client::Gemini));
    assert_eq!(
        sources(&imported),
        json!({"/gh": {"url": "http://127.0.0.1:9931/mcp", "headers": {"Authorization": "Bearer ${GITHUB_MCP_PAT}"}, "timeout": 15}})
    );
    assert_eq!(names(&imported), ["GITHUB_MCP_PAT"]);
    let (config, warnings) = locked("dollar.json", text);
    assert_eq!(warnings, []);
    let source = config.sources().next().expect("a source");
    assert_eq!(source.timeout.as_secs(), 15);
    assert!(config.variables().contains("GITHUB_MCP_PAT"));
}

#[test]
fn local_and_remote_servers_are_read_under_the_keys_of_their_clients() {
    for (file, text, client, expected) in [
        (
            "copilot.json",
            include_str!("field/copilot.json"),
            Client::Copilot,
            json!({"/a": python()}),
        ),
        (
            "opencode.json",
            include_str!("field/opencode.json"),
            Client::Opencode,
            json!({"/a": {"command": "python3", "args": ["server.py"], "env": {"X": "1"}}}),
        ),
        (
            "zed.json",
            include_str!("field/zed.json"),
            Client::Zed,
            json!({"/a": python(), "/b": python()}),
        ),
    ] {
        let imported = import(file, text);
        assert_eq!(imported.client, Some(client), "{file}");
        assert_eq!(sources(&imported), expected, "{file}");
        let (config, _) = locked(file, text);
        let commands = config.sources().map(|source| {
            let words = source.process().expect("a process").templates();
            words.map(|word| word.raw().to_owned()).collect::<Vec<_>>()
        });
        for words in commands {
            assert_eq!(words[..2], ["python3", "server.py"], "{file}");
        }
    }
}

#[test]
fn whole_line_in_command_is_split_with_a_note() {
    let text = include_str!("field/line.json");
    let imported = import("mcp.json", text);
    assert_eq!(sources(&imported), json!({"/a": python()}));
    has(
        &texts(&imported),
        &["`a`: `command` names neither a program nor a file; it was split"],
    );
    let (config, warnings) = locked("mcp.json", text);
    let source = config.sources().next().expect("a source");
    let words = source.process().expect("a process").templates();
    assert_eq!(
        words.map(|word| word.raw()).collect::<Vec<_>>(),
        ["python3", "server.py"]
    );
    assert_eq!(warnings[0].code, DiagnosticCode::ClientValue);
}

#[test]
fn yaml_of_librechat_and_goose_is_read_and_milliseconds_are_seconds() {
    let imported = import("librechat.yaml", include_str!("field/librechat.yaml"));
    assert_eq!(imported.client, Some(Client::LibreChat));
    assert_eq!(
        sources(&imported),
        json!({"/everything": {"url": "http://127.0.0.1:9901/sse", "timeout": 60}, "/local": python()})
    );
    has(
        &texts(&imported),
        &["`headers.X-User-ID` is not taken: it has a value of a user of LibreChat"],
    );
    let imported = import("goose.yaml", include_str!("field/goose.yaml"));
    assert_eq!(imported.client, Some(Client::Goose));
    assert_eq!(
        sources(&imported),
        json!({"/gh": {"command": "python3", "args": ["server.py"], "env": {"X": "1"}, "timeout": 300}})
    );
    has(
        &texts(&imported),
        &["left out: `dev`: it is a part of goose"],
    );
    let text = include_str!("field/amazonq.json");
    let imported = import("amazonq.json", text);
    assert_eq!(imported.client, Some(Client::AmazonQ));
    let mut expected = python();
    expected["timeout"] = json!(120);
    assert_eq!(sources(&imported), json!({"/a": expected}));
    let (config, _) = locked("amazonq.json", text);
    assert_eq!(
        config.sources().next().expect("a source").timeout.as_secs(),
        120
    );
}

#[test]
fn timeout_of_an_unknown_client_is_read_as_lock_reads_it() {
    let text = r#"{"mcpServers": {"a": {"command": "python3", "timeout": 120000}, "b": {"command": "python3", "timeout": 7200}}}"#;
    let imported = import("mcp.json", text);
    assert_eq!(imported.client, None);
    assert_eq!(
        sources(&imported),
        json!({"/a": {"command": "python3"}, "/b": {"command": "python3", "timeout": 7200}})
    );
    has(
        &texts(&imported),
        &[
            "`timeout` of 120000 is not taken",
            "`timeout` of 7200 is taken as seconds",
        ],
    );
}

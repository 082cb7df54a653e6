//! A file of each client with two servers, as its documentation has it.

use std::fs;
use std::path::Path;

use broker_client_files::{ClientFile, read};
use broker_config::Config;
use broker_config::client_file::{Client, NoteKind};
use broker_model::Diagnostic;
use serde_json::{Value, json};

fn read_file(name: &str, from: Option<Client>) -> Result<ClientFile, Vec<Diagnostic>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    let text = fs::read_to_string(&path).expect(name);
    read(&path.to_string_lossy(), &text, from, &|_| true)
}

/// The servers in the form of a config.
fn servers(file: &ClientFile) -> Value {
    let key = file.converted.key.expect("servers");
    file.root.get(key).expect("there").to_value()
}

/// The keys that were not taken.
fn not_taken(file: &ClientFile) -> Vec<String> {
    let notes = file.converted.notes.iter();
    let keys = notes.filter_map(|note| match &note.kind {
        NoteKind::NotTaken { key, .. } => Some(format!("{}.{key}", note.server)),
        NoteKind::LeftOut(_) => Some(note.server.clone()),
        _ => None,
    });
    keys.collect()
}

#[test]
fn file_of_each_client_gives_the_servers_of_a_config() {
    let npx = json!({"command": "npx", "args": ["-y", "server@1.2.3"]});
    let with = |members: Value| {
        let mut entry = npx.clone();
        let all = entry.as_object_mut().expect("an object");
        all.extend(members.as_object().expect("an object").clone());
        entry
    };
    let url = |members: Value| {
        let mut entry = json!({"url": "https://example.com/mcp"});
        let all = entry.as_object_mut().expect("an object");
        all.extend(members.as_object().expect("an object").clone());
        entry
    };
    for (name, client, local, remote, left) in [
        (
            "claude_desktop_config.json",
            Client::Claude,
            json!({"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/Documents"]}),
            json!({"type": "http", "url": "https://api.githubcopilot.com/mcp/", "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}"}, "timeout": 600}),
            &[][..],
        ),
        (
            ".cursor/mcp.json",
            Client::Cursor,
            json!({"type": "stdio", "command": "npx", "args": ["-y", "server@1.2.3", "${workspaceFolder}/data"], "env": {"API_KEY": "${env:API_KEY}"}}),
            url(json!({"headers": {"X-Token": "${env:TOKEN}"}})),
            &[],
        ),
        (
            ".vscode/mcp.json",
            Client::VsCode,
            with(json!({"type": "stdio", "env": {"KEY": "${input:key}"}})),
            url(json!({"type": "http", "headers": {"X-Token": "${env:TOKEN}"}})),
            &[],
        ),
        (
            ".codex/config.toml",
            Client::Codex,
            with(
                json!({"env": {"LOCALE": "de"}, "inherit_env": ["LOCAL_TOKEN"], "startup_timeout": 20, "timeout": 45.5, "tool_filter": ["search"]}),
            ),
            url(
                json!({"headers": {"Authorization": "Bearer ${REMOTE_TOKEN}", "X-Region": "eu", "X-Team": "${TEAM}"}, "startup_timeout": 2.5}),
            ),
            &[],
        ),
        (
            ".gemini/settings.json",
            Client::Gemini,
            json!({"command": "python", "args": ["-m", "my_mcp_server", "--port", "8080"], "cwd": "./mcp-servers/python",
                "env": {"DATABASE_URL": "${DB_CONNECTION_STRING}", "API_KEY": "${EXTERNAL_API_KEY}"}, "timeout": 15, "trust": false}),
            url(
                json!({"headers": {"Authorization": "Bearer ${TOKEN}"}, "timeout": 5, "tool_filter": ["read", "!write"]}),
            ),
            &[],
        ),
        (
            ".copilot/mcp-config.json",
            Client::Copilot,
            json!({"type": "stdio", "command": "npx", "args": ["@playwright/mcp@latest"], "env": {"TOKEN": "${TOKEN}"}}),
            json!({"type": "http", "url": "https://mcp.context7.com/mcp", "headers": {"CONTEXT7_API_KEY": "${CONTEXT7_API_KEY}"}, "tool_filter": ["resolve-library-id"]}),
            &[],
        ),
        (
            "opencode.jsonc",
            Client::Opencode,
            json!({"type": "stdio", "command": ["bun", "x", "my-mcp-command"], "env": {"MY_ENV_VAR": "${MY_ENV_VAR}"}, "enabled": true, "timeout": 20}),
            json!({"type": "http", "url": "https://my-mcp-server.com", "enabled": true, "headers": {"Authorization": "Bearer ${MY_API_KEY}"}}),
            &[],
        ),
        (
            "zed/settings.json",
            Client::Zed,
            with(json!({"env": {"A": "b"}})),
            url(json!({"headers": {"X-Region": "eu"}, "timeout": 90})),
            &[],
        ),
        (
            "windsurf/mcp_config.json",
            Client::Windsurf,
            with(json!({"env": {"TOKEN": "${env:TOKEN}"}, "tool_filter": ["!delete"]})),
            url(json!({"headers": {"API_KEY": "Bearer ${env:AUTH_TOKEN}"}})),
            &[],
        ),
        (
            "cline_mcp_settings.json",
            Client::Cline,
            json!({"command": "node", "args": ["/path/to/server.js"], "env": {"API_KEY": "${env:API_KEY}"}, "autoApprove": ["tool1"], "disabled": false, "timeout": 60}),
            url(
                json!({"type": "http", "headers": {"X-Region": "eu"}, "autoApprove": [], "disabled": false, "timeout": 300}),
            ),
            &[],
        ),
        (
            ".roo/mcp.json",
            Client::Roo,
            json!({"command": "node", "args": ["server.js"], "cwd": "/path/to/project", "env": {"API_KEY": "${env:API_KEY}"}, "alwaysAllow": ["tool1"], "tool_filter": ["!tool3"], "timeout": 120}),
            url(json!({"type": "http", "headers": {"X-Region": "eu"}})),
            &[],
        ),
        (
            ".continue/config.yaml",
            Client::Continue,
            json!({"command": "uvx", "args": ["mcp-server-sqlite", "--db-path", "./test.db"], "env": {"TOKEN": "${TOKEN}"}, "startup_timeout": 30}),
            url(json!({"type": "http", "headers": {"Authorization": "Bearer ${API_KEY}"}})),
            &[],
        ),
        (
            "librechat.yaml",
            Client::LibreChat,
            json!({"type": "stdio", "command": "npx", "args": ["-y", "@modelcontextprotocol/server-puppeteer"], "env": {"PORT": "5432", "KEY": "${KEY}"}, "timeout": 60, "startup_timeout": 10, "serverInstructions": true}),
            url(
                json!({"type": "http", "headers": {"X-API-Key": "${SOME_API_KEY}"}, "chatMenu": false}),
            ),
            &["remote.headers.X-User-ID"],
        ),
        (
            "goose/config.yaml",
            Client::Goose,
            with(
                json!({"type": "stdio", "name": "local", "env": {"LOCALE": "de"}, "inherit_env": ["TOKEN"], "enabled": true, "timeout": 300}),
            ),
            url(
                json!({"type": "http", "name": "remote", "headers": {"Authorization": "Bearer ${API_KEY}"}, "enabled": true, "timeout": 120}),
            ),
            &["developer"],
        ),
        (
            ".lmstudio/mcp.json",
            Client::LmStudio,
            npx.clone(),
            json!({"url": "https://huggingface.co/mcp", "headers": {"X-Region": "eu"}}),
            &[],
        ),
        (
            ".amazonq/mcp.json",
            Client::AmazonQ,
            json!({"command": "uvx", "args": ["awslabs.core-mcp-server@latest"], "env": {"FASTMCP_LOG_LEVEL": "ERROR"}, "timeout": 120, "autoApprove": ["*"], "disabled": false}),
            url(json!({"type": "http", "timeout": 60})),
            &[],
        ),
    ] {
        let file = read_file(name, None).expect(name);
        assert_eq!(file.client, Some(client), "{name}");
        let mut expected = json!({"local": local, "remote": remote});
        if client == Client::Claude {
            expected = json!({"filesystem": local, "github": remote});
        }
        assert_eq!(servers(&file), expected, "{name}");
        assert_eq!(not_taken(&file), left, "{name}");
        assert!(file.converted.problems.is_empty(), "{name}");
        // A person who names the client gets the same.
        let named = read_file(name, Some(client)).expect(name);
        assert_eq!(servers(&named), servers(&file), "{name}");
        // A config takes the result, except questions of an editor.
        if client == Client::VsCode {
            continue;
        }
        let config = json!({"mcpServers": servers(&file)}).to_string();
        let parsed = Config::parse("c.json", config.as_bytes()).expect(name);
        assert_eq!(parsed.config.sources().count(), 2, "{name}");
    }
}

#[test]
fn every_client_has_a_word_and_a_file() {
    for client in Client::ALL {
        assert_eq!(Client::from_word(client.word()), Some(client));
    }
}

#[test]
fn named_client_decides_what_a_file_means() {
    let text = r#"{"limits": {"body_bytes": 65536}, "mcpServers": {"a": {"command": "x", "timeout": 30000, "env": {"K": "$KEY"}}}}"#;
    let read = |from| read("c.json", text, from, &|_| true).expect("valid");
    let plain = read(None);
    assert_eq!(plain.client, None);
    assert!(plain.root.get("limits").is_some());
    assert_eq!(servers(&plain)["a"]["timeout"], 30_000);
    let gemini = read(Some(Client::Gemini));
    assert!(gemini.root.get("limits").is_none());
    assert_eq!(
        servers(&gemini)["a"],
        json!({"command": "x", "timeout": 30, "env": {"K": "${KEY}"}})
    );
}

#[test]
fn time_that_a_config_does_not_take_is_not_taken() {
    let text = r#"{"mcpServers": {"a": {"httpUrl": "https://h/", "timeout": 5}, "b": {"command": "x", "timeout": 90000000}}}"#;
    let file = read("c.json", text, None, &|_| true).expect("valid");
    assert_eq!(file.client, Some(Client::Gemini));
    assert_eq!(not_taken(&file), ["a.timeout", "b.timeout"]);
    assert_eq!(
        servers(&file),
        json!({"a": {"url": "https://h/"}, "b": {"command": "x"}})
    );
}

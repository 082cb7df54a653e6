//! Files of VS Code, as their editor writes them.

use std::path::Path;

use super::*;

const FILE: &str = r#"{
  // The team's servers.
  "inputs": [{"type": "promptString", "id": "k", "password": true,}],
  "servers": {
    "files": {
      "type": "stdio", /* a
      block */ "command": "npx",
      "args": ["-y", "server@1.2.3", "${workspaceFolder}/data"],
      "env": {"API_KEY": "${env:MY_KEY}", "URL": "http://x//y"},
    },
    "off": {"command": "x", "disabled": true},
  },
}"#;

#[test]
fn vscode_file_is_read_as_it_is() {
    let parsed = parse(FILE);
    let sources: Vec<_> = parsed.config.sources().collect();
    assert_eq!(sources.len(), 1);
    assert_eq!(
        (sources[0].path.as_str(), sources[0].pointer.as_str()),
        ("/files", "/servers/files")
    );
    assert_eq!(
        words(&sources[0].process().unwrap().command),
        ["npx", "-y", "server@1.2.3", "${workspaceFolder}/data"]
    );
    assert_eq!(
        sources[0].process().unwrap().env["API_KEY"].raw(),
        "${MY_KEY}"
    );
    assert_eq!(
        sources[0].process().unwrap().env["URL"].raw(),
        "http://x//y"
    );
    assert_eq!(
        places(&parsed.warnings),
        [(Code::KeyIgnored, "/servers/off")]
    );
    // The compiled-in config is an `mcpServers` file with the same digest.
    let text = parsed.config.compiled_text();
    assert!(text.starts_with(r#"{"mcpServers":{"files":"#), "{text}");
    assert_eq!(parse(&text).config.digest(), parsed.config.digest());
}

#[test]
fn vscode_file_is_converted_with_its_other_settings() {
    let file = r#"{"$schema":"x","on_unreachable":"serve","limits":{"body_bytes":65536},
        "inputs":[],"servers":{"b":{"command":"x"},"a":{"command":"y"},}}"#;
    let config = parse(file).config;
    let text = config.converted_text().unwrap();
    assert!(
        !text.contains("$schema") && !text.contains("inputs"),
        "{text}"
    );
    assert!(text.find("\"b\"") < text.find("\"a\""), "{text}");
    let converted = parse(&text).config;
    assert_eq!(converted.on_unreachable, config.on_unreachable);
    assert_eq!(converted.limits.body_bytes, 65_536);
    assert_eq!(converted.digest(), config.digest());
}

#[test]
fn vscode_file_in_its_folder_refers_to_the_folder_above() {
    let theirs = parse(FILE).config;
    let ours = parse(r#"{"mcpServers":{"a":{"command":"x"}}}"#).config;
    for (config, file, base) in [
        (&theirs, "/w/.vscode/mcp.json", "/w"),
        (&theirs, "/w/mcp.json", "/w"),
        (&theirs, "w/mcp.json", "w"),
        (&ours, "/w/.vscode/mcp.json", "/w/.vscode"),
    ] {
        assert_eq!(config.base(Path::new(file)), Path::new(base), "{file}");
    }
}

#[test]
fn vscode_questions_and_env_files_are_refused_with_the_variable_to_use() {
    let found = refused(
        "{\"servers\":{\"a\":{\"command\":\"x\",/* é */\"envFile\":\".env\",\n\"env\":{\"K\":\"${input:api-key}\"},\"args\":[\"${config:a.b}\"]}}}",
    );
    assert_eq!(
        places(&found),
        [
            (Code::NotSupportedYet, "/servers/a/envFile"),
            (Code::EnvSyntax, "/servers/a/env/K"),
            (Code::EnvSyntax, "/servers/a/args/0"),
        ]
    );
    for (found, name, line, column) in [
        (&found[0], "${NAME}", 1, 39),
        (&found[1], "${API_KEY}", 2, 12),
        (&found[2], "${A_B}", 2, 40),
    ] {
        assert!(found.remedy().contains(name), "{found}");
        let position = found.position.unwrap();
        assert_eq!((position.line, position.column), (line, column), "{found}");
    }
}

#[test]
fn comments_and_trailing_commas_are_refused_in_other_configs() {
    for text in [
        "{\"mcpServers\":{\"a\":{\"command\":\"x\"},}}",
        "{/**/\"mcpServers\":{\"a\":{\"command\":\"x\"}}}",
        "{\"tree\":[],}",
        "{\"tree\":[] // \"servers\":\n}",
        "{\"servers\":{},\"tree\":[],}",
        "{\"mcpServers\":{\"servers\":{\"command\":\"x\"},}}",
    ] {
        assert_eq!(only(text).code, Code::ConfigSyntax, "{text}");
    }
}

#[test]
fn vscode_file_with_an_error_has_its_position() {
    for (text, code, line, column) in [
        (
            "{\"servers\":{/* é */\n\"a\": // é\n x}}",
            Code::ConfigSyntax,
            3,
            2,
        ),
        ("{\"servers\":{/* é */ x}}", Code::ConfigSyntax, 1, 21),
        (
            "{\"servers\":{\"a\":{\"command\":\"x\"},,}}",
            Code::ConfigSyntax,
            1,
            33,
        ),
        ("{\"servers\":{} /* }", Code::ConfigSyntax, 1, 15),
        (
            "{\"servers\":{},/*é*/\"servers\":{}}",
            Code::ConfigDupKey,
            1,
            20,
        ),
    ] {
        let found = only(text);
        assert_eq!(found.code, code, "{text}");
        let position = found.position.unwrap();
        assert_eq!((position.line, position.column), (line, column), "{text}");
    }
    let deep = format!("{{\"servers\":{}", "[".repeat(100));
    assert_eq!(only(&deep).code, Code::ConfigSize);
}

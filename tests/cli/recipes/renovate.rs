//! The custom managers for Renovate find the versions that configs pin.

use regex::Regex;
use serde_json::{Value, json};

use super::page::block;

/// What the managers find in a config: the data source, the name and the version.
fn found(config: &str) -> Vec<(String, String, String)> {
    let settings: Value =
        serde_json::from_str(&block("A bot that raises a version", "json")).expect("JSON");
    let mut out = Vec::new();
    for manager in settings["customManagers"].as_array().expect("managers") {
        let files = manager["managerFilePatterns"][0]
            .as_str()
            .expect("a pattern");
        let files = Regex::new(files.trim_matches('/')).expect("a pattern of files");
        assert!(files.is_match("config.json") && files.is_match("services/a/config.json"));
        assert!(!files.is_match("config.lock.json"));
        let pattern = manager["matchStrings"][0].as_str().expect("a pattern");
        let pattern = Regex::new(pattern).expect("a pattern of versions");
        let source = manager["datasourceTemplate"].as_str().expect("a source");
        out.extend(pattern.captures_iter(config).map(|one| {
            let part = |name: &str| one[name].to_owned();
            (source.to_owned(), part("depName"), part("currentValue"))
        }));
    }
    out
}

#[test]
fn renovate_finds_every_pinned_version() {
    let config = json!({"mcpServers": {
        "a": {"command": "npx", "args": ["-y", "@scope/server@1.2.3"]},
        "b": {"command": "npx -y plain-server@2.0.0-beta.1 --flag"},
        "c": {"command": "uvx", "args": ["some_server==0.4.1"]},
        "d": {"command": "npx", "args": ["-y", "floating@latest"]},
        "e": {"command": "server", "args": ["user@example.org", "/tmp/a@1.0.0/b"]},
    }});
    let of = |source: &str, name: &str, version: &str| {
        (source.to_owned(), name.to_owned(), version.to_owned())
    };
    assert_eq!(
        found(&serde_json::to_string_pretty(&config).expect("JSON")),
        [
            of("npm", "@scope/server", "1.2.3"),
            of("npm", "plain-server", "2.0.0-beta.1"),
            of("pypi", "some_server", "0.4.1"),
        ]
    );
}

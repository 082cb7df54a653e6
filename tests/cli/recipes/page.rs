//! The blocks of `docs/ci.md`, and the repositories on which they run.

use std::fs;

use harness::Bench;
use serde_json::{Value, json};

use super::runner::git;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/ci.md");

/// The first block of this language below a heading.
pub(super) fn block(heading: &str, language: &str) -> String {
    let page = fs::read_to_string(PAGE).expect("the page is there");
    let (_, section) = page
        .split_once(&format!("\n## {heading}\n"))
        .expect("the page has the heading");
    let section = section.split("\n## ").next().unwrap_or_default();
    let begin = format!("\n```{language}\n");
    let (_, rest) = section
        .split_once(&begin)
        .expect("the section has the block");
    let (block, _) = rest.split_once("\n```").expect("the block ends");
    format!("{block}\n")
}

/// A tool that takes any arguments.
pub(super) fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// A repository with the config `config.json` of one server, its lock, and one commit on `main`.
pub(super) fn repository() -> Bench {
    let bench = Bench::new();
    bench.one_tool("a", tool("read", "Reads."));
    bench.write("config.json", &config("a.json").to_string());
    bench.write(".gitignore", "*.log\n");
    bench.fine(&["lock", "--config", "config.json"]);
    let folder = bench.path("");
    git(&folder, &["init", "-q", "-b", "main", "."]);
    git(
        &folder,
        &["config", "uploadpack.allowAnySHA1InWant", "true"],
    );
    commit(&bench, "base");
    bench
}

/// A config whose only server runs a script, with a variable that a bot can empty.
pub(super) fn config(script: &str) -> Value {
    json!({"tree": [{"path": "/a", "type": "node", "source": {
        "command": ["chaos-mcp", "--script", script], "cwd": ".",
        "env": {"API_TOKEN": "${API_TOKEN:-none}"},
    }}]})
}

/// Commits everything; returns the commit.
pub(super) fn commit(bench: &Bench, message: &str) -> String {
    let folder = bench.path("");
    git(&folder, &["add", "-A"]);
    git(&folder, &["commit", "-q", "-m", message]);
    git(&folder, &["rev-parse", "HEAD"])
}

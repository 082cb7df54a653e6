//! `new`: the files that it makes and their content; it never changes an existing file.

use std::fs;

use harness::{Bench, contains};
use serde_json::{Value, json};

use super::bench::workspace;

const FILES: [&str; 11] = [
    "Cargo.toml",
    "build.rs",
    "src/main.rs",
    "config.json",
    "config.schema.json",
    ".gitignore",
    ".dockerignore",
    ".github/workflows/broker.yml",
    "Dockerfile",
    "mine.service",
    "README.md",
];

#[test]
fn new_crate_is_complete_and_prints_the_next_steps() {
    let bench = Bench::new();
    let output = bench.run(&["new", "mine"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "created the crate `mine`",
            "broker-gen lock --config config.json",
        ],
    );
    for file in FILES {
        let text = bench.read(&format!("mine/{file}"));
        assert!(!text.is_empty() && text.ends_with('\n'), "{file}");
        let left = text.replace("${{", "").contains("{{");
        assert!(!left, "{file} has a place that was not filled:\n{text}");
        assert!(
            !text.contains(&*bench.path("").to_string_lossy()),
            "{file} names a folder"
        );
    }
    let version = env!("CARGO_PKG_VERSION");
    contains(
        &bench.read("mine/Cargo.toml"),
        &[
            &format!("mcp-broker = {{ version = \"{version}\" }}"),
            &format!("broker-gen = {{ version = \"{version}\", default-features = false }}"),
        ],
    );
    let main = bench.read("mine/src/main.rs");
    assert!(main.lines().count() <= 10, "{main}");
    contains(
        &bench.read("mine/Dockerfile"),
        &["FROM rust", "FROM debian", "USER 10001"],
    );
    contains(
        &bench.read("mine/mine.service"),
        &["ExecStart=/usr/local/bin/mine 127.0.0.1:8100"],
    );
}

#[test]
fn new_crate_has_the_main_of_this_workspace() {
    let bench = Bench::new();
    bench.fine(&["new", "mine"]);
    let code = |text: &str| {
        text.lines()
            .filter(|line| !line.starts_with("//!"))
            .collect::<String>()
    };
    let ours = fs::read_to_string(workspace().join("src/main.rs")).expect("our own");
    assert_eq!(code(&bench.read("mine/src/main.rs")), code(&ours));
}

#[test]
fn new_crate_overwrites_no_file() {
    let bench = Bench::new();
    for file in FILES {
        let folder = bench.path("mine");
        let path = folder.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        fs::write(&path, "mine").expect("writable");
        let output = bench.run(&["new", "mine"]);
        assert_eq!(output.code, Some(2), "{file}: {}", output.stderr);
        contains(
            &output.stderr,
            &["file_exists", file, "nothing was written"],
        );
        let found = FILES
            .iter()
            .filter(|name| folder.join(name).exists())
            .count();
        assert_eq!(found, 1, "{file}: something was written");
        assert_eq!(fs::read_to_string(&path).expect("still there"), "mine");
        fs::remove_dir_all(&folder).expect("removable");
    }
    fs::create_dir_all(bench.path("mine")).expect("writable");
    bench.write("mine/notes.txt", "kept");
    bench.fine(&["new", "mine"]);
    assert_eq!(bench.read("mine/notes.txt"), "kept");
}

#[test]
fn new_crate_from_an_mcp_servers_file_has_no_secrets() {
    let bench = Bench::new();
    let text = r#"{
  "mcpServers": {
    "zeta": {"command": "npx", "args": ["-y", "z@1"], "env": {"Z_TOKEN": "s3\"cr\u00e9t", "MODE": "fast"}},
    "alpha": {"command": "uvx", "args": ["a"], "env": {"API_KEY": "${A_KEY}"}, "autoApprove": []}
  }
}"#;
    bench.write("mcp.json", text);
    let output = bench.run(&[
        "new",
        "mine",
        "--from",
        "mcp.json",
        "--broker",
        "https://example.org/b#v1",
    ]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(&output.stderr, &["key_ignored", "Z_TOKEN"]);
    let written = bench.read("mine/config.json");
    for leak in ["s3", "cr\u{e9}t", "u00e9"] {
        assert!(
            !written.contains(leak) && !output.stderr.contains(leak),
            "{written}"
        );
    }
    let expected = text
        .replacen('{', "{\n  \"$schema\": \"./config.schema.json\",", 1)
        .replace(r#""s3\"cr\u00e9t""#, "\"${Z_TOKEN}\"");
    assert_eq!(written, expected, "everything else is as it was written");
    contains(
        &bench.read("mine/.github/workflows/broker.yml"),
        &[
            "A_KEY: ${{ secrets.A_KEY }}",
            "Z_TOKEN: ${{ secrets.Z_TOKEN }}",
            "--git https://example.org/b --rev v1 broker-gen",
        ],
    );
    contains(
        &bench.read("mine/README.md"),
        &["`A_KEY`, `Z_TOKEN`", "-e A_KEY -e Z_TOKEN"],
    );
    contains(
        &bench.read("mine/Cargo.toml"),
        &[r#"git = "https://example.org/b", rev = "v1""#],
    );
}

#[test]
fn new_crate_keeps_a_schema_that_the_config_names() {
    let bench = Bench::new();
    let config =
        json!({"$schema": "./mine.json", "tree": [{"path": "/a", "source": {"command": "./x"}}]});
    bench.write("c.json", &config.to_string());
    let output = bench.run(&["new", "mine", "--from", "c.json"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(&output.stderr, &["relative path"]);
    let written: Value = serde_json::from_str(&bench.read("mine/config.json")).expect("JSON");
    assert_eq!(written, config);
}

#[test]
fn new_crate_with_wrong_arguments_is_refused_before_any_write() {
    let bench = Bench::new();
    bench.write("broken.json", r#"{"mcpServers": {"a": {"comand": "x"}}}"#);
    for (args, says) in [
        (
            &["new", "mine", "--from", "none.json"][..],
            "config_unreadable",
        ),
        (
            &["new", "mine", "--from", "broken.json"],
            "did you mean `command`",
        ),
        (
            &["new", "mine", "--broker", "latest"],
            "is not a version, a git URL or a folder",
        ),
        (&["new", "mine", "--broker", "."], "without `broker-gen`"),
        (&["new", "fn"], "word of Rust"),
        (&["new"], "<DIR>"),
    ] {
        let output = bench.run(args);
        assert_eq!(output.code, Some(2), "{args:?}: {}", output.stderr);
        contains(&output.stderr, &[says]);
        assert!(
            !bench.path("mine").exists() && !bench.path("fn").exists(),
            "{args:?}"
        );
    }
}

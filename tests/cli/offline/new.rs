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

/// A repository that is not reached: `new` downloads nothing.
const BROKER: [&str; 2] = ["--broker", "https://example.org/b#v1"];

/// `new` with these arguments and a repository.
fn new(bench: &Bench, args: &[&str]) -> harness::Output {
    bench.run(&[&["new"][..], args, &BROKER].concat())
}

#[test]
fn new_crate_is_complete_and_prints_the_next_steps() {
    let bench = Bench::new();
    let output = new(&bench, &["mine"]);
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
    contains(
        &bench.read("mine/Cargo.toml"),
        &[
            r#"mcp-broker = { git = "https://example.org/b", rev = "v1" }"#,
            r#"broker-build = { git = "https://example.org/b", rev = "v1" }"#,
        ],
    );
    let main = bench.read("mine/src/main.rs");
    assert!(main.lines().count() <= 10, "{main}");
    contains(
        &bench.read("mine/Dockerfile"),
        &[
            "FROM rust",
            "FROM debian",
            "USER 10001",
            "COPY Cargo.toml Cargo.lock ./\nRUN mkdir src",
        ],
    );
    for file in ["mcp.yml", "mcp-lock.yml", "broker.yml"] {
        contains(
            &bench.read(&format!("mine/.github/workflows/{file}")),
            &["uses: actions/cache@v4"],
        );
    }
    contains(
        &bench.read("mine/mine.service"),
        &["ExecStart=/usr/local/bin/mine 127.0.0.1:8100"],
    );
}

#[test]
fn new_crate_has_the_main_of_this_workspace() {
    let bench = Bench::new();
    assert_eq!(new(&bench, &["mine"]).code, Some(0));
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
        let output = new(&bench, &["mine"]);
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
    assert_eq!(new(&bench, &["mine"]).code, Some(0));
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
        .replacen(
            '{',
            "{\n  \"$schema\": \"./config.schema.json\",\n  \"coerce\": true,",
            1,
        )
        .replace(r#""s3\"cr\u00e9t""#, "\"${Z_TOKEN}\"");
    assert_eq!(written, expected, "everything else is as it was written");
    contains(
        &bench.read("mine/.github/workflows/mcp.yml"),
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
    let output = new(&bench, &["mine", "--from", "c.json"]);
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
            &["new", "mine", "--from", "none.json", "--broker", "0.1.0"][..],
            "config_unreadable",
        ),
        (
            &["new", "mine", "--from", "broken.json", "--broker", "0.1.0"],
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

#[test]
fn new_crate_without_a_broker_has_a_repository_or_a_remedy() {
    let bench = Bench::new();
    let output = bench.run(&["new", "mine"]);
    // This program was built from a clone with an origin, or from a copy without one.
    if output.code == Some(0) {
        let manifest = bench.read("mine/Cargo.toml");
        contains(&manifest, &["mcp-broker = { git = \"http", "rev = \""]);
    } else {
        assert_eq!(output.code, Some(2), "{}", output.stderr);
        contains(
            &output.stderr,
            &["does not know its repository", "--broker https://"],
        );
        assert!(!bench.path("mine").exists());
    }
}

#[test]
fn new_crate_from_a_file_of_vscode_is_a_config_without_secrets() {
    let bench = Bench::new();
    let text = r#"{
  // "servers" of the team
  "inputs": [],
  "servers": {
    "zeta": {"command": "npx", "args": ["-y", "z@1", "${workspaceFolder}"], "env": {"Z_TOKEN": "s3cret", "A": "${env:A_KEY}"}},
    "alpha": {"command": "uvx", "args": ["a@1"],},
  }
}"#;
    bench.write("mcp.json", text);
    let output = new(&bench, &["mine", "--from", "mcp.json"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(&output.stderr, &["Z_TOKEN"]);
    let written = bench.read("mine/config.json");
    assert!(!written.contains("s3cret") && !output.stderr.contains("s3cret"));
    let order = written.find("zeta").zip(written.find("alpha"));
    assert!(order.is_some_and(|(zeta, alpha)| zeta < alpha), "{written}");
    let written: Value = serde_json::from_str(&written).expect("JSON without comments");
    let env = &written["mcpServers"]["zeta"]["env"];
    assert_eq!(*env, json!({"A": "${A_KEY}", "Z_TOKEN": "${Z_TOKEN}"}));
    let readme = bench.read("mine/README.md");
    contains(&readme, &["`A_KEY`, `Z_TOKEN`"]);
    assert!(!readme.contains("workspaceFolder"), "it is not a variable");
}

#[test]
fn new_crate_is_a_git_repository_unless_it_is_in_one() {
    let bench = Bench::new();
    let git = |crate_folder: &str| bench.path(crate_folder).join(".git").exists();
    let output = new(&bench, &["mine"]);
    contains(&output.stderr, &["made a git repository"]);
    assert!(git("mine"));
    // The first crate is a work tree.
    assert_eq!(new(&bench, &["mine/inner"]).code, Some(0));
    assert!(!git("mine/inner"));
    assert_eq!(new(&bench, &["plain", "--no-git"]).code, Some(0));
    assert!(!git("plain"));
    // A repository that the environment names is another one.
    let args = [&["new", "other"][..], &BROKER].concat();
    let elsewhere = bench.path("elsewhere").to_string_lossy().into_owned();
    let output = bench.run_with_env(&args, &[("GIT_DIR", &elsewhere)]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(git("other") && !bench.path("elsewhere").exists());
}

#[test]
fn new_crate_with_a_folder_says_what_it_means() {
    let bench = Bench::new();
    let folder = workspace().to_string_lossy().into_owned();
    let output = bench.run(&["new", "mine", "--no-git", "--broker", &folder]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(
        &output.stderr,
        &["Dockerfile and workflow fail elsewhere", "git URL"],
    );
}

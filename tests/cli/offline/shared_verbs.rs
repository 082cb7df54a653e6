//! The verbs of a broker that `broker-gen` has as well: one implementation, with the name of the program that runs.

use std::fs;

use harness::{Output, Run, assert_inert, binary, contains};
use serde_json::{Value, json};
use tempfile::TempDir;

fn run(program: &str, home: &TempDir, args: &[&str]) -> Output {
    let output = Run::new(&binary(program))
        .folder(home.path())
        .env("HOME", home.path())
        .env("MCP_BROKER_CONFIG", "")
        .args(args)
        .output();
    assert_inert("stdout", &output.stdout);
    assert_inert("stderr", &output.stderr);
    output
}

#[test]
fn connect_of_the_generator_starts_serve_with_the_config() {
    let home = tempfile::tempdir().expect("a folder can be made");
    for name in ["c.json", "config.json"] {
        fs::write(home.path().join(name), "{}").expect("it can be written");
    }
    let folder = fs::canonicalize(home.path()).expect("it exists");
    let program = fs::canonicalize(binary("broker-gen")).expect("the program is built");
    // Without CONFIG it is the default config of the generator.
    for (args, config) in [(&["c.json"][..], "c.json"), (&[], "config.json")] {
        let args = [&["connect", "json"], args].concat();
        let output = run("broker-gen", &home, &args);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        let document: Value = serde_json::from_str(&output.stdout).expect("the output is JSON");
        let config = folder.join(config);
        let words = json!(["serve", "stdio", "--config", config]);
        assert_eq!(
            document,
            json!({"mcpServers": {"broker": {"command": program, "args": words}}})
        );
    }
    fs::remove_file(home.path().join("config.json")).expect("it exists");
    let output = run("broker-gen", &home, &["connect", "json"]);
    assert_eq!(output.code, Some(2), "{}", output.stdout);
    contains(&output.stderr, &["the config `"]);
}

#[test]
fn shared_verbs_of_both_programs_answer_alike() {
    let home = tempfile::tempdir().expect("a folder can be made");
    const URL: &str = "http://127.0.0.1:8100/mcp";
    for (args, code) in [
        (&["status", "127.0.0.1:9"][..], 1),
        (&["status", "nowhere"], 2),
        (&["key", "new", "a b"], 2),
        (&["connect", "cursor", "--http", URL], 0),
        (&["connect", "codex", "--http", URL, "--secret"], 0),
        (&["connect", "claude", "--http", URL], 2),
    ] {
        let [broker, generator] =
            ["mcp-broker", "broker-gen"].map(|program| run(program, &home, args));
        assert_eq!(generator.code, Some(code), "{}", generator.stderr);
        assert_eq!(broker.code, generator.code, "{args:?}");
        assert_eq!(broker.stdout, generator.stdout, "{args:?}");
        assert_eq!(broker.stderr, generator.stderr, "{args:?}");
    }
    let made = run("broker-gen", &home, &["key", "new", "ci"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    assert!(made.stdout.starts_with("mbk_"), "{}", made.stdout);
}

#[test]
fn help_of_shared_verbs_names_the_program_that_runs() {
    let home = tempfile::tempdir().expect("a folder can be made");
    for args in [
        &["status", "--help"][..],
        &["connect", "--help"],
        &["key", "--help"],
        &["key", "new", "--help"],
    ] {
        for (program, other) in [("mcp-broker", "broker-gen"), ("broker-gen", "mcp-broker")] {
            let help = run(program, &home, args).stdout;
            let (_, examples) = help.split_once("Examples:").expect("examples");
            contains(examples, &[&format!("\n  {program} {}", args[0])]);
            assert!(!examples.contains(other), "{examples}");
        }
    }
}

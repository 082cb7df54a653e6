//! Problems with the config and the command line: all in one run, each with its place, exit 2.

use harness::{Bench, contains};
use serde_json::json;

#[test]
fn config_with_several_problems_reports_each_with_its_place() {
    let bench = Bench::new();
    bench.write(
        "c.json",
        r#"{
  "tree": [
    { "path": "a", "type": "node" },
    {
      "path": "/b",
      "type": "node",
      "source": {
        "comand": "chaos-mcp",
        "command": "chaos-mcp",
        "timeout": -1,
        "args": "x y",
        "tool_filter": ["["]
      }
    }
  ]
}
"#,
    );
    let errors = bench.lock_fails(2);
    contains(
        &errors,
        &[
            "error[path_invalid]: ",
            "c.json:3:15 at /tree/0/path",
            "error[config_unknown_key]: ",
            "`command`",
            "c.json:8:9 at /tree/1/source/comand",
            "error[config_range]: ",
            "c.json:10:20 at /tree/1/source/timeout",
            "error[config_type]: ",
            "c.json:11:17 at /tree/1/source/args",
            "error[glob_syntax]: ",
            "c.json:12:25 at /tree/1/source/tool_filter/0",
        ],
    );
    assert_eq!(errors.matches("error[").count(), 5, "{errors}");
    assert_eq!(errors.matches("\n  help: ").count(), 5, "{errors}");
    let check = bench.verb(&["check"]);
    assert_eq!((check.code, check.stdout.as_str()), (Some(2), ""));
}

#[test]
fn config_with_missing_variables_names_each_with_its_place() {
    let bench = Bench::new();
    bench.write(
        "c.json",
        r#"{ "tree": [
  { "path": "/a", "type": "node", "source": { "command": ["chaos-mcp", "${ONE_MISSING}"], "env": { "X": "${TWO_MISSING}" } } },
  { "path": "/b", "type": "node", "source": { "command": "chaos-mcp ${THREE_MISSING} ${HERE:-default}" } }
] }"#,
    );
    let errors = bench.lock_fails(2);
    contains(
        &errors,
        &[
            "error[env_missing]",
            "ONE_MISSING",
            "TWO_MISSING",
            "THREE_MISSING",
            "c.json:2:",
            "c.json:3:",
        ],
    );
    assert!(!errors.contains("HERE"), "{errors}");
    // A source that is not asked for needs no variables.
    let one = bench.verb_with(&["lock", "--source", "/b"], &[("THREE_MISSING", "x")]);
    assert!(!one.stderr.contains("env_missing"), "{}", one.stderr);
}

#[test]
fn config_text_with_a_variable_is_refused_by_every_verb() {
    let bench = Bench::new();
    bench.write(
        "c.json",
        r#"{ "tree": [
  { "path": "/a", "type": "node", "summary": "Files in ${HOME}", "source": { "command": "chaos-mcp" } }
] }"#,
    );
    let errors = bench.lock_fails(2);
    contains(
        &errors,
        &[
            "error[text_variable]: a summary has `${HOME}`",
            "c.json:2:46 at /tree/0/summary",
            "write `$${`",
        ],
    );
    for verb in ["check", "tree", "verify"] {
        let output = bench.verb(&[verb]);
        assert_eq!(output.code, Some(2), "{verb}");
        contains(&output.stderr, &["error[text_variable]"]);
    }
}

#[test]
fn config_missing_or_with_a_syntax_error_is_refused() {
    let bench = Bench::new();
    contains(
        &bench.lock_fails(2),
        &["error[config_unreadable]: ", "`c.json`"],
    );
    bench.write("c.json", "{\n  \"tree\": [],\n}\n");
    contains(
        &bench.lock_fails(2),
        &["error[config_syntax]: ", "c.json:3:1"],
    );
}

#[test]
fn command_line_help_has_options_and_examples() {
    let bench = Bench::with_sources(&["a"]);
    let help = bench.verb(&["lock", "--help"]);
    assert_eq!(help.code, Some(0));
    contains(
        &help.stdout,
        &[
            "--config",
            "--source",
            "--once",
            "--check",
            "MCP_BROKER_CONFIG",
            "Examples:",
            "broker-gen lock --config smoke_config.json",
        ],
    );
    let help = bench.verb(&["check", "--help"]);
    contains(&help.stdout, &["--format", "human", "json", "Never writes"]);
    for wrong in [
        &["lock", "--nope"][..],
        &["locks"],
        &["check", "--format", "yaml"],
    ] {
        let output = bench.verb(wrong);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(2), ""),
            "{wrong:?}: {}",
            output.stderr
        );
    }
}

#[test]
fn config_of_other_clients_is_accepted() {
    let bench = Bench::new();
    bench.write(
        "c.json",
        r#"{"mcpServers": {"my server": {"command": "chaos-mcp", "args": []}}}"#,
    );
    bench.lock();
    assert_eq!(bench.lock_json()["sources"][0]["path"], "/my-server");
    let (code, report) = bench.check();
    assert_eq!(
        (code, &report["summary"]["same"]),
        (Some(0), &serde_json::json!(10))
    );
}

#[test]
fn config_variable_in_a_shell_script_reaches_the_server_unchanged() {
    let bench = Bench::new();
    bench.write(
        "c.json",
        r#"{"tree": [
  {"path": "/args", "source": {"command": "sh", "cwd": ".", "args": ["-c", "exec chaos-mcp --journal ${J}1"]}},
  {"path": "/line", "source": {"command": "env A=1 sh -c 'exec chaos-mcp --journal ${J}2'", "cwd": "."}},
  {"path": "/shell", "source": {"command": "true; exec sh -c \"exec chaos-mcp --journal ${J}3\"", "cwd": "."}}
] }"#,
    );
    let value = "log; touch ran $(touch ran) ";
    let locked = bench.verb_with(&["lock"], &[("J", value)]);
    assert_eq!(locked.code, Some(0), "{}", locked.stderr);
    assert!(!bench.path("ran").exists(), "the value was run");
    for number in 1..=3 {
        let journal = bench.path(&format!("{value}{number}"));
        assert!(journal.exists(), "{}", journal.display());
    }
}

#[test]
fn config_of_vscode_is_locked_where_it_is() {
    let bench = Bench::new();
    bench.one_tool(
        "a",
        json!({"name": "only", "inputSchema": {"type": "object"}}),
    );
    std::fs::create_dir(bench.path(".vscode")).expect("writable");
    let text = r#"{
  // The file as the editor writes it.
  "inputs": [],
  "servers": {
    "a": {
      "type": "stdio", "command": "chaos-mcp",
      "args": ["--script", "${workspaceFolder}/a.json",],
      "env": { "X": "${env:HOME}" }
    },
  },
}"#;
    bench.write(".vscode/mcp.json", text);
    let output = bench.run(&["lock", "--config", ".vscode/mcp.json"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let lock = bench.read(".vscode/mcp.lock.json");
    assert!(lock.contains("\"only\""), "{lock}");
    let folder = bench.path("");
    assert!(!lock.contains(&*folder.to_string_lossy()), "{lock}");
    let asks = text.replace("${env:HOME}", "${input:api-key}");
    bench.write(".vscode/mcp.json", &asks);
    let output = bench.run(&["check", "--config", ".vscode/mcp.json"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(
        &output.stderr,
        &["mcp.json:8:21 at /servers/a/env/X", "${API_KEY}"],
    );
}

//! The command that runs after the list of a session has changed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use harness::mcp_http::McpSession;
use harness::{Run, is_alive, wait_until};
use serde_json::json;
use tempfile::TempDir;

use super::{retrieve, smoke_broker};

const DYNAMIC: [&str; 4] = ["--mcp-mode", "search", "--routing", "DYNAMIC"];
const VARIABLE: &str = "MCP_BROKER_LIST_CHANGED_EXEC";

/// A program with this script.
fn script(folder: &Path, text: &str) -> PathBuf {
    let file = folder.join("notify");
    fs::write(&file, format!("#!/bin/sh\n{text}\n")).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("executable");
    file
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

#[test]
fn command_runs_with_the_variables_of_the_change_and_no_others() {
    let folder = TempDir::new().expect("a folder");
    let out = folder.path().join("out");
    let program = script(
        folder.path(),
        &format!("env > {0}.new; mv {0}.new {0}", out.display()),
    );
    let variables = [
        (VARIABLE, program.to_str().expect("text")),
        ("MY_TOKEN", "do-not-pass"),
    ];
    let broker = smoke_broker(&DYNAMIC, &variables);
    let session = McpSession::begin(broker.address(), "/mcp");
    retrieve(&session, json!({"query": "hash text", "limit": 1}));
    wait_until("the command has run", || out.exists());
    let env = read(&out);
    assert!(env.contains("MCP_BROKER_TOOLS_ADDED=1\n"), "{env}");
    assert!(env.contains("MCP_BROKER_TOOLS_REMOVED=0\n"), "{env}");
    assert!(env.contains("MCP_BROKER_SUBJECT=anonymous\n"), "{env}");
    let named = env
        .lines()
        .find_map(|line| line.strip_prefix("MCP_BROKER_SESSION="));
    let named = named.expect("the session");
    assert_eq!(named.len(), 64);
    assert!(!session.id.contains(named) && !env.contains(&session.id));
    assert!(
        !env.contains("MY_TOKEN") && !env.contains(VARIABLE),
        "{env}"
    );
}

#[test]
fn command_of_the_variable_of_the_other_proxy_runs_and_is_named_in_messages() {
    const OTHER: &str = "MCPPROXY_LIST_CHANGED_EXEC";
    let folder = TempDir::new().expect("a folder");
    let out = folder.path().join("out");
    let program = script(folder.path(), &format!("touch {}", out.display()));
    let program = program.to_str().expect("text");
    let broker = smoke_broker(&DYNAMIC, &[(OTHER, program)]);
    let session = McpSession::begin(broker.address(), "/mcp");
    retrieve(&session, json!({"query": "hash text", "limit": 1}));
    wait_until("the command has run", || out.exists());

    let run = Run::new(Path::new(env!("CARGO_BIN_EXE_mcp-broker")))
        .folder(Path::new(env!("CARGO_MANIFEST_DIR")))
        .args(["127.0.0.1:0", "smoke_config.json"])
        .env(OTHER, "${NO_SUCH_VARIABLE_OF_THIS_TEST}");
    let refused = run.output();
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains(OTHER), "{}", refused.stderr);
}

#[test]
fn changes_during_a_run_are_one_further_run() {
    let folder = TempDir::new().expect("a folder");
    let (out, go) = (folder.path().join("out"), folder.path().join("go"));
    let program = script(
        folder.path(),
        &format!(
            "echo $MCP_BROKER_TOOLS_ADDED >> {}; while [ ! -e {} ]; do sleep 0.05; done",
            out.display(),
            go.display()
        ),
    );
    let broker = smoke_broker(&DYNAMIC, &[(VARIABLE, program.to_str().expect("text"))]);
    let session = McpSession::begin(broker.address(), "/mcp");
    let find = |query: &str| retrieve(&session, json!({"query": query, "limit": 1}));
    find("hash text");
    wait_until("the first run has begun", || read(&out) == "1\n");
    find("upper case text");
    find("current time");
    find("base64 encode");
    fs::write(&go, "").expect("written");
    wait_until("the second run has begun", || {
        read(&out).lines().count() == 2
    });
    assert_eq!(read(&out), "1\n3\n");
}

#[test]
fn command_that_hangs_or_prints_without_end_is_ended_and_delays_no_call() {
    let folder = TempDir::new().expect("a folder");
    let pids = folder.path().join("pids");
    let program = script(
        folder.path(),
        &format!(
            "echo $$ >> {0}\nsleep 600 &\necho $! >> {0}\nyes 0123456789",
            pids.display()
        ),
    );
    let broker = smoke_broker(&DYNAMIC, &[(VARIABLE, program.to_str().expect("text"))]);
    let session = McpSession::begin(broker.address(), "/mcp");
    retrieve(&session, json!({"query": "hash text", "limit": 1}));
    wait_until("the command has begun", || read(&pids).lines().count() == 2);
    retrieve(&session, json!({"query": "upper case text", "limit": 1}));
    let pids: Vec<u32> = read(&pids)
        .lines()
        .map(|pid| pid.parse().expect("a pid"))
        .collect();
    wait_until("the command and its descendants have ended", || {
        !pids.iter().any(|pid| is_alive(*pid))
    });
    wait_until("a failure is one warning", || {
        broker.stderr().contains("`mcp.list_changed_exec`")
    });
}

#[test]
fn secret_in_the_output_of_the_command_is_masked() {
    let folder = TempDir::new().expect("a folder");
    let program = script(folder.path(), "echo key=$1; echo key=$1 >&2; exit 3");
    let command = format!("{} ${{HOOK_KEY}}", program.display());
    let secret = "s3cr3t-0123456789abcdef";
    let variables = [(VARIABLE, command.as_str()), ("HOOK_KEY", secret)];
    let args: Vec<_> = DYNAMIC
        .into_iter()
        .chain(["--log-level", "debug"])
        .collect();
    let broker = smoke_broker(&args, &variables);
    let session = McpSession::begin(broker.address(), "/mcp");
    retrieve(&session, json!({"query": "hash text", "limit": 1}));
    wait_until("the failure is logged", || {
        broker.stderr().contains("`mcp.list_changed_exec`")
    });
    let log = broker.stderr();
    assert!(
        log.contains("output of the command") && log.contains("key="),
        "{log}"
    );
    assert!(!log.contains(secret), "{log}");
}

#[test]
fn command_with_shell_syntax_is_run_by_a_shell_with_a_warning() {
    let folder = TempDir::new().expect("a folder");
    let out = folder.path().join("out");
    let command = format!("echo $MCP_BROKER_TOOLS_ADDED | cat > {}", out.display());
    let broker = smoke_broker(&DYNAMIC, &[(VARIABLE, command.as_str())]);
    wait_until("the log has the warning", || {
        broker.stderr().contains("`/bin/sh -c` runs it")
    });
    let session = McpSession::begin(broker.address(), "/mcp");
    retrieve(&session, json!({"query": "hash text", "limit": 1}));
    wait_until("the command has run", || read(&out) == "1\n");
}

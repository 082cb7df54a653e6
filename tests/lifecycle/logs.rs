//! The stderr of a running server: lines of the log at the level `debug`, and `mcp-broker logs`.

use std::path::Path;

use harness::{Bench, Broker, Output, Run, binary, contains, wait_until};
use serde_json::{Value, json};

const SECRET: &str = "canary-secret-of-the-broker";

/// A folder with a source `/a` whose shell writes to stderr before it runs the server.
fn stage(script: &str) -> Bench {
    let bench = Bench::new();
    let command = format!("{script}; exec chaos-mcp --script a.json --journal a.log");
    bench.configure([(
        "a",
        json!({"command": ["/bin/sh", "-c", command], "env": {"A_TOKEN": "hunter2-of-a"}}),
    )]);
    bench.script(
        "a",
        &json!({"tools": [{"name": "x", "inputSchema": {"type": "object"}}]}),
    );
    bench.lock();
    bench
}

fn serve(bench: &Bench, args: &[&str], secret: Option<&str>) -> Broker {
    let beside = binary("broker-gen");
    let beside = beside.parent().expect("it is in a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut run = Run::new(&binary("broker-gen"))
        .args(["serve", "--config", "c.json", "127.0.0.1:0"])
        .args(args)
        .folder(&bench.path(""))
        .env("PATH", format!("{beside}:{path}"));
    if let Some(secret) = secret {
        run = run.env("MCP_BROKER_SECRET", secret);
    }
    Broker::start_ready(run)
}

fn logs(broker: &Broker, args: &[&str], secret: Option<&str>) -> Output {
    let run = Run::new(&binary("mcp-broker"))
        .args(["logs"])
        .args(args)
        .args(["--url", broker.address()]);
    match secret {
        Some(secret) => run.env("MCP_BROKER_SECRET", secret).output(),
        None => run.output(),
    }
}

/// Stderr lines that a log has.
fn logged(log: &str) -> Vec<&str> {
    log.lines()
        .filter(|line| line.contains(" stderr "))
        .collect()
}

#[test]
fn stderr_of_a_running_server_is_printed_masked_and_escaped() {
    let bench = stage(r"printf 'one\ntoken hunter2-of-a\n\033[31mred\n' >&2");
    let broker = serve(&bench, &[], None);
    for path in ["/a", "/a/x"] {
        let output = logs(&broker, &[path], None);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        assert_eq!(output.stdout, "one\ntoken ••••\n\\u{1b}[31mred\n");
    }
    let output = logs(&broker, &["/a", "--format", "json"], None);
    let reply: Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(reply["path"], "/a");
    assert_eq!(reply["processes"][0]["state"], "ready");
    assert_eq!(reply["processes"][0]["lines"][0], "one");
    let unknown = logs(&broker, &["/b"], None);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(1), ""));
    contains(&unknown.stderr, &["answered 404", "neither a source"]);
    let log = broker.stderr();
    assert!(logged(&log).is_empty(), "the level is not debug: {log}");
}

#[test]
fn stderr_is_in_the_log_at_debug_and_a_flood_is_bounded() {
    let bench =
        stage(r"printf 'token hunter2-of-a\n' >&2; seq 1 200000 >&2; printf '\033[31mred' >&2");
    let broker = serve(&bench, &["--log-level", "debug"], None);
    wait_until("the flood is counted", || {
        broker.stderr().contains("stderr lines were not logged")
            || logs(&broker, &["/a"], None).stdout.contains("red")
    });
    let (_, log) = broker.terminate();
    let lines = logged(&log);
    assert!(lines.len() < 2_000, "{} lines", lines.len());
    contains(lines[0], &["DEBUG", "source=/a", "token ••••"]);
    assert!(!log.contains("hunter2-of-a"), "{log}");
    assert!(!log.contains('\u{1b}'), "{log}");
    contains(&log, &["stderr lines were not logged", "red"]);
}

#[test]
fn stderr_is_shown_to_operators_only() {
    let bench = stage("printf 'one\\n' >&2");
    let broker = serve(&bench, &[], Some(SECRET));
    let refused = logs(&broker, &["/a"], None);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    contains(&refused.stderr, &["answered 401"]);
    assert_eq!(logs(&broker, &["/a"], Some("another-secret")).code, Some(1));
    let shown = logs(&broker, &["/a"], Some(SECRET));
    assert_eq!(
        (shown.code, shown.stdout.as_str()),
        (Some(0), "one\n"),
        "{}",
        shown.stderr
    );
    // A path is not needed to be refused.
    let nothing = Run::new(Path::new(&binary("mcp-broker")))
        .args(["logs"])
        .output();
    assert_eq!(nothing.code, Some(2), "{}", nothing.stderr);
}

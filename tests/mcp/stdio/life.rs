//! From start to end: the output on each stream, the exit codes, and that no process is left.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::thread;

use harness::{Run, UnreadPipe, children_of, guarded_by, is_alive, wait_until};
use serde_json::{Value, json};

use super::client::{Client, hello, kill, quick, slow};

fn run(args: &[&str]) -> harness::Output {
    Run::new(Path::new(env!("CARGO_BIN_EXE_mcp-broker")))
        .folder(Path::new(env!("CARGO_MANIFEST_DIR")))
        .args(args)
        .output()
}

#[test]
fn stdio_garbage_and_long_lines_are_answered_and_skipped() {
    let mut client = Client::legacy("2025-11-25");
    let long = [
        &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"x\":\""[..],
        &vec![b'x'; 17 << 20],
        b"\"}\n",
    ]
    .concat();
    for garbage in [&b"nope\n"[..], b"\xff\xfe\n", b"{\"a\":\n", &long] {
        client.raw(garbage);
        let refused = client.read();
        assert_eq!(refused["error"]["code"], -32700);
        assert!(refused.get("id").is_none(), "{refused}");
    }
    client.raw(b"\n  \r\n\xef\xbb\xbf");
    assert_eq!(
        client.request(json!(2), "ping", json!({}))["result"],
        json!({})
    );
}

#[test]
fn stdio_end_of_input_ends_the_broker_and_its_servers() {
    let mut client = Client::legacy("2025-11-25");
    assert!(client.request(json!(1), "tools/call", quick())["result"].is_object());
    let children = children_of(client.pid());
    assert!(children.len() >= 2, "both servers run");
    client.ask(json!(2), "tools/call", slow(9_000));
    let end = client.end();
    assert_eq!(end.status.code(), Some(0), "{}", end.stderr);
    wait_until("no child is left", || {
        !children.iter().any(|pid| is_alive(*pid))
    });
    // Its caller gets the reason why it has no result.
    assert_eq!(end.rest.len(), 1, "{:?}", end.rest);
    assert!(
        end.rest[0].to_string().contains("shutting_down"),
        "{:?}",
        end.rest
    );
}

#[test]
fn stdio_requests_before_the_end_of_input_are_answered() {
    let mut client = Client::start(&["smoke_config.json"]);
    client.ask(json!(0), "initialize", hello("2025-11-25"));
    client.ask(json!(1), "tools/call", quick());
    // No newline: the last line still counts.
    client.raw(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}");
    let end = client.end();
    assert_eq!(end.status.code(), Some(0));
    let of = |id: u64| end.rest.iter().find(|answer| answer["id"] == id);
    assert!(of(0).is_some() && of(2).is_some(), "{:?}", end.rest);
    assert_eq!(
        of(1).expect("an answer")["result"]["isError"],
        false,
        "{:?}",
        end.rest
    );
}

#[test]
fn stdio_without_any_input_exits_0() {
    let output = run(&["stdio", "smoke_config.json"]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), ""),
        "{}",
        output.stderr
    );
}

#[test]
fn stdio_sigterm_exits_0_while_the_input_is_open() {
    let mut client = Client::legacy("2025-11-25");
    assert!(client.request(json!(1), "tools/call", quick())["result"].is_object());
    let children = children_of(client.pid());
    client.signal("TERM");
    let end = client.wait();
    assert_eq!(end.status.code(), Some(0), "{}", end.stderr);
    wait_until("no child is left", || {
        !children.iter().any(|pid| is_alive(*pid))
    });
}

#[test]
fn stdio_log_that_is_not_read_blocks_neither_answers_nor_shutdown() {
    for level in ["info", "debug"] {
        let pipe = UnreadPipe::new();
        let mut client = Client::start_logging_to(pipe.stdio(), &["--log-level", level]);
        client.request(json!("init"), "initialize", hello("2025-11-25"));
        for number in 0..2000 {
            // Each refused line becomes one line of the log, and each call becomes another.
            client.raw(b"nope\n");
            assert_eq!(client.read()["error"]["code"], -32700);
            if number % 10 == 0 {
                let answer = client.request(json!(number), "tools/call", quick());
                assert!(answer["result"].is_object(), "{answer}");
            }
        }
        let children = children_of(client.pid());
        assert!(children.len() >= 2, "both servers run");
        client.signal("TERM");
        let end = client.wait();
        assert_eq!(end.status.code(), Some(0), "{level}");
        wait_until("no child is left", || {
            !children.iter().any(|pid| is_alive(*pid))
        });
    }
}

#[test]
fn stdio_sigterm_ends_the_broker_though_no_output_is_read() {
    let (stdout, stderr) = (UnreadPipe::new(), UnreadPipe::new());
    let run = Run::new(Path::new(env!("CARGO_BIN_EXE_mcp-broker")))
        .folder(Path::new(env!("CARGO_MANIFEST_DIR")))
        .args(["stdio", "--log-level", "debug"]);
    let mut child = run.spawn_with_outputs(stdout.stdio(), stderr.stdio());
    let mut input = child.stdin.take().expect("the input is open");
    // More answers than may wait to be written: at last the broker stops reading.
    let writer = thread::spawn(move || {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello("2025-11-25")});
        let mut written = writeln!(input, "{hello}");
        for id in 1..10_000 {
            let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
            written = written.and_then(|()| writeln!(input, "{ping}"));
        }
        input
    });
    wait_until("both servers run", || {
        children_of(guarded_by(child.id())).len() == 2
    });
    let children = children_of(child.id());
    kill("TERM", &child.id().to_string());
    let mut status = None;
    wait_until("it ends", || {
        status = child.try_wait().expect("its state can be read");
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(0));
    assert!(!children.iter().any(|pid| is_alive(*pid)));
    drop(writer.join());
}

#[test]
fn stdio_broker_killed_by_its_client_leaves_no_process() {
    let mut client = Client::legacy("2025-11-25");
    assert!(client.request(json!(1), "tools/call", quick())["result"].is_object());
    let mut left = children_of(client.guard());
    assert!(left.len() >= 2, "both servers run");
    left.push(client.guard());
    // Clients end the group of what they started; its input stays open.
    client.kill_group();
    wait_until("no process is left", || {
        !left.iter().any(|pid| is_alive(*pid))
    });
}

#[test]
fn stdio_log_is_on_stderr_and_stdout_has_only_the_protocol() {
    let mut client = Client::start(&["--log-level", "trace", "--log-format", "json"]);
    client.ask(json!(0), "initialize", hello("2025-11-25"));
    client.answer(&json!(0));
    client.ask(json!(1), "tools/call", quick());
    client.answer(&json!(1));
    let end = client.end();
    assert_eq!(end.rest, [] as [Value; 0]);
    assert!(end.stderr.lines().count() > 3, "{}", end.stderr);
    for line in end.stderr.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
    }
}

#[test]
fn stdio_start_that_is_refused_reports_on_stderr() {
    // Without a server beside it, and none in PATH, the sources cannot be started.
    let folder = tempfile::tempdir().expect("a folder");
    let alone = folder.path().join("mcp-broker");
    harness::copy_program(env!("CARGO_BIN_EXE_mcp-broker").as_ref(), &alone);
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/smoke_config.json"));
    let mut config: Value = serde_json::from_str(&text.expect("it is there")).expect("JSON");
    config["on_unreachable"] = json!("refuse");
    let file = folder.path().join("config.json");
    fs::write(&file, config.to_string()).expect("it can be written");
    let mut client = Client::start_program(
        &alone,
        &[file.to_str().expect("UTF-8"), "--log-format", "json"],
        &[("PATH", "/nonexistent")],
    );
    client.ask(json!(0), "initialize", hello("2025-11-25"));
    client.answer(&json!(0));
    let error = client.tool_error("meta_call", quick()["arguments"].clone());
    assert_eq!(error["code"], "start_refused", "{error}");
    assert_eq!(error["details"]["cause"], "spawn_not_found", "{error}");
    let end = client.end();
    assert_eq!(end.status.code(), Some(4), "{}", end.stderr);
    assert_eq!(end.rest, [] as [Value; 0]);
    assert!(
        end.stderr.contains("spawn_not_found") || end.stderr.contains("source-unavailable"),
        "{}",
        end.stderr
    );
    let report = end
        .stderr
        .lines()
        .find(|line| line.contains("format_version"));
    let report: Value = serde_json::from_str(report.expect("one line")).expect("JSON");
    assert_eq!(report["sources"].as_array().map(Vec::len), Some(2));

    let mut client = Client::start_program(&alone, &[], &[("PATH", "/nonexistent")]);
    client.ask(json!(0), "initialize", hello("2025-11-25"));
    client.answer(&json!(0));
    let error = client.tool_error("meta_call", quick()["arguments"].clone());
    assert_eq!(error["code"], "source_unavailable", "{error}");
    assert_eq!(client.end().status.code(), Some(0));
}

#[test]
fn stdio_with_listener_options_is_a_usage_error() {
    for args in [
        &["stdio", "smoke_config.json", "secret"][..],
        &["stdio", "--allow-host", "h"],
        &["stdio", "--allow-unauthenticated"],
        &["stdio", "--secret-file", "f"],
        &["stdio", "no_such_config.json"],
    ] {
        let output = run(args);
        assert_eq!(output.code, Some(2), "{args:?}: {}", output.stderr);
        assert_eq!(output.stdout, "");
    }
}

#[test]
fn stdio_hangup_reloads_the_config() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let file = folder.path().join("config.json");
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/smoke_config.json"));
    let mut config: Value = serde_json::from_str(&text.expect("it is there")).expect("JSON");
    fs::write(&file, config.to_string()).expect("it can be written");
    let mut client = Client::start(&[file.to_str().expect("UTF-8")]);
    client.request(json!("init"), "initialize", hello("2025-11-25"));
    let whole = client.tool("meta_tree", json!({"path": "/util"}));
    assert!(whole.to_string().contains("/util/hash_text"));
    wait_until("both servers run", || children_of(client.pid()).len() == 2);
    let children = children_of(client.pid());

    // Asked before the reload, answered after it.
    client.ask(json!("late"), "tools/call", slow(2_000));
    config["limits"] = json!({"body_bytes": 2000});
    config["tree"][1]["source"]["tool_filter"] = json!(["slow_echo"]);
    fs::write(&file, config.to_string()).expect("it can be written");
    client.signal("HUP");
    wait_until("the tree is narrower", || {
        let tree = client.tool("meta_tree", json!({"path": "/util"}));
        !tree.to_string().contains("/util/hash_text")
    });
    assert!(client.answer(&json!("late"))["result"].is_object());
    client.raw(&[&vec![b'x'; 3000][..], b"\n"].concat());
    let refused = client.read();
    assert!(
        refused["error"]["message"]
            .as_str()
            .is_some_and(|message| message.contains("2000 bytes")),
        "{refused}"
    );
    assert_eq!(children_of(client.pid()), children);
    let end = client.end();
    assert_eq!(end.status.code(), Some(0), "{}", end.stderr);
    assert!(
        end.stderr
            .contains("reloaded; every source keeps its process")
    );
}

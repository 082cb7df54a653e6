//! Runs the real `toolbox-mcp` over its pipes, in both protocol eras.
#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails like the test itself"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};

/// Generous, as a machine that builds something else meanwhile is slow.
const DEADLINE: Duration = Duration::from_secs(60);

struct Toolbox {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test runs the binary without the broker's spawner"
)]
fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_toolbox-mcp"))
}

fn run(argument: &str) -> Output {
    command()
        .arg(argument)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

impl Toolbox {
    fn start() -> Self {
        let mut child = command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = sync_channel(1024);
        std::thread::spawn(move || {
            for line in stdout.lines() {
                sender.send(line.unwrap()).unwrap();
            }
        });
        Self {
            child,
            stdin,
            lines,
        }
    }

    fn started_legacy(version: &str) -> Self {
        let mut toolbox = Self::start();
        let params = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let answer = toolbox.ask(0, "initialize", params);
        assert_eq!(answer["result"]["protocolVersion"], version);
        assert_eq!(answer["result"]["capabilities"], json!({"tools": {}}));
        assert_eq!(answer["result"]["serverInfo"]["name"], "toolbox-mcp");
        toolbox.send_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        toolbox
    }

    fn send_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn send(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        let id: Value = id.into();
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send_line(&request.to_string());
    }

    fn receive(&self) -> Value {
        let line = self.lines.recv_timeout(DEADLINE).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.send(id, method, params);
        let answer = self.receive();
        assert_eq!(answer["jsonrpc"], "2.0");
        assert_eq!(answer["id"], id);
        answer
    }

    fn ask_modern(&mut self, id: i64, method: &str, mut params: Value) -> Value {
        params["_meta"] = meta("2026-07-28");
        self.ask(id, method, params)
    }

    /// Ends stdin, and gives the exit status and what was still written.
    fn finish(mut self) -> (ExitStatus, Vec<String>) {
        drop(self.stdin.take());
        let status = self.child.wait().unwrap();
        (status, self.lines.iter().collect())
    }
}

fn meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

#[test]
fn toolbox_in_each_legacy_revision_lists_and_calls() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut toolbox = Toolbox::started_legacy(version);
        assert_eq!(toolbox.ask(1, "ping", json!({}))["result"], json!({}));
        let list = toolbox.ask(2, "tools/list", json!({}));
        assert_eq!(list["result"].as_object().unwrap().len(), 1);
        assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 8);
        let params = call("hash_text", json!({"text": "", "algorithm": "crc32"}));
        let hashed = toolbox.ask(3, "tools/call", params);
        assert_eq!(
            hashed["result"],
            json!({
                "content": [{"type": "text", "text": r#"{"algorithm":"crc32","bytes":0,"digest":"00000000"}"#}],
                "structuredContent": {"algorithm": "crc32", "bytes": 0, "digest": "00000000"},
                "isError": false,
            })
        );
        let (status, rest) = toolbox.finish();
        assert!(status.success());
        assert_eq!(rest, [""; 0]);
    }
}

#[test]
fn toolbox_answers_an_unknown_revision_with_the_latest() {
    let mut toolbox = Toolbox::start();
    let answer = toolbox.ask(1, "initialize", json!({"protocolVersion": "2030-01-01"}));
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
}

#[test]
fn toolbox_in_the_modern_era_lists_and_calls_without_a_handshake() {
    let mut toolbox = Toolbox::start();
    let discovered = toolbox.ask_modern(1, "server/discover", json!({}));
    assert_eq!(
        discovered["result"]["supportedVersions"],
        json!(["2026-07-28"])
    );
    let list = toolbox.ask_modern(2, "tools/list", json!({}));
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 8);
    for answer in [&discovered, &list] {
        assert_eq!(answer["result"]["cacheScope"], "public");
        assert!(answer["result"]["ttlMs"].is_u64());
    }
    let params = call("text_case", json!({"text": "a b", "to": "title"}));
    let called = toolbox.ask_modern(3, "tools/call", params);
    assert_eq!(called["result"]["content"][0]["text"], "A B");
    for answer in [&discovered, &list, &called] {
        assert_eq!(answer["result"]["resultType"], "complete");
        let info = &answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(info["name"], "toolbox-mcp");
    }
    for removed in ["initialize", "ping", "logging/setLevel"] {
        let answer = toolbox.ask_modern(4, removed, json!({}));
        assert_eq!(answer["error"]["code"], -32601, "{removed}");
    }
    assert!(toolbox.finish().0.success());
}

#[test]
fn toolbox_refuses_a_modern_request_without_its_meta() {
    let mut toolbox = Toolbox::start();
    let bare = toolbox.ask(1, "tools/list", json!({}));
    assert_eq!(bare["error"]["code"], -32602);
    let mut half = meta("2026-07-28");
    half.as_object_mut()
        .unwrap()
        .remove("io.modelcontextprotocol/clientCapabilities");
    let half = toolbox.ask(2, "tools/list", json!({"_meta": half}));
    assert_eq!(half["error"]["code"], -32602);
    let other = toolbox.ask(3, "server/discover", json!({"_meta": meta("2027-01-01")}));
    assert_eq!(other["error"]["code"], -32022);
    assert_eq!(
        other["error"]["data"],
        json!({"supported": ["2026-07-28"], "requested": "2027-01-01"})
    );
}

#[test]
fn toolbox_after_a_failed_probe_accepts_the_handshake() {
    let mut toolbox = Toolbox::start();
    assert!(toolbox.ask(1, "server/discover", json!({}))["error"].is_object());
    let answer = toolbox.ask(2, "initialize", json!({"protocolVersion": "2025-06-18"}));
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    let list = toolbox.ask(3, "tools/list", json!({}));
    assert!(list["result"]["tools"].is_array());
}

#[test]
fn toolbox_errors_have_their_kind_and_code() {
    let mut toolbox = Toolbox::started_legacy("2025-11-25");
    let failed = toolbox.ask(1, "tools/call", call("fail", json!({"message": "no"})));
    assert_eq!(
        failed["result"],
        json!({"content": [{"type": "text", "text": "no"}], "isError": true})
    );
    let params = call("fail", json!({"message": "no", "kind": "rpc"}));
    let error = toolbox.ask(2, "tools/call", params);
    assert_eq!(error["error"], json!({"code": 1000, "message": "no"}));
    let unknown = toolbox.ask(3, "tools/call", call("nope", json!({})));
    assert_eq!(unknown["error"]["code"], -32602);
    let method = toolbox.ask(4, "resources/list", json!({}));
    assert_eq!(method["error"]["code"], -32601);
    let cursor = toolbox.ask(5, "tools/list", json!({"cursor": ""}));
    assert_eq!(cursor["error"]["code"], -32602);
    for (line, code) in [
        ("{nonsense", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
    ] {
        toolbox.send_line(line);
        assert_eq!(toolbox.receive()["error"]["code"], code, "{line}");
    }
}

#[test]
fn toolbox_slow_call_blocks_no_other_and_is_cancelled_by_id() {
    let mut toolbox = Toolbox::started_legacy("2025-11-25");
    let slow =
        |text: &str, wait: u64| call("slow_echo", json!({"text": text, "milliseconds": wait}));
    toolbox.send(1, "tools/call", slow("cancelled", 400));
    toolbox.send("1", "tools/call", slow("kept", 500));
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    toolbox.send_line(&cancel.to_string());
    assert_eq!(toolbox.ask(2, "ping", json!({}))["result"], json!({}));
    let answer = toolbox.receive();
    assert_eq!(answer["id"], "1");
    assert_eq!(answer["result"]["content"][0]["text"], "kept");
}

#[test]
fn toolbox_ends_with_its_input_during_a_slow_call() {
    let mut toolbox = Toolbox::started_legacy("2025-11-25");
    let params = call("slow_echo", json!({"text": "a", "milliseconds": 30_000}));
    toolbox.send(1, "tools/call", params);
    let (status, rest) = toolbox.finish();
    assert!(status.success());
    assert_eq!(rest, [""; 0]);
}

#[test]
fn toolbox_answers_a_batch_only_in_the_revision_that_has_it() {
    let batch =
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#;
    let mut toolbox = Toolbox::started_legacy("2025-03-26");
    toolbox.send_line(batch);
    assert_eq!(toolbox.receive()["id"], 1);
    assert_eq!(toolbox.receive()["id"], 2);
    let mut toolbox = Toolbox::started_legacy("2025-06-18");
    toolbox.send_line(batch);
    assert_eq!(toolbox.receive()["error"]["code"], -32600);
}

#[test]
fn toolbox_flags_print_and_unknown_ones_are_refused() {
    let version = run("--version");
    assert!(version.status.success());
    let expected = format!("toolbox-mcp {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8(version.stdout).unwrap(), expected);
    let help = run("--help");
    assert!(help.status.success());
    assert!(String::from_utf8(help.stdout).unwrap().contains("Usage:"));
    let wrong = run("--port");
    assert_eq!(wrong.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(wrong.stderr).unwrap(),
        "error: unexpected argument `--port`; see `toolbox-mcp --help`\n"
    );
    assert!(wrong.stdout.is_empty());
}

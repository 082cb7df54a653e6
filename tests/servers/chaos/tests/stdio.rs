//! Runs the real `chaos-mcp` over its pipes: what the tests of other packages rely on.
#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails like the test itself"
)]

mod support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};

use serde_json::{Value, json};

use crate::support::{DEADLINE, Folder, program};

impl Folder {
    fn start(&self) -> Chaos {
        let mut command = command();
        command.arg("--script").arg(self.script());
        command.arg("--journal").arg(self.file("journal"));
        Chaos::run(command)
    }

    fn start_with(&self, script: &Value) -> Chaos {
        self.write(script);
        self.start()
    }
}

struct Chaos {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
}

fn command() -> Command {
    program(env!("CARGO_BIN_EXE_chaos-mcp"))
}

impl Chaos {
    fn run(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = sync_channel(1024);
        std::thread::spawn(move || {
            for line in stdout.split(b'\n') {
                // The test may be over while a grandchild still holds stdout.
                if sender.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            stdin,
            lines,
        }
    }

    fn legacy(mut self) -> Self {
        let answer = self.ask(0, "initialize", json!({"protocolVersion": "2025-06-18"}));
        assert!(answer["result"]["serverInfo"].is_object(), "{answer}");
        self.tell("notifications/initialized", json!({}));
        self
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn request(&mut self, id: i64, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn raw(&self) -> Vec<u8> {
        self.lines.recv_timeout(DEADLINE).unwrap()
    }

    fn receive(&self) -> Value {
        serde_json::from_slice(&self.raw()).unwrap()
    }

    fn ask(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.request(id, method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    fn call(&mut self, id: i64, tool: &str, arguments: Value) -> Value {
        self.ask(
            id,
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
        )
    }

    fn start_call(&mut self, id: i64, tool: &str) {
        self.request(id, "tools/call", json!({"name": tool, "arguments": {}}));
    }

    /// The names of all tools, and the cursors that led to them.
    fn list(&mut self) -> (Vec<String>, Vec<String>) {
        let (mut names, mut cursors) = (Vec::new(), Vec::new());
        let mut params = json!({});
        loop {
            let page = self.ask(9, "tools/list", params)["result"].take();
            for tool in page["tools"].as_array().unwrap() {
                names.push(tool["name"].as_str().unwrap().to_owned());
            }
            let Some(cursor) = page["nextCursor"].as_str() else {
                return (names, cursors);
            };
            cursors.push(cursor.to_owned());
            params = json!({"cursor": cursor});
        }
    }

    fn finish(mut self) -> ExitStatus {
        drop(self.stdin.take());
        self.child.wait().unwrap()
    }
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

#[test]
fn chaos_server_answers_and_keeps_a_journal() {
    let folder = Folder::new();
    let mut chaos = folder.start().legacy();
    let (names, cursors) = chaos.list();
    assert_eq!(
        names.join(" "),
        "echo add structured slow fail rpc_fail die env_dump args_dump notify"
    );
    assert!(cursors.is_empty());
    let echoed: Value =
        serde_json::from_str(text(&chaos.call(1, "echo", json!({"text": "a"})))).unwrap();
    let pid = chaos.child.id();
    assert_eq!(
        echoed,
        json!({"text": "a", "tool": "echo", "pid": pid, "seq": 1})
    );
    assert_eq!(text(&chaos.call(2, "add", json!({"a": 1, "b": 2}))), "3");
    let structured = chaos.call(3, "structured", json!({"n": 4}));
    assert_eq!(
        structured["result"]["structuredContent"],
        json!({"n": 4, "double": 8})
    );
    assert_eq!(chaos.call(4, "fail", json!({}))["result"]["isError"], true);
    assert_eq!(chaos.call(5, "rpc_fail", json!({}))["error"]["code"], 1000);
    assert_eq!(chaos.call(6, "nope", json!({}))["error"]["code"], -32602);
    let arguments: Value =
        serde_json::from_str(text(&chaos.call(7, "args_dump", json!({})))).unwrap();
    assert_eq!(arguments[0], "--script");
    assert!(chaos.finish().success());
    assert_eq!(folder.events("call")[0]["arguments"], json!({"text": "a"}));
    assert_eq!(folder.events("eof").len(), 1);
}

#[test]
fn chaos_server_has_only_the_environment_of_its_parent() {
    let mut bare = command();
    bare.env_clear().env("ONLY", "this");
    let mut chaos = Chaos::run(bare).legacy();
    let dumped: Value = serde_json::from_str(text(&chaos.call(1, "env_dump", json!({})))).unwrap();
    assert_eq!(dumped, json!({"ONLY": "this"}));
}

#[test]
fn chaos_script_change_applies_at_once_and_is_announced() {
    let folder = Folder::new();
    let script = json!({"generation": 1, "plain": true, "tools": [tool("a")]});
    let mut chaos = folder.start_with(&script).legacy();
    assert_eq!(chaos.list().0, ["a"]);
    assert_eq!(text(&chaos.call(1, "a", json!({"n": 1}))), r#"{"n":1}"#);
    folder.write(&json!({"generation": 2, "tools": [tool("a"), tool("b")]}));
    assert_eq!(
        chaos.receive(),
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    );
    assert_eq!(chaos.list().0, ["a", "b"]);
    // A script that cannot be read leaves the one before in force.
    std::fs::write(folder.script(), r#"{"tools": ["#).unwrap();
    assert_eq!(chaos.list().0, ["a", "b"]);
}

#[test]
fn chaos_modern_era_needs_its_keys_and_notifies_subscriptions() {
    let folder = Folder::new();
    let mut chaos = folder.start_with(&json!({"era": "modern", "ttl_ms": 7}));
    let refused = chaos.ask(1, "initialize", json!({"protocolVersion": "2025-11-25"}));
    assert_eq!(refused["error"]["data"]["supported"], json!(["2026-07-28"]));
    assert_eq!(
        chaos.ask(2, "tools/list", json!({}))["error"]["code"],
        -32602
    );
    let found = chaos.ask(3, "server/discover", json!({"_meta": meta()}));
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]));
    let list = chaos.ask(4, "tools/list", json!({"_meta": meta()}));
    assert_eq!(list["result"]["resultType"], "complete");
    assert_eq!(list["result"]["ttlMs"], 7);
    let params = json!({"_meta": meta(), "notifications": {"toolsListChanged": true}});
    chaos.request(5, "subscriptions/listen", params);
    let acknowledged = chaos.receive();
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    folder.write(&json!({"era": "modern", "generation": 1}));
    assert_eq!(
        chaos.receive(),
        json!({
            "jsonrpc": "2.0",
            "method": "notifications/tools/list_changed",
            "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": 5}},
        })
    );
    chaos.tell("notifications/cancelled", json!({"requestId": 5}));
    let params = json!({"name": "notify", "arguments": {}, "_meta": meta()});
    let answer = chaos.ask(6, "tools/call", params);
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(folder.events("list-changed")[1]["notified"], 0);
}

#[test]
fn chaos_server_in_each_probe_mode_accepts_the_handshake() {
    let folder = Folder::new();
    let mut legacy = folder.start_with(&json!({"era": "legacy"}));
    let probe = legacy.ask(1, "server/discover", json!({"_meta": meta()}));
    assert_eq!(probe["error"]["code"], -32601);
    drop(legacy.legacy());
    let mut silent = folder.start_with(&json!({"era": "silent-probe"}));
    silent.request(1, "server/discover", json!({"_meta": meta()}));
    drop(silent.legacy());
    let mut dying = folder.start_with(&json!({"era": "probe-dies"}));
    dying.request(1, "server/discover", json!({"_meta": meta()}));
    assert_eq!(dying.child.wait().unwrap().code(), Some(1));
    drop(folder.start().legacy());
}

#[test]
fn chaos_list_has_pages_and_scripted_failures() {
    let folder = Folder::new();
    let tools: Vec<_> = ["a", "b", "c", "d", "e"].map(tool).into();
    let mut chaos = folder
        .start_with(&json!({"tools": tools, "page_size": 2}))
        .legacy();
    let (names, cursors) = chaos.list();
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    assert_eq!(cursors, ["", "page-2"]);
    let beyond = chaos.ask(1, "tools/list", json!({"cursor": "page-3"}));
    assert_eq!(beyond["error"]["code"], -32602);
    folder.write(&json!({"tools": tools, "list_loop": true}));
    for cursor in [Value::Null, json!("again")] {
        let page = chaos.ask(2, "tools/list", json!({"cursor": cursor}));
        assert_eq!(page["result"]["nextCursor"], "again");
    }
    folder.write(&json!({"list_error": {"code": 5, "message": "no"}}));
    let error = chaos.ask(3, "tools/list", json!({}));
    assert_eq!(error["error"], json!({"code": 5, "message": "no"}));
}

#[test]
fn chaos_raw_tool_is_sent_as_written() {
    let folder = Folder::new();
    let tool = r#"{"z":1e400,"name":"odd","a":[1.0,  -0],"a":2}"#;
    std::fs::write(folder.script(), format!("{{\"tools\":\n[{tool}\n]}}")).unwrap();
    let mut chaos = folder.start().legacy();
    chaos.request(1, "tools/list", json!({}));
    let line = String::from_utf8(chaos.raw()).unwrap();
    assert!(line.contains(tool), "{line}");
    assert_eq!(text(&chaos.call(2, "odd", json!({}))), {
        let pid = chaos.child.id();
        format!(r#"{{"pid":{pid},"seq":1,"tool":"odd"}}"#)
    });
}

#[test]
fn chaos_answer_is_corrupted_as_scripted() {
    let folder = Folder::new();
    let mut chaos = folder.start_with(&json!({})).legacy();
    let mut spoilt = |behaviour: Value, lines: usize| -> Vec<Vec<u8>> {
        folder.write(&json!({"plain": true, "on_call": {"echo": behaviour}}));
        chaos.start_call(1, "echo");
        (0..lines).map(|_| chaos.raw()).collect()
    };
    let ok = spoilt(json!("ok"), 1).remove(0);
    let as_json = |line: &[u8]| serde_json::from_slice::<Value>(line).unwrap();
    assert_eq!(spoilt(json!("dup"), 2), [ok.clone(), ok.clone()]);
    assert_eq!(
        as_json(&spoilt(json!("wrong-id"), 1)[0])["id"],
        1_000_000_008
    );
    assert_eq!(as_json(&spoilt(json!("str-id"), 1)[0])["id"], "1");
    let both = as_json(&spoilt(json!("both"), 1)[0]);
    assert!(both["result"].is_object() && both["error"].is_object());
    assert!(
        as_json(&spoilt(json!("no-jsonrpc"), 1)[0])
            .get("jsonrpc")
            .is_none()
    );
    assert!(as_json(&spoilt(json!("batch"), 1)[0])[0]["result"].is_object());
    assert!(String::from_utf8(spoilt(json!("bad-utf8"), 1).remove(0)).is_err());
    let surrogate = spoilt(json!("surrogate"), 1).remove(0);
    assert!(String::from_utf8(surrogate).unwrap().contains("\\ud800"));
    assert_eq!(spoilt(json!("bom"), 1)[0][..3], *b"\xef\xbb\xbf");
    assert!(spoilt(json!("crlf"), 1)[0].ends_with(b"\r"));
    let deep = spoilt(json!({"deep": 5000}), 1).remove(0);
    assert!(String::from_utf8(deep).unwrap().contains(&"[".repeat(5000)));
    let big = as_json(&spoilt(json!({"big": 100_000}), 1)[0]);
    assert_eq!(text(&big).len(), 100_000);
    assert_eq!(spoilt(json!("not-json"), 1)[0], b"this is not JSON");
    assert!(as_json(&spoilt(json!("not-object"), 1)[0])["result"].is_string());
    assert_eq!(spoilt(json!({"noise": 3}), 4)[3], ok);
    assert_eq!(spoilt(json!("noise-json"), 7)[6], ok);
    assert_eq!(spoilt(json!({"drip": {"bytes": 10, "ms": 0}}), 1)[0], ok);
    assert_eq!(spoilt(json!({"delay_ms": 1, "then": "dup"}), 2)[1], ok);
    let error = json!({"code": 7, "message": "m", "data": [1]});
    assert_eq!(
        as_json(&spoilt(json!({"rpc_error": error}), 1)[0])["error"],
        error
    );
    let raw = spoilt(json!({"raw_result": "{ \"a\":1.0 }"}), 1).remove(0);
    assert!(
        String::from_utf8(raw)
            .unwrap()
            .ends_with(r#""result":{ "a":1.0 }}"#)
    );
    assert_eq!(spoilt(json!({"raw_line": "<$ID>"}), 1)[0], b"<1>");
    let result = json!({"content": [], "extra": null});
    assert_eq!(
        as_json(&spoilt(json!({"result": result}), 1)[0])["result"],
        result
    );
}

#[test]
fn chaos_cancelled_call_has_no_answer_and_a_hang_blocks_no_other() {
    let folder = Folder::new();
    let script =
        json!({"plain": true, "on_call": {"fail": "hang", "add": {"delay_ms": 3_600_000}}});
    let mut chaos = folder.start_with(&script).legacy();
    chaos.start_call(1, "fail");
    chaos.start_call(2, "add");
    assert_eq!(
        text(&chaos.call(3, "echo", json!({"text": "a"}))),
        r#"{"text":"a"}"#
    );
    chaos.tell(
        "notifications/cancelled",
        json!({"requestId": 2, "reason": "late"}),
    );
    assert_eq!(chaos.ask(4, "ping", json!({}))["result"], json!({}));
    let cancelled = folder.events("cancelled");
    assert_eq!(
        (&cancelled[0]["id"], &cancelled[0]["reason"]),
        (&json!(2), &json!("late"))
    );
    assert!(chaos.finish().success());
}

#[test]
fn chaos_method_fails_as_scripted() {
    let folder = Folder::new();
    let mut chaos = folder.start_with(
        &json!({"on_method": {"initialize": {"rpc_error": {"code": 3, "message": "no"}}}}),
    );
    assert_eq!(chaos.ask(1, "initialize", json!({}))["error"]["code"], 3);
    folder.write(&json!({"on_method": {"tools/list": "exit:5"}}));
    let mut chaos = chaos.legacy();
    chaos.request(2, "tools/list", json!({}));
    assert_eq!(chaos.child.wait().unwrap().code(), Some(5));
}

#[test]
fn chaos_process_exits_as_scripted() {
    let folder = Folder::new();
    for (behaviour, code) in [("exit:9", 9), ("partial-eof", 0)] {
        let mut chaos = folder
            .start_with(&json!({"on_call": {"echo": behaviour}}))
            .legacy();
        chaos.start_call(1, "echo");
        assert_eq!(chaos.child.wait().unwrap().code(), Some(code));
        let left: Vec<_> = chaos.lines.iter().collect();
        assert_eq!(left.len(), usize::from(behaviour == "partial-eof"));
        assert!(
            left.iter()
                .all(|line| serde_json::from_slice::<Value>(line).is_err())
        );
    }
    let mut chaos = folder.start_with(&json!({})).legacy();
    chaos.request(
        1,
        "tools/call",
        json!({"name": "die", "arguments": {"code": 4}}),
    );
    assert_eq!(chaos.child.wait().unwrap().code(), Some(4));
    let early = json!({"start_exit": 3, "start_stderr": "no token", "start_noise": 2});
    let early = folder.start_with(&early).child.wait_with_output().unwrap();
    assert_eq!(early.status.code(), Some(3));
    assert_eq!(String::from_utf8(early.stderr).unwrap(), "no token\n");
}

#[test]
fn chaos_server_with_stdout_closed_keeps_running() {
    let folder = Folder::new();
    let mut chaos = folder
        .start_with(&json!({"on_call": {"echo": "close-stdout"}}))
        .legacy();
    chaos.start_call(1, "echo");
    assert_eq!(chaos.lines.iter().count(), 0);
    assert!(chaos.child.try_wait().unwrap().is_none());
    assert!(chaos.finish().success());
}

#[test]
fn chaos_server_ignores_end_of_input_and_sigterm_if_scripted() {
    let folder = Folder::new();
    let script = json!({"ignore_eof": true, "ignore_sigterm": true, "start_noise": ["ready"]});
    let chaos = folder.start_with(&script);
    assert_eq!(chaos.raw(), b"ready");
    let pid = chaos.child.id().to_string();
    assert!(
        program("sh")
            .args(["-c", "kill -TERM $0", &pid])
            .status()
            .unwrap()
            .success()
    );
    let mut chaos = chaos.legacy();
    drop(chaos.stdin.take());
    folder.await_events("eof", 1);
    assert!(chaos.child.try_wait().unwrap().is_none());
    chaos.child.kill().unwrap();
    assert_eq!(chaos.child.wait().unwrap().code(), None);
}

#[test]
fn chaos_grandchild_survives_the_server() {
    for kind in [json!(true), json!("group"), json!("setsid")] {
        let folder = Folder::new();
        let chaos = folder
            .start_with(&json!({"fork_grandchild": kind}))
            .legacy();
        assert!(chaos.finish().success());
        let pid = folder.events("grandchild")[0]["child"].to_string();
        let killed = program("sh").args(["-c", "kill -KILL $0", &pid]).status();
        assert!(killed.unwrap().success(), "{kind}");
    }
}

#[test]
fn chaos_server_with_a_wrong_script_or_flag_exits_2() {
    let folder = Folder::new();
    for script in [
        json!({"erra": "legacy"}),
        json!({"era": "old"}),
        json!({"on_call": {"echo": "explode"}}),
        json!({"page_size": 0}),
    ] {
        let output = folder.start_with(&script).child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{script}");
        assert!(!output.stderr.is_empty());
    }
    let mut unknown = command();
    let output = unknown.arg("--port").stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

fn replayed(file: &Path, page_size: &str) -> Chaos {
    let mut replay = command();
    replay
        .arg("--replay")
        .arg(file)
        .args(["--page-size", page_size]);
    Chaos::run(replay)
}

#[test]
fn chaos_recorded_list_is_replayed_in_pages() {
    let folder = Folder::new();
    let recorded = json!({
        "server": "sample",
        "serverInfo": {"name": "recorded", "version": "9"},
        "capabilities": {"tools": {}, "logging": {}},
        "instructions": "be kind",
        "protocolVersion": "2024-11-05",
        "tools": [tool("add"), tool("x"), tool("y")],
    });
    let file = folder.file("recorded.json");
    std::fs::write(&file, serde_json::to_string_pretty(&recorded).unwrap()).unwrap();
    let mut chaos = replayed(&file, "2");
    let opened = chaos.ask(1, "initialize", json!({"protocolVersion": "2025-11-25"}));
    for member in [
        "serverInfo",
        "capabilities",
        "instructions",
        "protocolVersion",
    ] {
        assert_eq!(opened["result"][member], recorded[member]);
    }
    chaos.tell("notifications/initialized", json!({}));
    let (names, cursors) = chaos.list();
    assert_eq!(names, ["add", "x", "y"]);
    assert_eq!(cursors, [""]);
    let echoed = chaos.call(2, "add", json!({"a": [1]}));
    assert_eq!(text(&echoed), r#"{"a":[1]}"#);
}

#[test]
fn chaos_brief_journal_truncates_arguments() {
    let folder = Folder::new();
    folder.write(&json!({}));
    let mut command = command();
    command.arg("--brief").arg("--script").arg(folder.script());
    command.arg("--journal").arg(folder.file("journal"));
    let mut chaos = Chaos::run(command).legacy();
    let long = "x".repeat(5000);
    let params = json!({"name": "echo", "arguments": {"text": long}});
    let answer = chaos.ask(1, "tools/call", params);
    assert!(answer["result"].to_string().contains(&long));
    let expected = format!("{{\"text\":\"{}", "x".repeat(71));
    assert_eq!(folder.events("call")[0]["arguments"], json!(expected));
}

#[test]
fn chaos_notifications_are_written_before_the_answer() {
    let folder = Folder::new();
    let log = json!({"log": [{"level": "info", "data": 1}]});
    let script = json!({"plain": true, "on_call": {"echo": {"progress": 2, "then": log}}});
    let mut chaos = folder.start_with(&script).legacy();
    let set = chaos.ask(1, "logging/setLevel", json!({"level": "info"}));
    assert_eq!(set["result"], json!({}));
    assert_eq!(folder.events("set-level")[0]["level"], "info");
    let meta = json!({"progressToken": "t", "x": 1});
    let params = json!({"name": "echo", "arguments": {"text": "a"}, "_meta": meta});
    chaos.request(2, "tools/call", params);
    for step in [1, 2] {
        let params = json!({"progressToken": "t", "progress": step, "total": 2});
        assert_eq!(chaos.receive()["params"], params);
    }
    assert_eq!(
        chaos.receive()["params"],
        json!({"level": "info", "data": 1})
    );
    assert_eq!(chaos.receive()["id"], 2);
    assert_eq!(folder.events("call")[0]["meta"], meta);
    // A call without a token gets no progress.
    chaos.start_call(3, "echo");
    assert_eq!(chaos.receive()["method"], "notifications/message");
    assert_eq!(chaos.receive()["id"], 3);
}

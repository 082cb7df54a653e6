//! A path in another form of Unicode than NFKC: every surface refuses it in the same way, and names the right one.

use harness::mcp_http::{McpSession, modern};
use harness::websocket::WebSocketClient;
use harness::{Bench, Broker, Run, binary, json_text, refusal};
use serde_json::{Value, json};

/// The path of the tool, as it is locked.
const LOCKED: &str = "/a/café";
/// Forms that a reader cannot tell from it: NFD, and full width.
const OTHERS: [&str; 2] = ["/a/cafe\u{301}", "/a/ｃafé"];

/// A folder with a lock whose source has the tool `café`.
fn locked() -> Bench {
    let bench = Bench::with_sources(&["a"]);
    let tool = json!({"name": "café", "description": "Pours a coffee.", "inputSchema": {"type": "object"}});
    let result = json!({"result": {"content": [{"type": "text", "text": "poured"}]}});
    bench.script("a", &json!({"tools": [tool], "on_call": {"café": result}}));
    bench.lock();
    bench
}

/// The broker, whose MCP clients have this mode.
fn serve(bench: &Bench, mode: &str) -> Broker {
    let program = binary("broker-gen");
    let beside = program.parent().expect("it lies in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let run = Run::new(&program)
        .folder(&bench.path(""))
        .env("PATH", format!("{}:{path}", beside.display()));
    let args = ["serve", "--config", "c.json", "127.0.0.1:0"];
    Broker::start_ready(run.args(args).args(["--mcp-mode", mode]))
}

fn calls(bench: &Bench) -> usize {
    bench.journal("a", "call").len()
}

/// The calls of a tool by its path, with the meta-tools and with `call_tool`: the mode, and the params.
fn by_path(path: &str) -> [(&'static str, Value); 3] {
    let call = |name: &str, key: &str, args: &str| {
        let arguments = json!({key: path, args: {}});
        json!({"name": name, "arguments": arguments})
    };
    [
        ("meta", call("meta_call", "path", "args")),
        ("search", call("call_tool", "name", "arguments")),
        ("search", call("call_tool", "path", "args")),
    ]
}

/// A result is the coffee for the locked path, and for another one the refusal that names the locked one.
fn check(path: &str, result: &Value, place: &str) {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    if path == LOCKED {
        assert_eq!(text, "poured", "{place}: {result}");
        return;
    }
    assert_eq!(result["isError"], true, "{place}: {result}");
    let error: Value = serde_json::from_str(text).expect("an error object");
    is_refusal(&error, place);
}

fn is_refusal(error: &Value, place: &str) {
    assert_eq!(error["code"], "path_invalid", "{place}: {error}");
    assert_eq!(error["did_you_mean"], json!([LOCKED]), "{place}: {error}");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains("the form NFKC"), "{place}: {error}");
}

#[test]
fn path_in_another_form_is_refused_by_every_surface_over_http() {
    let bench = locked();
    let broker = serve(&bench, "meta");
    let searching = serve(&bench, "search");
    let meta = |path: &str, place: &str| {
        let replies = [
            broker.post("/meta_call", &json!({"path": path, "args": {}})),
            broker.post("/meta_desc", &json!({"path": path})),
            broker.post("/meta_desc", &json!({"paths": [path]})),
        ];
        if path == LOCKED {
            assert!(replies.iter().all(|reply| reply.status == 200), "{place}");
            return;
        }
        for reply in &replies[..2] {
            is_refusal(&refusal(reply, 400, "path_invalid"), place);
        }
        is_refusal(&replies[2].json()["entries"][0]["error"], place);
        let tree = broker.post("/meta_tree", &json!({"path": path}));
        is_refusal(&refusal(&tree, 400, "path_invalid"), place);
    };
    for path in OTHERS.into_iter().chain([LOCKED]) {
        let before = calls(&bench);
        meta(path, "the meta API");
        for (mode, params) in by_path(path) {
            let broker = if mode == "meta" { &broker } else { &searching };
            let session = McpSession::begin(broker.address(), "/mcp");
            check(path, &session.result("tools/call", &params), mode);
            let reply = modern(broker.address(), "/mcp", &json!(1), "tools/call", &params);
            check(path, &reply.json()["result"], mode);
            let mut socket = WebSocketClient::connect(broker.address(), "/ws/mcp");
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
            socket.result("initialize", &hello);
            check(path, &socket.result("tools/call", &params), mode);
        }
        let executed = calls(&bench) - before;
        assert_eq!(executed, if path == LOCKED { 10 } else { 0 }, "{path}");
    }
}

#[test]
fn path_in_another_form_is_refused_over_stdio() {
    let bench = locked();
    for (mode, at) in [("meta", 0..1), ("search", 1..3)] {
        let mut input = vec![
            json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        ];
        let paths: Vec<_> = OTHERS.into_iter().chain([LOCKED]).collect();
        let id = |path: &str, number: usize| json!(format!("{number} {path}"));
        for path in &paths {
            for (number, (_, params)) in by_path(path)[at.clone()].iter().enumerate() {
                input.push(json!({
                    "jsonrpc": "2.0", "id": id(path, number), "method": "tools/call", "params": params,
                }));
            }
        }
        let input: String = input.iter().map(|line| format!("{line}\n")).collect();
        let args = ["serve", "stdio", "--config", "c.json", "--mcp-mode", mode];
        let output = bench.run_with_input(&args, &input);
        let answers = output.stdout.lines().map(|line| {
            serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        });
        let answers: Vec<Value> = answers.collect();
        for path in paths {
            for number in 0..at.len() {
                let mut own = answers.iter();
                let answer = own.find(|answer| answer["id"] == id(path, number));
                let answer = answer.unwrap_or_else(|| panic!("{}{}", output.stdout, output.stderr));
                check(path, &answer["result"], mode);
            }
        }
    }
}

/// A search compares words without their accents, so each form finds the tool.
#[test]
fn search_finds_a_tool_by_each_form_of_its_name() {
    let bench = locked();
    let broker = serve(&bench, "search");
    let session = McpSession::begin(broker.address(), "/mcp");
    for query in ["café", "cafe\u{301}", "cafe"] {
        let tree = broker.post("/meta_tree", &json!({"query": query})).json();
        assert_eq!(tree["children"][0]["path"], LOCKED, "{query}: {tree}");
        let params = json!({"name": "retrieve_tools", "arguments": {"query": query}});
        let found = session.result("tools/call", &params);
        let first = json_text(&found)["tools"][0]["path"].clone();
        assert_eq!(first, LOCKED, "{query}: {found}");
    }
}

#[test]
fn command_in_another_form_is_refused_for_simple_clients() {
    let bench = locked();
    let broker = serve(&bench, "meta");
    for path in OTHERS.into_iter().chain([LOCKED]) {
        let command = path.trim_start_matches("/a/");
        let params = json!({"stage": "a", "command": command, "args": {}});
        let mut socket = WebSocketClient::connect(broker.address(), "/v1/ws/mcp");
        socket.request("initialize", &json!({}));
        socket.next_message();
        socket.next_message();
        let answer = socket.answer("callTool", &params);
        if path == LOCKED {
            assert_eq!(answer["result"]["status"], "ok", "{answer}");
            continue;
        }
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("no tool has the path"), "{answer}");
    }
    assert_eq!(calls(&bench), 1);
}

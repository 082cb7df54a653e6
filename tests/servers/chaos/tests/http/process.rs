//! The process: its address, its end, its journal, and scripts that it refuses.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::client::Server;
use crate::support::{Folder, program};

#[test]
fn chaos_http_server_ends_with_its_stdin_though_connections_are_open() {
    let server = Server::start(&json!({}));
    assert!(
        server.url.starts_with("http://127.0.0.1:"),
        "{}",
        server.url
    );
    assert_eq!(server.path(), "/mcp");
    let call = server.call("slow", json!({"ms": 3_600_000}));
    server.folder.await_events("call", 1);
    assert!(server.finish().success());
    drop(call);
}

#[test]
fn chaos_http_journal_has_each_request_with_all_headers_and_its_end() {
    let server = Server::start(&json!({"plain": true}));
    let mut client = server.connect();
    let canaries = [
        ("Authorization", "Bearer canary-1"),
        ("Cookie", "canary-2"),
        ("Cookie", "canary-3"),
    ];
    let message = json!({"jsonrpc": "2.0", "id": "a", "method": "ping"});
    client.post(&canaries, &message);
    assert_eq!(client.response().status, 400);
    client.modern(
        "tools/call",
        json!({"name": "echo", "arguments": {"text": "nonce"}}),
    );
    assert_eq!(client.response().status, 200);
    let left = server.call("slow", json!({"ms": 3_600_000}));
    server.folder.await_events("call", 2);
    left.leave();
    let ends = server.folder.await_events("http-end", 3);
    let requests = server.folder.events("http");
    let headers = &requests[0]["headers"];
    assert_eq!(headers["authorization"], "Bearer canary-1");
    assert_eq!(headers["cookie"], json!(["canary-2", "canary-3"]));
    let of = |entry: &Value, names: &[&str]| -> Vec<Value> {
        names.iter().map(|name| entry[name].clone()).collect()
    };
    let names = [
        "method",
        "path",
        "rpc_method",
        "rpc_id",
        "tool",
        "connection",
    ];
    assert_eq!(
        of(&requests[0], &names),
        [
            json!("POST"),
            json!("/mcp"),
            json!("ping"),
            json!("a"),
            Value::Null,
            json!(1)
        ]
    );
    assert_eq!(
        of(&requests[1], &["tool", "connection"]),
        [json!("echo"), json!(1)]
    );
    assert_eq!(requests[2]["connection"], 2);
    let calls = server.folder.events("call");
    assert_eq!(
        of(&calls[0], &["arguments", "request", "seq"]),
        [json!({"text": "nonce"}), json!(2), json!(1)]
    );
    let names = ["request", "status", "end"];
    assert_eq!(
        of(&ends[0], &names),
        [json!(1), json!(400), json!("answered")]
    );
    assert_eq!(
        of(&ends[1], &names),
        [json!(2), json!(200), json!("answered")]
    );
    assert_eq!(
        of(&ends[2], &names),
        [json!(3), Value::Null, json!("client-closed")]
    );
}

#[test]
fn chaos_http_script_or_address_that_is_wrong_exits_2() {
    let run = |script: Value, address: &str| {
        let folder = Folder::new();
        folder.write(&script);
        let mut command = program(env!("CARGO_BIN_EXE_chaos-mcp"));
        command.args(["--http", address, "--script"]);
        let output = command.arg(folder.script()).stdin(Stdio::null()).output();
        let output = output.unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    for (http, named) in [
        (json!({"replay": "sse"}), "replay"),
        (json!({"transport": "websocket"}), "transport"),
        (json!({"rules": [{"on": {"http_method": "GET"}}]}), "do"),
        (json!({"rules": [{"do": "explode"}]}), "hang"),
        (json!({"rules": [{"do": {"cutt": "head"}}]}), "cutt"),
        (json!({"rules": [{"do": {"status": 99}}]}), "status"),
        (
            json!({"rules": [{"do": {"events": {"newline": "x"}}}]}),
            "newline",
        ),
        (
            json!({"rules": [{"on": {"reply": true}, "do": "reset"}]}),
            "reset",
        ),
    ] {
        let (code, stderr) = run(json!({"http": http}), "0");
        assert_eq!(code, Some(2), "{http}");
        assert!(stderr.contains(named), "{http}: {stderr}");
    }
    let sse = json!({"era": "modern", "http": {"transport": "sse"}});
    assert_eq!(run(sse, "0").0, Some(2));
    for address in ["0.0.0.0:0", "[::1]:0", "localhost", "65536"] {
        assert_eq!(run(json!({}), address).0, Some(2), "{address}");
    }
    assert_eq!(run(json!({}), "127.0.0.1:0").0, Some(0));
}

#[test]
fn chaos_http_request_that_cannot_be_read_is_refused() {
    let server = Server::start(&json!({}));
    for (request, status) in [
        ("GET /mcp HTTP/1.0\r\n\r\n", "400"),
        ("nonsense\r\n\r\n", "400"),
        ("POST /mcp HTTP/1.1\r\nContent-Length: x\r\n\r\n", "400"),
        (
            "POST /mcp HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
            "413",
        ),
        (
            "POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "411",
        ),
    ] {
        let mut client = server.connect();
        client.raw(request.as_bytes());
        let (response, _) = client.rest();
        let expected = format!("HTTP/1.1 {status} ");
        assert!(response.starts_with(&expected), "{request}: {response}");
    }
    assert_eq!(server.folder.await_events("bad-request", 5).len(), 5);
}

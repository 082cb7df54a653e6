//! Simple clients at `/v1/mcp`: the requests that clients of simple adapters send, with no header but the type of the body
//! and the key.

use harness::mcp_http::{McpSession, modern};
use harness::{Bench, Broker, Chaos, Response, Run, binary, request, wait_until};
use serde_json::{Value, json};

const KEY: &str = "the-key-of-callers";

fn adapter() -> (Chaos, Broker) {
    let chaos = Chaos::new();
    let run = chaos.run("chaos-broker", &["127.0.0.1:0"]);
    let broker = Broker::start_ready(
        run.env("ZYRA_API_KEY", KEY)
            .env("ZYRA_MCP_MAX_BODY_BYTES", "100000"),
    );
    (chaos, broker)
}

/// The reply to a body, sent as `curl` does.
fn send(broker: &Broker, method: &str, body: &[u8]) -> Response {
    let headers = [
        ("Accept", "*/*"),
        ("Content-Type", "application/json"),
        ("X-API-Key", KEY),
    ];
    request(broker.address(), method, "/v1/mcp", &headers, body)
}

/// The answer to a simple request, which always has the status 200.
fn answer(broker: &Broker, method: &str, params: Option<Value>) -> Value {
    let mut message = json!({"jsonrpc": "2.0", "method": method, "id": 3});
    if let Some(params) = params {
        message["params"] = params;
    }
    let reply = send(broker, "POST", message.to_string().as_bytes());
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (200, Some("application/json"))
    );
    assert!(reply.header("mcp-session-id").is_none());
    let answer = reply.json();
    assert_eq!(answer["id"], 3);
    answer
}

#[test]
fn commands_of_simple_clients_are_answered_without_a_handshake() {
    let (_chaos, broker) = adapter();
    let status = answer(&broker, "statusReport", None);
    assert_eq!(
        (&status["result"]["status"], &status["result"]["name"]),
        (&json!("ok"), &json!("mcp-broker"))
    );
    assert!(
        status["result"]["catalog_digest"].is_string() && status["result"]["version"].is_string()
    );
    assert_eq!(answer(&broker, "status/report", Some(json!({}))), status);
    let begun = answer(&broker, "initialize", None);
    assert_eq!(begun["result"]["protocolVersion"], "2025-06-18");
    assert!(
        begun["result"]["capabilities"]["tools"].is_object()
            && begun["result"]["serverInfo"].is_object()
    );
    assert_eq!(answer(&broker, "initialize", Some(json!({}))), begun);
    assert_eq!(answer(&broker, "ping", None)["result"], json!({}));
    let list = answer(&broker, "tools/list", None);
    assert!(
        list["result"]["tools"]
            .as_array()
            .is_some_and(|tools| tools.iter().any(|tool| tool["name"] == "a-echo"))
    );
    assert_eq!(answer(&broker, "listTools", None), list);
}

#[test]
fn calls_of_simple_clients_have_the_members_of_a_command() {
    let (chaos, broker) = adapter();
    let params = json!({"name": "a-echo", "arguments": {"text": "x"}, "mode": "sync"});
    let result = answer(&broker, "tools/call", Some(params))["result"].clone();
    assert_eq!(
        (&result["status"], &result["exit_code"]),
        (&json!("ok"), &json!(0))
    );
    assert_eq!(result["stdout"], result["content"][0]["text"]);
    let command = |members: Value| {
        let mut params =
            json!({"stage": "a", "command": "echo", "args": {"text": "x"}, "mode": "sync"});
        for (name, value) in members.as_object().expect("members") {
            params[name] = value.clone();
        }
        answer(&broker, "callTool", Some(params))
    };
    let by_path = command(json!({}))["result"].clone();
    assert_eq!(
        (&by_path["status"], &by_path["exit_code"]),
        (&json!("ok"), &json!(0))
    );
    assert!(by_path["stdout"].is_string() && by_path.get("content").is_none());
    let by_flat_name = command(json!({"stage": null, "command": "a-echo"}));
    assert_eq!(by_flat_name["result"]["status"], "ok");
    assert_eq!(
        command(json!({"args": {"text": 7}}))["error"]["code"],
        -32602
    );
    assert_eq!(command(json!({"command": "nope"}))["error"]["code"], -32602);
    let later = command(json!({"mode": "async"}));
    assert_eq!(
        (&later["error"]["code"], &later["error"]["data"]["code"]),
        (&json!(-32602), &json!("not_durable"))
    );
    let failed = command(json!({"command": "fail", "args": {}}))["error"].clone();
    assert_eq!(failed["code"], -32000);
    assert_eq!(
        (&failed["data"]["stage"], &failed["data"]["command"]),
        (&json!("a"), &json!("fail"))
    );
    assert_eq!(
        (
            &failed["data"]["exit_code"],
            failed["data"]["stdout"].is_string()
        ),
        (&json!(1), true)
    );
    chaos.script(
        "a",
        &json!({"on_call": {"echo": {"rpc_error": {"code": -32603, "message": "no luck"}}}}),
    );
    let failed = command(json!({}))["error"].clone();
    assert_eq!(
        (&failed["code"], &failed["data"]["stderr"]),
        (&json!(-32000), &json!("no luck"))
    );
}

#[test]
fn errors_of_simple_calls_are_those_of_commands() {
    let (chaos, broker) = adapter();
    let both = |tool: &str, args: Value| {
        let call = json!({"name": format!("a-{tool}"), "arguments": args, "mode": "sync"});
        let command = json!({"stage": "a", "command": tool, "args": args, "mode": "sync"});
        let mut answers = [("tools/call", call), ("callTool", command)]
            .map(|(method, params)| answer(&broker, method, Some(params)));
        for answer in &mut answers {
            // The id of a request is another one in each.
            if let Some(error) = answer.pointer_mut("/error/data/error") {
                error
                    .as_object_mut()
                    .map(|error| error.remove("request_id"));
            }
            if let Some(data) = answer.pointer_mut("/error/data") {
                data.as_object_mut().map(|data| data.remove("request_id"));
            }
        }
        let [call, command] = answers;
        (call, command)
    };
    let (call, command) = both("fail", json!({}));
    assert_eq!(call, command);
    let error = &call["error"];
    assert_eq!(error["code"], -32000, "{call}");
    assert_eq!(
        (
            &error["data"]["stage"],
            &error["data"]["command"],
            &error["data"]["exit_code"]
        ),
        (&json!("a"), &json!("fail"), &json!(1))
    );
    assert!(error["data"]["stdout"].is_string());
    let (call, command) = both("echo", json!({"text": 7}));
    assert_eq!((&call["error"]["code"], &call), (&json!(-32602), &command));
    let rpc_error = json!({"rpc_error": {"code": -32603, "message": "no luck"}});
    chaos.script("a", &json!({"on_call": {"echo": rpc_error}}));
    let (call, command) = both("echo", json!({"text": "x"}));
    assert_eq!(call, command);
    assert_eq!(
        (&call["error"]["code"], &call["error"]["data"]["stderr"]),
        (&json!(-32000), &json!("no luck"))
    );
    // Images and links are results as well.
    let content = json!([
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "text", "text": "seen"},
        {"type": "resource_link", "uri": "x://1", "name": "one"},
    ]);
    let result = json!({"result": {"content": content}});
    chaos.script("a", &json!({"on_call": {"echo": result}}));
    let (call, command) = both("echo", json!({"text": "x"}));
    assert_eq!(command["result"], call["result"]);
    assert_eq!(
        (&command["result"]["content"], &command["result"]["stdout"]),
        (&content, &json!("seen"))
    );
    // In a session it is the result of the specification.
    let (_chaos, broker) = super::http::chaos_broker(&[]);
    let session = McpSession::begin(broker.address(), "/v1/mcp");
    let failed = session.result("tools/call", &json!({"name": "a-fail", "arguments": {}}));
    assert_eq!(failed["isError"], true);
    assert!(failed.get("status").is_none(), "{failed}");
}

#[test]
fn wrong_messages_of_simple_clients_are_errors_with_the_status_200() {
    let (_chaos, broker) = adapter();
    let code = |body: &str| {
        let reply = send(&broker, "POST", body.as_bytes());
        (reply.status, reply.json()["error"]["code"].clone())
    };
    assert_eq!(code("{"), (200, json!(-32700)));
    assert_eq!(code("[]"), (200, json!(-32600)));
    assert_eq!(
        code(r#"{"jsonrpc":"2.0","id":1,"method":"nope"}"#),
        (200, json!(-32601))
    );
    assert_eq!(
        code(r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}"#),
        (200, json!(-32600))
    );
    let notification = send(
        &broker,
        "POST",
        br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    );
    assert_eq!((notification.status, notification.body.len()), (202, 0));
    let long = send(&broker, "POST", &vec![b' '; 100_001]);
    assert_eq!(
        (long.status, &long.json()["error"]["code"]),
        (413, &json!(-32600))
    );
    assert_eq!(long.json()["error"]["data"], json!({"limit": 100_000}));
    let headers = [("Content-Type", "application/json")];
    let anonymous = request(
        broker.address(),
        "POST",
        "/v1/mcp",
        &headers,
        br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
    );
    assert_eq!(anonymous.status, 401);
}

#[test]
fn clients_of_the_specification_have_sessions_and_modern_requests_at_v1() {
    let (_chaos, broker) = super::http::chaos_broker(&[]);
    let session = McpSession::begin(broker.address(), "/v1/mcp");
    let list = session.result("tools/list", &json!({}));
    assert_eq!(list, session.result("listTools", &json!({})));
    let call = super::http::echo("x");
    let result = session.result("tools/call", &call);
    assert!(
        result.get("status").is_none(),
        "the result of the specification"
    );
    let mut later = call.clone();
    later["mode"] = json!("async");
    assert_eq!(
        session.ask(&json!(1), "tools/call", &later).json()["error"]["code"],
        -32602
    );
    let command = json!({"stage": "a", "command": "echo", "args": {"text": "x"}});
    assert_eq!(session.result("callTool", &command)["status"], "ok");
    assert_eq!(session.bare("DELETE", "*/*").status, 204);
    let over_mcp = McpSession::begin(broker.address(), "/mcp");
    let unknown = over_mcp.ask(&json!(1), "listTools", &json!({})).json();
    assert_eq!(unknown["error"]["code"], -32601);
    let reply =
        harness::mcp_http::modern(broker.address(), "/v1/mcp", &json!(1), "tools/call", &call);
    assert_eq!(reply.json()["result"]["resultType"], "complete");
}

#[test]
fn smallest_client_of_mcp_begins_with_an_empty_initialize() {
    let (_chaos, broker) = super::http::chaos_broker(&["--mcp-mode", "direct"]);
    for params in ["", r#","params":{}"#] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize"{params}}}"#);
        let headers = [("Content-Type", "application/json")];
        let begun = request(broker.address(), "POST", "/mcp", &headers, body.as_bytes());
        let id = begun
            .header("mcp-session-id")
            .expect("a session")
            .to_owned();
        assert_eq!(begun.json()["result"]["protocolVersion"], "2025-06-18");
        let headers = [
            ("Content-Type", "application/json"),
            ("Mcp-Session-Id", id.as_str()),
        ];
        let ask = |body: Value| {
            request(
                broker.address(),
                "POST",
                "/mcp",
                &headers,
                body.to_string().as_bytes(),
            )
            .json()
        };
        let list = ask(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
        assert!(list["result"]["tools"].is_array(), "{list}");
        let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": super::http::echo("x")});
        assert!(ask(call)["result"]["content"].is_array());
        let delete = || request(broker.address(), "DELETE", "/mcp", &headers[1..], b"").status;
        assert_eq!((delete(), delete()), (204, 404));
    }
}

#[test]
fn discovery_document_lists_the_commands_and_changes_with_a_withdrawal() {
    let (chaos, broker) = adapter();
    let documents = [send(&broker, "GET", b""), send(&broker, "OPTIONS", b"")];
    assert_eq!(documents[0].body, documents[1].body);
    let document = documents[0].json();
    assert_eq!(
        (&document["mcp_version"], &document["name"]),
        (&json!("0.1"), &json!("mcp-broker"))
    );
    assert!(document["description"].is_string() && document.get("truncated").is_none());
    let commands = |document: &Value| {
        document["capabilities"]["commands"]
            .as_array()
            .expect("a list")
            .clone()
    };
    let echo = commands(&document)
        .into_iter()
        .find(|command| command["name"] == "a-echo");
    let echo = echo.expect("the tool");
    assert_eq!(echo["parameters"]["properties"]["text"]["type"], "string");
    assert!(echo["description"].is_string());
    let tag = documents[0].header("etag").expect("a tag").to_owned();
    let headers = [("X-API-Key", KEY), ("If-None-Match", tag.as_str())];
    let again = || request(broker.address(), "GET", "/mcp", &headers, b"");
    assert_eq!((again().status, again().body.len()), (304, 0));
    chaos.script(
        "a",
        &json!({"tools": Chaos::tools_asking_more("echo"), "generation": 1}),
    );
    wait_until("the tool is withdrawn", || again().status == 200);
    let changed = again().json();
    assert_eq!(commands(&changed).len() + 1, commands(&document).len());
    assert!(
        commands(&changed)
            .iter()
            .all(|command| command["name"] != "a-echo")
    );
}

#[test]
fn preflight_discovers_nothing() {
    let (_chaos, broker) = adapter();
    let preflight = [
        ("Origin", "https://app.example"),
        ("Access-Control-Request-Method", "GET"),
    ];
    let reply = request(broker.address(), "OPTIONS", "/v1/mcp", &preflight, b"");
    assert_eq!((reply.status, reply.body.len()), (204, 0));
    let other = [("Origin", "https://evil.example"), ("X-API-Key", KEY)];
    assert_eq!(
        request(broker.address(), "GET", "/v1/mcp", &other, b"").status,
        403
    );
    for method in ["GET", "OPTIONS"] {
        assert_eq!(
            request(broker.address(), method, "/v1/mcp", &[], b"").status,
            401,
            "{method}"
        );
    }
    let stream = [("X-API-Key", KEY), ("Accept", "text/event-stream")];
    assert_eq!(
        request(broker.address(), "GET", "/v1/mcp", &stream, b"").status,
        400,
        "a stream needs a session"
    );
}

#[test]
fn example_of_a_simple_client_does_the_whole_walk() {
    let (_chaos, broker) = adapter();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/simple_client.py");
    let url = format!("http://{}", broker.address());
    let run = |command: &str, args: &str| {
        let run = Run::new("/usr/bin/env".as_ref()).env("MCP_BROKER_SECRET", KEY);
        run.args(["python3", script, &url, "a", command, args])
            .output()
    };
    let walk = run("echo", r#"{"text": "hello"}"#);
    assert_eq!(walk.code, Some(0), "{}", walk.stderr);
    for line in [
        "a second request for the same document: HTTP 304",
        "status: ok, version",
        "protocol: 2025-06-18",
        "tools/list has the same names: True",
        "callTool: exit code 0, output",
        "tools/call: ok, output",
    ] {
        assert!(walk.stdout.contains(line), "{line}: {}", walk.stdout);
    }
    let wrong = run("echo", r#"{"text": 7}"#);
    assert!(
        wrong.code == Some(1) && wrong.stderr.contains("callTool:"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn name_of_the_config_is_the_name_of_the_broker_for_clients() {
    let bench = Bench::new();
    bench.configure([("a", json!({}))]);
    let mut config: Value = serde_json::from_str(&bench.read("c.json")).expect("JSON");
    config["mcp"] = json!({"name": "Lab tools"});
    bench.write("c.json", &config.to_string());
    bench.lock();
    let run = Run::new(&binary("broker-gen"))
        .args(["serve", "--config", "c.json", "127.0.0.1:0"])
        .folder(&bench.path(""));
    let broker = Broker::start_ready(run);
    let report = answer(&broker, "statusReport", None)["result"].clone();
    assert_eq!(report["name"], "Lab tools");
    let hello = answer(&broker, "initialize", None)["result"].clone();
    assert_eq!(hello["serverInfo"]["name"], "Lab tools");
    assert_eq!(hello["serverInfo"]["title"], "Lab tools");
    let document = harness::get(broker.address(), "/v1/mcp").json();
    assert_eq!(document["name"], "Lab tools");
    let listed = modern(
        broker.address(),
        "/mcp",
        &json!(1),
        "tools/list",
        &json!({}),
    );
    let info = &listed.json()["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "Lab tools");
}

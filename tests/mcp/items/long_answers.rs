//! Answers about prompts, resources and lists that are longer than their client reads: the request fails, the record of
//! the call says so, and the connection goes on.

use harness::mcp_http::EventReader;
use harness::websocket::WebSocketClient;
use harness::{Broker, DirectServer, Run, binary, request, send, wait_until};
use serde_json::{Value, json};

use super::Items;

/// The limit of a message in these tests.
const LIMIT: usize = 20_000;
/// The characters of a text that is too long, and of a description of which a list has many.
const LONG: usize = 30_000;
const DESCRIPTION: usize = 500;
const ITEMS: usize = 60;

/// A locked server with long lists, long resources, and prompts that repeat their argument.
fn stage() -> Items {
    let text = "d".repeat(DESCRIPTION);
    let each = |item: fn(usize) -> Value| -> Vec<Value> {
        let items = (0..ITEMS).map(item);
        items
            .map(|mut item| {
                item["description"] = json!(text);
                item
            })
            .collect()
    };
    let lists = json!({
        "tools": each(|n| json!({"name": format!("t{n}"), "inputSchema": {"type": "object"}})),
        "prompts": each(|n| json!({"name": format!("p{n}"), "arguments": [{"name": "x"}]})),
        "resources": each(|n| json!({"uri": format!("x://r{n}"), "name": format!("r{n}")})),
        "templates": each(|n| json!({"uriTemplate": format!("x://t{n}/{{x}}"), "name": format!("e{n}")})),
        "content": {"text": "c".repeat(LONG)},
    });
    let members = json!({"prompt_filter": ["*"], "resources": "locked", "resource_filter": ["*"]});
    let items = Items::new(&lists, &members);
    let mut config: Value = serde_json::from_str(&items.0.read("c.json")).expect("it is JSON");
    config["limits"] = json!({"event_bytes": LIMIT, "stdio_line_bytes": LIMIT});
    config["mcp"] = json!({"mode": "direct"});
    config["surfaces"] = json!({"sse": true});
    config["audit"] = json!({"file": "audit.jsonl", "reads": true});
    items.0.write("c.json", &config.to_string());
    let locked = items.lock();
    assert_eq!(locked.code, Some(0), "{}", locked.stderr);
    items
}

/// Asks for each long answer by `ask`, which returns the answer of a request. Each is an error, and a short request after
/// it is answered.
fn each_fails_alone(limit: usize, ask: &mut dyn FnMut(&str, Value) -> Value) {
    let short = json!({"name": "p1", "arguments": {"x": "y"}});
    for (method, params) in [
        ("resources/read", json!({"uri": "x://r1"})),
        (
            "prompts/get",
            json!({"name": "p1", "arguments": {"x": "y".repeat(LONG)}}),
        ),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
    ] {
        let answer = ask(method, params);
        let data = &answer["error"]["data"];
        assert_eq!(data["code"], "output_too_large", "{method}: {answer}");
        assert_eq!(data["details"]["limit_bytes"], limit, "{method}");
        assert!(data["details"]["size_bytes"].as_u64() > Some(LIMIT as u64));
        let answer = ask("prompts/get", short.clone());
        assert!(answer["result"]["messages"].is_array(), "{answer}");
    }
}

/// Asserts that the audit log says of both long answers of the server, and of each long list, that the caller did not get
/// them.
fn record_says_so(items: &Items) {
    let lines = |kind: &str| -> Vec<Value> {
        let log = items.0.read("audit.jsonl");
        // The last line may not be complete.
        let lines = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        // The wait for the start asks for the tree.
        lines
            .filter(|line| line["kind"] == kind && line["method"] != "meta_tree")
            .collect()
    };
    wait_until("each call of the server has its end", || {
        lines("call_end").len() == 8 && lines("read").len() >= 4
    });
    let reads = lines("read").into_iter();
    let reads: Vec<_> = reads
        .map(|line| (line["method"].clone(), line["code"].clone()))
        .collect();
    let lists = [
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    ];
    let expected = lists.map(|method| (json!(method), json!("output_too_large")));
    assert_eq!(reads, expected);
    let ends = lines("call_end");
    let of_call = |end: &Value| (end["outcome"].clone(), end["code"].clone());
    let long = (json!("failed"), json!("output_too_large"));
    let mut expected = vec![(json!("ok"), Value::Null); 8];
    (expected[0], expected[2]) = (long.clone(), long);
    assert_eq!(ends.iter().map(of_call).collect::<Vec<_>>(), expected);
}

fn serve(items: &Items) -> Broker {
    items.serve_lock(&[])
}

#[test]
fn long_answer_about_an_item_over_stdio_fails_its_request() {
    let items = stage();
    let run = Run::new(&binary("broker-gen")).folder(&items.0.path(""));
    let mut client = DirectServer::start(run.args(["serve", "stdio", "--config", "c.json"]));
    each_fails_alone(LIMIT - 1, &mut |method, params| {
        client.request(method, params)
    });
    record_says_so(&items);
}

#[test]
fn long_answer_about_an_item_on_a_stream_of_events_fails_its_request() {
    let items = stage();
    let broker = serve(&items);
    let address = broker.address();
    let head = format!("GET /sse HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n");
    let mut stream = EventReader::open(send(address, head.as_bytes()));
    let endpoint = stream.next_data().expect("the event `endpoint`");
    let mut id = 0;
    let mut ask = |method: &str, params: Value| {
        id += 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let json = [("Content-Type", "application/json")];
        let taken = request(
            address,
            "POST",
            &endpoint,
            &json,
            message.to_string().as_bytes(),
        );
        assert_eq!(taken.status, 202);
        stream.next_message().expect("an answer")
    };
    let client = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    assert!(ask("initialize", client)["result"].is_object());
    each_fails_alone(LIMIT, &mut ask);
    record_says_so(&items);
}

#[test]
fn long_answer_about_an_item_over_websocket_fails_its_request() {
    let items = stage();
    let broker = serve(&items);
    let mut client = WebSocketClient::connect(broker.address(), "/ws/mcp");
    client.answer(
        "initialize",
        &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
    );
    each_fails_alone(LIMIT, &mut |method, params| client.answer(method, &params));
    record_says_so(&items);
}

//! The limit of results for models: the default, and the settings that replace it.

use harness::mcp_http::McpSession;
use harness::{Bench, Broker, Run, binary};
use serde_json::{Value, json};

use super::text_of;

const CUT: &str = "dev.mcp-broker/truncated";

/// A broker of the tools `long` and `other`, each with a text of 200 000 characters.
fn served(members: Value, limits: Value) -> (Bench, Broker) {
    let bench = Bench::new();
    bench.configure([("s", members)]);
    let mut config: Value = serde_json::from_str(&bench.read("c.json")).expect("a config");
    config["limits"] = limits;
    bench.write("c.json", &config.to_string());
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let long = json!({"result": {"content": [
        {"type": "text", "text": "x".repeat(200_000)},
        {"type": "image", "data": "A".repeat(300_000), "mimeType": "image/png"},
    ]}});
    let script =
        json!({"tools": [tool("long"), tool("other")], "on_call": {"long": long, "other": long}});
    bench.script("s", &script);
    bench.lock();
    let run = Run::new(&binary("broker-gen")).folder(&bench.path(""));
    let broker = Broker::start_ready(run.args(["serve", "0", "--config", "c.json"]));
    (bench, broker)
}

/// The limit by which each way of a call was cut: by `meta_call`, `call_tool` and directly.
fn limits(broker: &Broker, tool: &str) -> [Value; 3] {
    let path = format!("/s/{tool}");
    let name = format!("s-{tool}");
    [
        ("/mcp/meta", "meta_call", json!({"path": path})),
        ("/mcp/search", "call_tool", json!({"name": path})),
        ("/mcp/direct", &*name, json!({})),
    ]
    .map(|(route, name, arguments)| {
        let session = McpSession::begin(broker.address(), route);
        let params = json!({"name": name, "arguments": arguments});
        let result = session.result("tools/call", &params);
        let limit = result["_meta"][CUT]["limit"].clone();
        let image = result["content"][1]["data"].as_str();
        assert_eq!(image.map(str::len), Some(300_000), "data is never cut");
        let is_marked = text_of(&result).contains('…');
        assert_eq!(is_marked, !limit.is_null(), "{route}");
        limit
    })
}

#[test]
fn result_for_a_model_has_the_nearest_limit() {
    let overrides =
        json!({"*": {"max_output_chars": 7000}, "other": {"max_output_chars": 300_000}});
    for (members, of_config, long, other) in [
        (json!({}), json!({}), json!(100_000), json!(100_000)),
        (
            json!({}),
            json!({"result_chars": 5000}),
            json!(5000),
            json!(5000),
        ),
        (
            json!({"max_output_chars": 6000}),
            json!({}),
            json!(6000),
            json!(6000),
        ),
        (
            json!({"max_output_chars": 6000, "tool_overrides": overrides}),
            json!({}),
            json!(7000),
            Value::Null,
        ),
    ] {
        let (_bench, broker) = served(members.clone(), of_config);
        assert_eq!(
            limits(&broker, "long"),
            [&long, &long, &long].map(Value::clone)
        );
        assert_eq!(
            limits(&broker, "other"),
            [&other, &other, &other].map(Value::clone)
        );
        // A program gets the whole result unless the config limits the tool.
        let reply = broker
            .post("/meta_call", &json!({"path": "/s/long", "args": {}}))
            .json();
        let is_limited = members.get("max_output_chars").is_some();
        assert_eq!(reply.get("truncated").is_some(), is_limited);
    }
}

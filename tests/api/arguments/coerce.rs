//! `"coerce": true`: arguments that do not match are converted, and the rules of access see what is sent.

use harness::mcp_http::McpSession;
use harness::{Bench, Broker, Chaos, Run, binary};
use serde_json::{Value, json};

/// A broker of the tool `/f/pages`. `members` are those of the source, `top` those of the config.
fn served(members: Value, top: Value) -> (Bench, Broker) {
    let bench = Bench::new();
    bench.configure([("f", members)]);
    let mut config: Value = serde_json::from_str(&bench.read("c.json")).expect("a config");
    for (key, value) in top.as_object().expect("an object") {
        config[key] = value.clone();
    }
    bench.write("c.json", &config.to_string());
    let schema = json!({"type": "object", "required": ["limit"], "properties": {
        "limit": {"type": "integer"},
        "deep": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        "after": {"type": "number"},
    }});
    bench.one_tool("f", json!({"name": "pages", "inputSchema": schema}));
    bench.lock();
    let run = Run::new(&binary("broker-gen")).folder(&bench.path(""));
    let broker = Broker::start_ready(run.args(["serve", "0", "--config", "c.json"]));
    (bench, broker)
}

/// The arguments of the calls that reached the server.
fn sent(bench: &Bench) -> Vec<Value> {
    let calls = bench.journal("f", "call");
    calls.iter().map(|call| call["arguments"].clone()).collect()
}

#[test]
fn arguments_are_converted_only_where_the_config_says_so() {
    let args = json!({"limit": "3", "deep": "true", "after": null});
    let converted = json!({"limit": 3, "deep": true});
    for (members, top, is_converted) in [
        (json!({}), json!({}), false),
        (json!({}), json!({"coerce": true}), true),
        (json!({"coerce": false}), json!({"coerce": true}), false),
        (json!({"coerce": true}), json!({}), true),
        (
            json!({"coerce": true, "tool_overrides": {"*": {"coerce": false}}}),
            json!({}),
            false,
        ),
        (
            json!({"tool_overrides": {"*": {"coerce": false}, "pages": {"coerce": true}}}),
            json!({}),
            true,
        ),
    ] {
        let (bench, broker) = served(members.clone(), top.clone());
        let reply = broker.post("/meta_call", &json!({"path": "/f/pages", "args": args}));
        if !is_converted {
            assert_eq!(
                reply.json()["error"]["code"],
                "args_invalid",
                "{members} {top}"
            );
            assert!(sent(&bench).is_empty());
            continue;
        }
        assert_eq!(reply.status, 200, "{members} {top}: {}", reply.text());
        let warning = &reply.json()["warnings"][0];
        let expected = "converted before the call: null at `/after` to absence, `/deep` to a boolean, `/limit` to an integer";
        assert_eq!(warning, expected);
        assert_eq!(sent(&bench), std::slice::from_ref(&converted));
        // The same over MCP, with the warning in `_meta`.
        let session = McpSession::begin(broker.address(), "/mcp/direct");
        let params = json!({"name": "f-pages", "arguments": args});
        let result = session.result("tools/call", &params);
        assert_eq!(result["_meta"]["dev.mcp-broker/warnings"][0], expected);
        assert_eq!(sent(&bench)[1], converted);
        for wrong in [
            json!({"limit": ""}),
            json!({"limit": "3x"}),
            json!({"limit": null}),
        ] {
            let reply = broker.post("/meta_call", &json!({"path": "/f/pages", "args": wrong}));
            assert_eq!(reply.json()["error"]["code"], "args_invalid", "{wrong}");
        }
        assert_eq!(sent(&bench).len(), 2);
    }
}

#[test]
fn rules_of_access_see_the_converted_arguments() {
    let access = json!({
        "groups": ["reader"],
        "anonymous": ["reader"],
        "rules": [{"allow": ["/f/pages"], "to": ["reader"],
            "args": {"properties": {"limit": {"type": "integer", "maximum": 5}}}}],
    });
    let (bench, broker) = served(json!({"coerce": true}), json!({"access": access}));
    let call = |limit: &str| {
        let args = json!({"limit": limit});
        broker.post("/meta_call", &json!({"path": "/f/pages", "args": args}))
    };
    assert_eq!(call("5").status, 200);
    assert_eq!(call("6").json()["error"]["code"], "forbidden");
    assert_eq!(sent(&bench), [json!({"limit": 5})]);
}

/// A report of the field: a server of fastmcp, in the file of a client, takes `"3"` and `"true"` itself.
#[test]
fn imported_file_of_a_client_converts_what_its_server_would_take() {
    let bench = Bench::new();
    let args = ["--script", "f.json", "--journal", "f.log"];
    let entry = json!({"command": "chaos-mcp", "args": args, "cwd": "."});
    bench.write("mcp.json", &json!({"mcpServers": {"f": entry}}).to_string());
    bench.fine(&["import", "mcp.json", "-o", "imported.json"]);
    let imported: Value = serde_json::from_str(&bench.read("imported.json")).expect("a config");
    assert_eq!(imported["coerce"], true);
    let nullable = json!({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": null});
    let schema = json!({"type": "object", "required": ["limit"], "properties": {
        "limit": {"type": "integer"}, "tags": nullable, "deep": {"type": "boolean", "default": false},
    }});
    bench.one_tool("f", json!({"name": "pages", "inputSchema": schema}));
    bench.fine(&["lock", "--config", "imported.json"]);
    let run = Run::new(&binary("broker-gen")).folder(&bench.path(""));
    let broker = Broker::start_ready(run.args(["serve", "0", "--config", "imported.json"]));
    let args = json!({"limit": "3", "deep": "true"});
    let reply = broker.post("/meta_call", &json!({"path": "/f/pages", "args": args}));
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(sent(&bench), [json!({"limit": 3, "deep": true})]);
}

#[test]
fn compiled_broker_and_serve_convert_and_cut_alike() {
    let chaos = Chaos::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chaos-broker");
    let config = chaos.config(&format!("{folder}/config.json"), |config| {
        config["coerce"] = json!(true);
        let limits = config["limits"].as_object_mut().expect("limits");
        limits.remove("result_chars");
    });
    let long = json!({"content": [{"type": "text", "text": "x".repeat(150_000)}]});
    chaos.script("a", &json!({"on_call": {"echo": {"result": long}}}));
    let lock = format!("{folder}/config.lock.json");
    let beside = config.replace(".json", ".lock.json");
    std::fs::copy(lock, beside).expect("the lock is copied");
    let compiled = chaos.run("chaos-broker", &["127.0.0.1:0", &config]);
    let served = chaos.run("broker-gen", &["serve", "0", "--config", &config]);
    let answers = [compiled, served].map(|run| {
        let broker = Broker::start_ready(run);
        let session = McpSession::begin(broker.address(), "/mcp");
        let direct = McpSession::begin(broker.address(), "/mcp/direct");
        let add = json!({"a": "1", "b": "2"});
        let long = json!({"text": "long"});
        let call = |path: &str, args: &Value| {
            let params = json!({"name": "meta_call", "arguments": {"path": path, "args": args}});
            session.result("tools/call", &params)
        };
        [
            broker
                .post("/meta_call", &json!({"path": "/a/add", "args": add}))
                .json(),
            call("/a/add", &add),
            call("/a/echo", &long),
            direct.result("tools/call", &json!({"name": "a-echo", "arguments": long})),
            direct.result("tools/list", &json!({})),
        ]
    });
    assert!(answers[0] == answers[1], "{answers:?}");
    let [http, added, cut, ..] = &answers[0];
    assert!(
        http["warnings"].is_array() && http["error"].is_null(),
        "{http}"
    );
    assert!(
        added["_meta"]["dev.mcp-broker/warnings"].is_array(),
        "{added}"
    );
    assert_eq!(cut["_meta"]["dev.mcp-broker/truncated"]["limit"], 100_000);
}

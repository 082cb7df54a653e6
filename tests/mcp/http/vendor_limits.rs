//! Lists within the limits of a vendor of models, which a route, a key or an option asks for.

use std::collections::BTreeSet;

use harness::mcp_http::{ACCEPT, MODERN};
use harness::{Bench, Broker, Run, binary, request};
use serde_json::{Value, json};

use crate::stdio::client::modern;

/// A key for tests only, and its digest.
const KEY: &str = harness::access::KEY;
const DIGEST: &str = "4d261f8d9d76cd9d1b954b97e010a476f548a358d86a15e6f14a8a7723cd61a7";
const PLAIN: usize = 140;
/// The root of the union's schema, in the description.
const UNION: &str = r#"{"anyOf":[{"required":["text"]},{"properties":{"other":{"type":"string"}},"required":["other"]}]}"#;

/// A folder with a lock of one source at `/1st`, with these members in its config.
fn locked(members: Value) -> Bench {
    let bench = Bench::new();
    bench.configure([("1st", json!({}))]);
    let mut config: Value = serde_json::from_str(&bench.read("c.json")).expect("a config");
    for (name, value) in members.as_object().expect("members") {
        config[name] = value.clone();
    }
    config["mcp"] = json!({"max_name": 128, "mode": "direct"});
    bench.write("c.json", &config.to_string());
    let tool = |name: &str, input: Value| json!({"name": name, "description": "Says it.", "inputSchema": input});
    let mut tools: Vec<_> = (0..PLAIN)
        .map(|at| tool(&format!("plain_{at:03}"), json!({"type": "object"})))
        .collect();
    let union: Value = serde_json::from_str(UNION).expect("a schema");
    let union = json!({"type": "object", "properties": {"text": {"type": "string"}}, "anyOf": union["anyOf"]});
    tools.push(tool("a_union", union));
    tools.push(tool(&long_name(), json!({"type": "object"})));
    let brackets = json!({"type": "object", "properties": {"filter[id]": {"type": "string"}}});
    tools.push(tool("brackets", brackets));
    bench.script("1st", &json!({"tools": tools}));
    bench.lock();
    bench
}

fn long_name() -> String {
    format!("b_{}", "long_".repeat(14))
}

fn served(bench: &Bench) -> Broker {
    let run = Run::new(&binary("broker-gen")).folder(&bench.path(""));
    Broker::start_ready(run.args(["serve", "0", "--config", "c.json"]))
}

/// The result of a request of the modern era.
fn asked(broker: &Broker, route: &str, key: Option<&str>, method: &str, params: Value) -> Value {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    let mut headers = vec![
        ("Content-Type", "application/json"),
        ("Accept", ACCEPT),
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", method),
    ];
    if !name.is_empty() {
        headers.push(("Mcp-Name", &name));
    }
    if let Some(key) = key {
        headers.push(("X-API-Key", key));
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let body = body.to_string();
    let response = request(broker.address(), "POST", route, &headers, body.as_bytes());
    let reply = response.json();
    assert!(reply["error"].is_null(), "{route} {method}: {reply}");
    reply["result"].clone()
}

/// The entries of a list, in all its pages.
fn list(broker: &Broker, route: &str, key: Option<&str>) -> Vec<Value> {
    let (mut tools, mut cursor) = (Vec::new(), None);
    loop {
        let params = cursor.map_or_else(|| json!({}), |cursor: Value| json!({"cursor": cursor}));
        let mut page = asked(broker, route, key, "tools/list", params);
        match page["tools"].take() {
            Value::Array(more) => tools.extend(more),
            other => panic!("{other}"),
        }
        match page["nextCursor"].take() {
            Value::Null => return tools,
            next => cursor = Some(next),
        }
    }
}

fn instructions(broker: &Broker, route: &str) -> String {
    let result = asked(broker, route, None, "server/discover", json!({}));
    result["instructions"].as_str().expect("a text").to_owned()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name"))
        .collect()
}

fn entry<'t>(tools: &'t [Value], part: &str) -> &'t Value {
    let found = tools.iter().find(|tool| {
        let name = tool["name"].as_str();
        name.is_some_and(|name| name.contains(part))
    });
    found.unwrap_or_else(|| panic!("a tool `{part}`"))
}

#[test]
fn list_has_the_limits_of_the_vendor_of_its_route_and_no_others() {
    let bench = locked(json!({}));
    let broker = served(&bench);
    let all = list(&broker, "/mcp/direct", None);
    assert_eq!(all.len(), PLAIN + 3);
    assert_eq!(entry(&all, "union")["description"], "Says it.");
    assert!(entry(&all, "union")["inputSchema"]["anyOf"].is_array());
    assert_eq!(
        entry(&all, "plain_000")["inputSchema"],
        json!({"type": "object"})
    );
    assert!(!instructions(&broker, "/mcp/direct").contains("128"));

    for (vendor, is_limited, begin, has_brackets) in [
        ("openai", true, "1st-", true),
        ("gemini", false, "_1st-", true),
        ("anthropic", false, "1st-", false),
    ] {
        let route = format!("/mcp/direct/{vendor}");
        let tools = list(&broker, &route, None);
        let all = if has_brackets { PLAIN + 3 } else { PLAIN + 2 };
        let expected = if is_limited { 128 } else { all };
        let listed = names(&tools);
        assert_eq!(listed.len(), expected, "{vendor}");
        let different: BTreeSet<_> = listed.iter().collect();
        assert_eq!(different.len(), expected, "{vendor}");
        for name in &listed {
            assert!(
                name.len() <= 64 && name.starts_with(begin),
                "{vendor}: {name}"
            );
        }
        assert_eq!(
            listed.iter().any(|name| name.contains("brackets")),
            has_brackets
        );
        let texts = instructions(&broker, &route);
        let all = format!("the first 128 of {} tools", PLAIN + 3);
        assert_eq!(texts.contains(&all), is_limited, "{texts}");
        assert_eq!(texts.contains("/1st/brackets"), !has_brackets, "{texts}");

        let union = entry(&tools, "union");
        let is_moved = vendor != "gemini";
        assert_eq!(union["inputSchema"]["anyOf"].is_null(), is_moved, "{union}");
        let description = union["description"].as_str().expect("a text");
        assert_eq!(description.ends_with(UNION), is_moved, "{description}");
        assert_eq!(
            !union["inputSchema"]["properties"]["other"].is_null(),
            is_moved
        );
        let plain = &entry(&tools, "plain_000")["inputSchema"];
        assert_eq!(
            !plain["properties"].is_null(),
            vendor == "openai",
            "{plain}"
        );

        // A tool is called by the name in the list, and checked with the schema of its server.
        for (part, arguments, is_error) in [
            ("b_long", json!({}), false),
            ("union", json!({"other": "x"}), false),
            ("union", json!({}), true),
        ] {
            let name = &entry(&tools, part)["name"];
            let params = json!({"name": name, "arguments": arguments});
            let result = asked(&broker, &route, None, "tools/call", params);
            assert_eq!(
                result["isError"] == json!(true),
                is_error,
                "{name}: {result}"
            );
        }
    }
}

#[test]
fn key_names_the_vendor_of_its_caller_and_a_route_takes_precedence() {
    let key = json!({"name": "tests", "sha256": DIGEST, "groups": ["tests"], "client": "openai"});
    let bench = locked(json!({
        "identities": {"keys": [key]},
        "access": {
            "groups": ["tests"], "rules": [{"allow": ["/**"], "to": ["tests"]}],
            "local": ["tests"], "anonymous": ["tests"],
        },
    }));
    let broker = served(&bench);
    let count = |route: &str, key: Option<&str>| list(&broker, route, key).len();
    assert_eq!(count("/mcp", Some(KEY)), 128);
    assert_eq!(count("/v1/mcp", Some(KEY)), 128);
    assert_eq!(count("/mcp/direct/anthropic", Some(KEY)), PLAIN + 2);
    assert_eq!(count("/mcp", None), PLAIN + 3);
}

#[test]
fn option_names_the_vendor_over_stdio_alone() {
    let bench = locked(json!({}));
    let ask = |id: u8, method: &str| {
        let params = modern(json!({}));
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    let input = format!("{}\n{}\n", ask(1, "server/discover"), ask(2, "tools/list"));
    let args = ["serve", "stdio", "--config", "c.json", "--client", "openai"];
    let answered = bench.run_with_input(&args, &input);
    let results = answered.stdout.lines().map(|line| -> Value {
        let answer: Value = serde_json::from_str(line).expect("a message");
        answer["result"].clone()
    });
    let results: Vec<Value> = results.collect();
    let discovered = results
        .iter()
        .find_map(|result| result["instructions"].as_str());
    let instructions = discovered.unwrap_or_else(|| panic!("{answered:?}"));
    assert!(instructions.contains("the first 128 of"), "{instructions}");
    let listed = results.iter().find_map(|result| result["tools"].as_array());
    assert_eq!(listed.map(Vec::len), Some(128));

    let program = binary("broker-gen");
    let run = Run::new(&program).folder(&bench.path(""));
    let refused = run
        .args(["serve", "0", "--config", "c.json", "--client", "openai"])
        .output();
    assert_eq!(refused.code, Some(2));
    let text = &refused.stderr;
    assert!(text.contains("/mcp/direct/openai"), "{text}");
}

//! The replies of the meta API without faults: shapes, tags, bytes, health.

use harness::{Broker, Chaos, Response, named, raw, request, wait_until};
use serde_json::{Value, json};

fn listening() -> (Chaos, Broker) {
    let chaos = Chaos::new();
    let broker = Broker::start(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    (chaos, broker)
}

fn ready(chaos: &Chaos) -> Broker {
    Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]))
}

pub(crate) fn paths(entries: &Value) -> Vec<&str> {
    let entries = entries.as_array().expect("a list of entries");
    entries
        .iter()
        .filter_map(|entry| entry["path"].as_str())
        .collect()
}

fn etag(response: &Response) -> String {
    response
        .header("etag")
        .expect("the reply has a tag")
        .to_owned()
}

#[test]
fn reply_names_the_catalog_and_the_request() {
    let (_chaos, broker) = listening();
    let replies = [
        broker.get("/healthz"),
        broker.get("/readyz"),
        broker.get("/sources"),
        broker.post("/meta_tree", &json!({})),
        broker.post("/meta_desc", &json!({"path": "/a/echo"})),
        broker.get("/nowhere"),
        broker.post("/meta_tree", &json!({"path": 1})),
        raw(
            broker.address(),
            b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n",
        ),
    ];
    replies.iter().for_each(named);
    let digest = replies[0].json()["catalog_digest"].clone();
    assert!(
        replies
            .iter()
            .all(|reply| reply.header("x-catalog-digest").map(Value::from) == Some(digest.clone()))
    );
    let mut ids: Vec<_> = replies
        .iter()
        .map(|reply| reply.header("x-request-id"))
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), replies.len(), "no id is used twice");
}

#[test]
fn meta_tree_lists_nodes_in_config_order_and_tools_by_name() {
    let (_chaos, broker) = listening();
    let root = broker.post("/meta_tree", &json!({})).json();
    assert_eq!(
        (&root["path"], &root["type"]),
        (&json!("/"), &json!("node"))
    );
    assert_eq!(paths(&root["children"]), ["/a", "/b", "/optional"]);
    let first = json!({"path": "/a", "type": "node", "summary": "Misbehaves as its script says"});
    assert_eq!(root["children"][0], first, "one level has no grandchildren");
    let b = broker.post("/meta_tree", &json!({"path": "/b"})).json();
    assert_eq!(
        paths(&b["children"]),
        ["/b/add", "/b/echo", "/b/slow", "/b/structured"]
    );
    let add = json!({"path": "/b/add", "type": "tool", "summary": "Adds two numbers"});
    assert_eq!(b["children"][0], add);
    for depth in 2..=16 {
        let deep = broker
            .post("/meta_tree", &json!({"path": "/", "depth": depth}))
            .json();
        assert_eq!(deep["children"][1], b, "depth {depth}");
        assert_eq!(paths(&deep["children"][2]["children"]), ["/optional/echo"]);
    }
    let echo = broker.post("/meta_tree", &json!({"path": "/a"})).json();
    let echo = echo["children"]
        .as_array()
        .and_then(|tools| tools.iter().find(|tool| tool["path"] == "/a/echo").cloned());
    assert_eq!(
        echo.expect("it is listed")["summary"],
        "Say it again",
        "the override counts"
    );
}

#[test]
fn meta_desc_has_everything_that_a_call_needs() {
    let (_chaos, broker) = listening();
    let node = broker.post("/meta_desc", &json!({"path": "/b"})).json();
    assert_eq!(
        (&node["path"], &node["type"]),
        (&json!("/b"), &json!("node"))
    );
    assert!(
        node["description"].is_string() && node["summary"] == "Usually behaves",
        "{node}"
    );
    assert_eq!(paths(&node["children"]).len(), 4);
    let tools = Chaos::tools();
    for live in &tools {
        let path = format!("/a/{}", live["name"].as_str().expect("a tool has a name"));
        let tool = broker.post("/meta_desc", &json!({"path": path})).json();
        assert_eq!(
            (&tool["path"], &tool["type"]),
            (&json!(path), &json!("tool"))
        );
        assert_eq!(tool["description"], live["description"]);
        assert_eq!(tool["args_schema"], live["inputSchema"]);
        assert_eq!(tool.get("output_schema"), live.get("outputSchema"));
        assert!(
            tool["digest"]
                .as_str()
                .is_some_and(|digest| digest.starts_with("sha256/1:")),
            "{tool}"
        );
        assert!(
            tool["summary"].is_string() && tool.get("withdrawn").is_none(),
            "{tool}"
        );
    }
    let echo = broker
        .post("/meta_desc", &json!({"path": "/a/echo"}))
        .json();
    assert_eq!(echo["example_args"], json!({"text": "hello"}));
}

#[test]
fn meta_desc_of_several_paths_keeps_their_order() {
    let (_chaos, broker) = listening();
    let asked = ["/b/add", "/nowhere", "/a", "not a path", "/b/add", "/"];
    let reply = broker.post("/meta_desc", &json!({"paths": asked}));
    named(&reply);
    let entries = reply.json()["entries"].clone();
    assert_eq!(paths(&entries), asked);
    for at in [0, 2, 4, 5] {
        let alone = broker
            .post("/meta_desc", &json!({"path": asked[at]}))
            .json();
        assert_eq!(entries[at], alone);
    }
    assert_eq!(entries[1]["error"]["code"], "path_not_found");
    assert_eq!(entries[3]["error"]["code"], "path_invalid");
    assert_eq!(
        broker.post("/meta_desc", &json!({"paths": []})).json(),
        json!({"entries": []})
    );
    let fifty = broker
        .post("/meta_desc", &json!({"paths": vec!["/a/echo"; 50]}))
        .json();
    assert_eq!(fifty["entries"].as_array().map(Vec::len), Some(50));
    let more = broker.post("/meta_desc", &json!({"paths": vec!["/a/echo"; 51]}));
    assert_eq!((more.status, more.code().as_str()), (400, "field_invalid"));
}

#[test]
fn etags_are_stable_and_change_with_a_withdrawal() {
    let chaos = Chaos::new();
    let broker = ready(&chaos);
    let ask = |route: &str, body: Value| {
        let (first, second) = (broker.post(route, &body), broker.post(route, &body));
        assert_eq!(
            (etag(&first), &first.body),
            (etag(&second), &second.body),
            "{body}"
        );
        etag(&first)
    };
    let tags = || {
        [
            ask("/meta_tree", json!({"path": "/a"})),
            ask("/meta_tree", json!({"path": "/", "depth": 2})),
            ask("/meta_desc", json!({"path": "/a/echo"})),
            ask("/meta_desc", json!({"path": "/a"})),
            ask("/meta_desc", json!({"paths": ["/a/echo"]})),
        ]
    };
    let other = || {
        [
            ask("/meta_tree", json!({"path": "/b"})),
            ask("/meta_desc", json!({"path": "/a/add"})),
        ]
    };
    let (before, untouched) = (tags(), other());
    assert!(
        before
            .iter()
            .all(|tag| tag.starts_with('"') && tag.ends_with('"')),
        "{before:?}"
    );
    let headers = [
        ("Content-Type", "application/json"),
        ("If-None-Match", before[0].as_str()),
    ];
    let again = request(
        broker.address(),
        "POST",
        "/meta_tree",
        &headers,
        br#"{"path":"/a"}"#,
    );
    assert_eq!(again.status, 200, "`If-None-Match` is ignored");
    chaos.script(
        "a",
        &json!({"tools": Chaos::tools_without("echo"), "generation": 1}),
    );
    let withdrawn = |count: u64| {
        wait_until("the list is checked", || {
            broker.source("/a")["withdrawn"] == count
        })
    };
    withdrawn(1);
    let during = tags();
    assert!(
        before
            .iter()
            .zip(&during)
            .all(|(before, during)| before != during),
        "{before:?} {during:?}"
    );
    assert_eq!(other(), untouched);
    chaos.script("a", &json!({"generation": 2}));
    withdrawn(0);
    assert_eq!(tags(), before);
}

#[test]
fn meta_call_returns_the_result_byte_for_byte() {
    let raw = concat!(
        r#"{"zebra" : 1.0,"content":[ {"type":"text","text":"caf\u00e9 \/ \ud83d\ude00 \u0000 é"} ],"#,
        r#""apple":1e2,"big":123456789012345678901234567890,"neg":-0,"float":0.1000000000000000055511151231257827,"#,
        r#""m":{"b":1,"a":{"d":[1E+2,1e-7],"c":null}},"resultType":"complete","":"" }"#
    );
    let chaos = Chaos::new();
    chaos.script("a", &json!({"on_call": {"echo": {"raw_result": raw}}}));
    let broker = ready(&chaos);
    let reply = broker.call("/a/echo", json!({"text": "x"}));
    named(&reply);
    assert_eq!(
        (reply.status, reply.text()),
        (200, format!(r#"{{"path":"/a/echo","result":{raw}}}"#))
    );
}

#[test]
fn meta_call_passes_the_arguments_as_sent() {
    let chaos = Chaos::new();
    let broker = ready(&chaos);
    let args = "{\"b\" : 1e2,\n  \"a\":12345678901234567890.5e-1}";
    let body = format!(r#"{{"path":"/b/add","args":{args}}}"#);
    let reply = request(
        broker.address(),
        "POST",
        "/meta_call",
        &[("Content-Type", "application/json")],
        body.as_bytes(),
    );
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(
        chaos.events("b", "call")[0]["arguments"],
        serde_json::from_str::<Value>(args).expect("it is JSON")
    );
}

#[test]
fn meta_call_of_a_failing_tool_returns_a_result() {
    let chaos = Chaos::new();
    let broker = ready(&chaos);
    let reply = broker.call("/a/fail", json!({"message": "no such file"}));
    assert_eq!(reply.status, 200);
    let result = &reply.json()["result"];
    assert_eq!(
        (&result["isError"], &result["content"][0]["text"]),
        (&json!(true), &json!("no such file"))
    );
}

#[test]
fn meta_call_returns_structured_content() {
    let chaos = Chaos::new();
    let broker = ready(&chaos);
    let result = broker.result("/b/structured", json!({"n": 21}));
    assert_eq!(result["structuredContent"], json!({"n": 21, "double": 42}));
}

#[test]
fn health_routes_report_build_readiness_and_sources() {
    let chaos = Chaos::new();
    chaos.script("b", &json!({"on_method": {"tools/list": "hang"}}));
    let broker = Broker::start(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    let health = broker.get("/healthz");
    assert_eq!(health.status, 200);
    let health = health.json();
    let digest = &health["catalog_digest"];
    let built_from = &health["built_from"];
    assert_eq!(
        health,
        json!({
            "status": "ok",
            "version": env!("CARGO_PKG_VERSION"),
            "catalog_digest": digest,
            "built_from": built_from,
        })
    );
    assert_eq!(built_from["config"], "config.json");
    let waiting = broker.get("/readyz");
    assert_eq!(
        (waiting.status, &waiting.json()["ready"]),
        (503, &json!(false))
    );
    assert_eq!(broker.source("/b")["state"], "starting");
    drop(broker);
    chaos.script("b", &json!({}));
    let broker = ready(&chaos);
    let ready = broker.get("/readyz").json();
    assert_eq!(
        (&ready["ready"], &ready["catalog_digest"]),
        (&json!(true), digest)
    );
    assert_eq!(paths(&ready["sources"]), ["/a", "/b", "/optional"]);
    assert_eq!(
        broker.get("/sources").json()["sources"]
            .as_array()
            .map(Vec::len),
        Some(3)
    );
    for (path, tools) in [("/a", 10), ("/b", 4)] {
        let source = broker.source(path);
        assert_eq!(
            (&source["state"], &source["tools"], &source["withdrawn"]),
            (&json!("ready"), &json!(tools), &json!(0))
        );
        assert!(
            source.get("cause").is_none()
                && source["since"]
                    .as_str()
                    .is_some_and(|since| since.ends_with('Z')),
            "{source}"
        );
    }
}

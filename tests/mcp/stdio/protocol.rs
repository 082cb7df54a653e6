//! Envelope, eras and revisions.

use serde_json::{Value, json};

use super::client::{Client, MODERN, hello, modern, quick};

#[test]
fn initialize_negotiates_a_legacy_revision_or_the_latest() {
    for (asked, settled) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("1999-01-01", "2025-11-25"),
        (MODERN, "2025-11-25"),
    ] {
        let mut client = Client::start(&[]);
        let result = client.request(json!(0), "initialize", hello(asked))["result"].clone();
        assert_eq!(result["protocolVersion"], settled);
        assert_eq!(result["serverInfo"]["name"], "mcp-broker");
        assert_eq!(result["capabilities"], json!({"tools": {}, "logging": {}}));
        let instructions = result["instructions"].as_str().expect("a text");
        for word in ["meta_tree", "meta_desc", "meta_call", "/text", "/util"] {
            assert!(instructions.contains(word), "{word}: {instructions}");
        }
        assert_eq!(
            client.request(json!(1), "ping", json!({}))["result"],
            json!({})
        );
    }
}

#[test]
fn modern_client_needs_no_handshake_and_gets_its_members() {
    let mut client = Client::start(&[]);
    let discovered = client.request(json!(1), "server/discover", modern(json!({})));
    let listed = client.request(json!(2), "tools/list", modern(json!({})));
    let called = client.request(json!(3), "tools/call", modern(quick()));
    for answer in [&discovered, &listed, &called] {
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        let info = &answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert!(info["name"].is_string(), "{answer}");
    }
    for answer in [&discovered, &listed] {
        assert!(answer["result"]["ttlMs"].is_u64(), "{answer}");
        assert_eq!(answer["result"]["cacheScope"], "public");
    }
    assert_eq!(discovered["result"]["supportedVersions"], json!([MODERN]));
    assert!(discovered["result"]["instructions"].is_string());
    assert_eq!(called["result"]["structuredContent"]["algorithm"], "crc32");
}

#[test]
fn legacy_client_gets_no_modern_members() {
    let mut client = Client::legacy("2025-11-25");
    let listed = client.request(json!(1), "tools/list", json!({}));
    let called = client.request(json!(2), "tools/call", quick());
    for answer in [&listed, &called] {
        for member in ["resultType", "ttlMs", "cacheScope", "_meta"] {
            assert!(answer["result"].get(member).is_none(), "{member}: {answer}");
        }
    }
    // The server uses the modern era: its result still arrives.
    assert_eq!(called["result"]["structuredContent"]["bytes"], 5);
}

#[test]
fn batch_is_accepted_only_in_revisions_that_have_it() {
    let ping = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    for revision in ["2025-11-25", "2025-06-18"] {
        let mut client = Client::legacy(revision);
        client.send(&json!([ping(json!(1))]));
        let refused = client.read();
        assert_eq!(refused["error"]["code"], -32600);
        assert!(refused.get("id").is_none(), "{refused}");
    }
    let mut client = Client::legacy("2025-03-26");
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": quick()});
    client.send(&json!([ping(json!(1)), note, call, 7]));
    let answers = client.read();
    let answers = answers.as_array().expect("one array for the batch");
    assert_eq!(answers.len(), 3, "{answers:?}");
    let of = |id: Value| answers.iter().find(|answer| answer.get("id") == Some(&id));
    assert_eq!(of(json!(1)).expect("an answer")["result"], json!({}));
    let called = of(json!("c")).expect("an answer");
    assert_eq!(called["result"]["isError"], false);
    // A batch of notifications is not answered: the next line is the next answer.
    client.send(&json!([note]));
    client.send(&json!([]));
    assert_eq!(client.read()["error"]["code"], -32600);
}

#[test]
fn request_with_an_invalid_envelope_is_refused() {
    let mut client = Client::legacy("2025-11-25");
    let long = "x".repeat(1 << 20);
    let long = format!(r#"{{"jsonrpc":"2.0","id":"{long}","method":"ping"}}"#);
    for (line, id) in [
        (long.as_str(), Value::Null),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, json!(1)),
        (r#"{"id":1,"method":"ping"}"#, json!(1)),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            Value::Null,
        ),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, Value::Null),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, Value::Null),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"notifications/initialized"}"#,
            json!("a"),
        ),
    ] {
        client.raw(format!("{line}\n").as_bytes());
        let refused = client.read();
        assert_eq!(refused["error"]["code"], -32600, "{line}");
        assert_eq!(refused["id"], id, "{line}");
    }
    // A request without an id is a notification: it is not executed and not answered.
    client.send(&json!({"jsonrpc": "2.0", "method": "tools/call", "params": quick()}));
    client.send(&json!({"jsonrpc": "2.0", "id": 9, "result": {}}));
    assert_eq!(client.request(json!(2), "ping", json!({}))["id"], 2);
}

#[test]
fn method_that_is_unknown_is_refused() {
    let mut client = Client::legacy("2025-11-25");
    for method in ["nope", "resources/subscribe", "tasks/get"] {
        assert_eq!(client.refusal(method, json!({})), -32601, "{method}");
    }
    let loud = json!({"level": "loud"});
    assert_eq!(client.refusal("logging/setLevel", loud), -32602);
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "nope",
    ] {
        assert_eq!(
            client.refusal(method, modern(json!({}))),
            -32601,
            "{method}"
        );
    }
}

#[test]
fn legacy_request_before_initialize_is_refused() {
    let mut client = Client::start(&[]);
    assert_eq!(client.refusal("tools/call", quick()), -32600);
    assert_eq!(client.refusal("tools/list", json!({})), -32600);
    assert_eq!(client.refusal("server/discover", json!({})), -32602);
    assert_eq!(
        client.request(json!(1), "ping", json!({}))["result"],
        json!({})
    );
    assert_eq!(client.refusal("initialize", json!({})), -32602);
    assert_eq!(client.refusal("initialize", json!([])), -32602);
}

#[test]
fn revision_that_is_not_supported_is_refused_with_the_supported() {
    let mut client = Client::start(&[]);
    let discovered = client.request(json!(1), "server/discover", modern(json!({})));
    let mut params = modern(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    let refused = client.request(json!(2), "tools/list", params)["error"].clone();
    assert_eq!(refused["code"], -32022);
    assert_eq!(
        refused["data"]["supported"],
        discovered["result"]["supportedVersions"]
    );
    assert_eq!(refused["data"]["requested"], "2031-01-01");
    let mut params = modern(json!({}));
    params["_meta"]
        .as_object_mut()
        .expect("an object")
        .remove("io.modelcontextprotocol/clientCapabilities");
    assert_eq!(client.refusal("tools/list", params), -32602);
}

#[test]
fn cursor_that_was_never_given_is_refused() {
    let mut client = Client::legacy("2025-11-25");
    assert_eq!(client.refusal("tools/list", json!({"cursor": "x"})), -32602);
    assert_eq!(
        client.refusal("tools/list", modern(json!({"cursor": ""}))),
        -32602
    );
    let listed = client.request(json!(1), "tools/list", json!({"cursor": null}));
    assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(3));
}

#[test]
fn subscription_is_acknowledged_by_id_and_ends_with_the_input() {
    let mut client = Client::start(&[]);
    let listen = modern(json!({"notifications": {"toolsListChanged": true}}));
    client.ask(json!("7"), "subscriptions/listen", listen.clone());
    let key = "io.modelcontextprotocol/subscriptionId";
    let acknowledged = client.read();
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert_eq!(acknowledged["params"]["_meta"][key], "7");
    assert_eq!(acknowledged["params"]["notifications"], json!({}));
    client.ask(json!(7), "subscriptions/listen", listen);
    assert_eq!(client.read()["params"]["_meta"][key], 7);
    client.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}),
    );
    assert_eq!(
        client.refusal("subscriptions/listen", modern(json!({}))),
        -32602
    );
    let end = client.end();
    assert_eq!(end.status.code(), Some(0));
    assert_eq!(end.rest.len(), 1, "the other was cancelled: {:?}", end.rest);
    assert_eq!(end.rest[0]["id"], "7");
    assert_eq!(end.rest[0]["result"]["_meta"][key], "7");
    assert_eq!(end.rest[0]["result"]["resultType"], "complete");
}

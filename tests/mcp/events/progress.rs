//! Progress of calls, on its way to the caller whose request has the token.

use std::time::Duration;

use harness::mcp_http::{EventReader, McpSession};
use harness::{Chaos, read};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    PROGRESS, broker, broker_of, direct, in_session, last_meta, modern, stdio, through_meta,
};

/// The server of `/a` reports three steps, then answers.
fn three_steps() -> Value {
    json!({"on_call": {"echo": {"progress": [
        {"progress": 1, "total": 3},
        {"progress": 1.5, "message": "half\u{202e}"},
        {"progress": 3, "total": 3.0, "_meta": {"x": 1}},
    ]}}})
}

/// The messages that a caller with this token gets.
fn expected(token: &Value) -> Vec<Value> {
    let message = |mut params: Value| {
        params["progressToken"] = token.clone();
        json!({"jsonrpc": "2.0", "method": PROGRESS, "params": params})
    };
    vec![
        message(json!({"progress": 1, "total": 3})),
        message(json!({"progress": 1.5, "message": "half\\u{202e}"})),
        message(json!({"progress": 3, "total": 3.0})),
    ]
}

/// Tokens of callers; a string of digits is a string.
fn tokens() -> [Value; 3] {
    [json!(7), json!("7"), json!("a \"b\"")]
}

#[test]
fn progress_over_stdio_has_the_token_of_its_request_and_comes_before_the_result() {
    for (mode, params) in [
        ("direct", direct as fn(&Value) -> Value),
        ("meta", through_meta),
    ] {
        let chaos = Chaos::new();
        let mut client = stdio(&chaos, &three_steps(), &["--mcp-mode", mode]);
        for token in tokens() {
            client.ask(
                json!("call"),
                "tools/call",
                params(&json!({"progressToken": token})),
            );
            for message in expected(&token) {
                assert_eq!(client.read(), message, "{mode}");
            }
            let answer = client.read();
            assert_eq!(answer["id"], "call");
            assert!(answer["result"].is_object(), "{answer}");
            assert_ne!(last_meta(&chaos)["progressToken"], token);
        }
    }
}

#[test]
fn progress_over_http_has_the_token_of_its_request_and_comes_before_the_result() {
    let (_chaos, broker) = broker(&three_steps());
    for (route, params) in [
        ("/mcp/direct", direct as fn(&Value) -> Value),
        ("/mcp/meta", through_meta),
    ] {
        let session = McpSession::begin(broker.address(), route);
        for token in tokens() {
            let call = params(&json!({"progressToken": token}));
            let (before, answer) = in_session(&session, &call);
            assert_eq!(before, expected(&token), "{route}");
            assert_eq!(answer["id"], "call");
            let (before, _) = modern(&broker, route, &call);
            assert_eq!(before, expected(&token), "{route}");
        }
    }
}

#[test]
fn caller_that_reads_only_json_gets_the_result_alone() {
    let (chaos, broker) = broker(&three_steps());
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": direct(&json!({"progressToken": 1}))});
    let reply = read(session.post(&body.to_string(), "application/json"));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert!(reply.json()["result"].is_object(), "{}", reply.text());
    assert!(
        last_meta(&chaos).get("progressToken").is_none(),
        "the server is not asked"
    );
}

#[test]
fn callers_with_the_same_token_get_the_progress_of_their_own_requests() {
    // The second step is sent while the calls of both callers are in flight.
    let steps = |first: u64| {
        json!({"progress": [{"progress": first}], "then": {"delay_ms": 1000,
            "then": {"progress": [{"progress": first + 1}]}}})
    };
    let (_chaos, broker) = broker(&json!({"on_call": {"echo": steps(10), "add": steps(20)}}));
    let meta = json!({"progressToken": "same"});
    let add = json!({"name": "a-add", "arguments": {"a": 1, "b": 2}, "_meta": meta});
    let mut callers: Vec<_> = [(direct(&meta), 10), (add, 20)]
        .into_iter()
        .map(|(params, first)| {
            let session = McpSession::begin(broker.address(), "/mcp/direct");
            (session.send(&json!(1), "tools/call", &params), first)
        })
        .collect();
    for (sent, first) in callers.drain(..) {
        let mut reader = EventReader::open(sent);
        for progress in [first, first + 1] {
            let message = reader.next_message().expect("progress");
            let params = json!({"progressToken": "same", "progress": progress});
            assert_eq!(message["params"], params);
        }
        let answer = reader.next_message().expect("an answer");
        assert!(answer["result"].is_object(), "{answer}");
        assert_eq!(reader.next_message(), None);
    }
}

#[test]
fn token_of_an_open_request_of_the_session_is_refused() {
    let (chaos, broker) = broker(&json!({"on_call": {"echo": "hang"}}));
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let call = direct(&json!({"progressToken": 1}));
    let open = session.send(&json!(1), "tools/call", &call);
    chaos.await_events("a", "call", 1);
    let refused = session.ask(&json!(2), "tools/call", &call);
    assert_eq!(refused.json()["error"]["code"], -32602);
    for wrong in [json!(1.5), json!(["1"]), json!("x".repeat(1025))] {
        let call = direct(&json!({"progressToken": wrong}));
        let refused = session.ask(&json!(2), "tools/call", &call);
        let code = &refused.json()["error"]["code"];
        assert_eq!(code, -32602, "{}", refused.text());
    }
    drop(open);
}

#[test]
fn progress_extends_the_timeout_of_a_call_up_to_its_maximum() {
    // Each step is one second after the last one.
    fn steps(first: u64, last: u64, end: &Value) -> Value {
        let then = match first == last {
            true => end.clone(),
            false => json!({"delay_ms": 1000, "then": steps(first + 1, last, end)}),
        };
        json!({"progress": [{"progress": first}], "then": then})
    }
    let script = json!({"on_call": {
        "echo": steps(0, 4, &json!("ok")),
        "slow": steps(0, 60, &json!("ok")),
    }});
    let (_chaos, broker) = broker_of(&script, |config| {
        let overrides = &mut config["tree"][0]["source"]["tool_overrides"];
        overrides["echo"]["timeout"] = json!(3);
        overrides["slow"] = json!({"timeout": 3, "max_timeout": 5});
    });
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let meta = json!({"progressToken": 1});
    let (before, answer) = in_session(&session, &direct(&meta));
    assert_eq!(before.len(), 5);
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    let begun = Instant::now();
    let slow = json!({"name": "a-slow", "arguments": {"ms": 1}, "_meta": meta});
    let (_, answer) = in_session(&session, &slow);
    let text = answer["result"]["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("a text: {answer}"));
    assert!(
        text.contains("timeout") && text.contains("progress"),
        "{text}"
    );
    assert!(begun.elapsed() >= Duration::from_secs(5));
    // A call without a token gets no progress, so nothing extends its time.
    let silent = session.result("tools/call", &direct(&json!({})));
    assert_eq!(silent["isError"], true, "{silent}");
}

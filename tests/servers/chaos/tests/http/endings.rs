//! Responses that break off, never come, or never end.

use serde_json::{Value, json};

use crate::client::{Server, legacy_headers, text};

fn rule(fault: Value) -> Value {
    json!({"plain": true, "http": {"rules": [{"on": {"tool": "echo"}, "do": fault}]}})
}

#[test]
fn chaos_response_breaks_off_at_the_scripted_place() {
    let server = Server::start(&json!({"plain": true}));
    let whole = server.call("echo", json!({"text": "a"})).response().text();
    let mut count = 1;
    let mut broken = |fault: Value| {
        server.folder.write(&rule(fault.clone()));
        let (received, reset) = server.call("echo", json!({"text": "a"})).rest();
        count += 1;
        assert_eq!(server.end_of(count), "cut-off", "{fault}");
        (received, reset)
    };
    for end in ["close", "reset"] {
        let is_reset = end == "reset";
        let fault = |cut: Value| json!({"cut": cut, "end": end});
        assert_eq!(broken(json!(end)), (String::new(), is_reset));
        let (head, reset) = broken(fault(json!({"head": 12})));
        assert_eq!((head.as_str(), reset), ("HTTP/1.1 200", is_reset));
        let (head, reset) = broken(fault(json!("head")));
        assert!(
            head.starts_with("HTTP/1.1 200 OK\r\n") && !head.contains("\r\n\r\n"),
            "{head}"
        );
        assert_eq!(reset, is_reset);
        for (cut, length) in [(json!("body"), whole.len() / 2), (json!({"body": 3}), 3)] {
            let (all, reset) = broken(fault(cut));
            let (head, body) = all.split_once("\r\n\r\n").unwrap();
            assert!(
                head.contains(&format!("Content-Length: {}", whole.len())),
                "{head}"
            );
            assert_eq!((body, reset), (&whole[..length], is_reset));
        }
        let mut fault = fault(json!("event"));
        fault["reply"] = json!("sse");
        let (all, reset) = broken(fault);
        assert!(
            all.contains("data: {") && !all.contains("\n\n\r\n"),
            "{all}"
        );
        assert_eq!(reset, is_reset);
    }
    let calls = server.folder.events("call");
    assert_eq!(calls.len() as u64, count, "each was executed once");
}

#[test]
fn chaos_response_that_never_comes_waits_for_the_client() {
    let server = Server::start(&json!({}));
    let hangs = json!({"cut": "body", "end": "hang"});
    for (number, fault, bytes) in [(1, json!("hang"), 0), (2, hangs, 100)] {
        server.folder.write(&rule(fault));
        let mut call = server.call("echo", json!({"text": "a"}));
        let call_of = |calls: &[Value]| calls.iter().any(|call| call["request"] == number);
        server.folder.await_entries("call", call_of);
        call.at_least(bytes);
        call.leave();
        assert_eq!(server.end_of(number), "client-closed");
    }
}

#[test]
fn chaos_connection_ends_after_a_complete_response() {
    let server = Server::start(&json!({}));
    for (end, is_reset) in [("close", false), ("reset", true)] {
        server.folder.write(&rule(json!({"end": end})));
        let mut call = server.call("echo", json!({"text": "a"}));
        assert_eq!(text(&call.response().json()), r#"{"text":"a"}"#);
        assert_eq!(call.rest(), (String::new(), is_reset));
    }
    // A stream that stays open after the answer.
    server
        .folder
        .write(&rule(json!({"end": "hang", "reply": "sse"})));
    let mut stream = server.call("echo", json!({"text": "a"})).stream();
    assert_eq!(text(&stream.message()), r#"{"text":"a"}"#);
    stream.leave();
    assert_eq!(server.end_of(3), "client-closed");
}

#[test]
fn chaos_response_without_an_end_is_written_until_the_client_leaves() {
    let server = Server::start(&json!({}));
    for (number, (kind, expected)) in (1..).zip([
        ("interim", "HTTP/1.1 100 Continue\r\n\r\n"),
        ("header", "X-Endless: xxx"),
        ("headers", "X-Endless: x\r\nX-Endless: x\r\n"),
        ("spaces", "        "),
        ("json", r#""text":""#),
        ("event", "data: "),
        ("events", "data: {\"jsonrpc\""),
        ("comments", ": endless\n\n"),
    ]) {
        server
            .folder
            .write(&rule(json!({"endless": {"kind": kind}})));
        let mut call = server.call("echo", json!({"text": "a"}));
        let begun = call.at_least(2_000_000);
        assert!(begun.contains(expected), "{kind}: {}", &begun[..500]);
        call.leave();
        assert_eq!(server.end_of(number), "client-closed", "{kind}");
    }
}

#[test]
fn chaos_long_part_ends_and_the_answer_follows() {
    let server = Server::start(&json!({}));
    let long = |kind: &str| {
        let endless = json!({"kind": kind, "bytes": 100_000, "text": "{}"});
        server.folder.write(&rule(json!({"endless": endless})));
        server.call("echo", json!({"text": "a"}))
    };
    for kind in ["header", "headers", "spaces"] {
        let response = long(kind).response();
        assert_eq!(text(&response.json()), r#"{"text":"a"}"#, "{kind}");
    }
    assert_eq!(text(&long("json").response().json()).len(), 100_000);
    for kind in ["event", "events", "comments"] {
        let mut stream = long(kind).stream();
        let mut length = 0;
        loop {
            let event = stream.next().unwrap();
            if event.data.starts_with(r#"{"jsonrpc"#) {
                assert_eq!(text(&event.json()), r#"{"text":"a"}"#);
                break;
            }
            length += event.data.len() + event.comment.map_or(0, |comment| comment.len());
        }
        assert!(length >= 20_000, "{kind}: {length}");
        drop(stream.end());
    }
}

#[test]
fn chaos_stream_of_a_session_ends_as_scripted() {
    let rules = json!([
        {"on": {"http_method": "GET"}, "nth": 1, "do": {"open_ms": 0}},
        {"on": {"http_method": "GET"}, "nth": 2, "do": {"cut": {"body": 4}, "raw_before": ": comment"}},
        {"on": {"http_method": "GET", "resume": false}, "nth": 3, "do": {"status": 500}},
    ]);
    let server = Server::with_rules(rules);
    let session = server.open_session();
    let mut client = server.connect();
    client.get(&legacy_headers(&session));
    drop(client.stream().end());
    let mut client = server.connect();
    client.get(&legacy_headers(&session));
    let (all, _) = client.rest();
    assert!(all.ends_with("\r\n\r\n4\r\n: co\r\n"), "{all}");
    let mut client = server.connect();
    client.get(&legacy_headers(&session));
    assert_eq!(client.response().status, 500);
}

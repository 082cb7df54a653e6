//! Streams of events: notifications, ids, resumption, and their text.

use serde_json::json;

use crate::client::{Event, Server, legacy_headers, text};

#[test]
fn chaos_stream_of_a_session_receives_changes() {
    let server = Server::start(&json!({"notify": 0}));
    let session = server.open_session();
    let mut client = server.connect();
    client.get(&legacy_headers(&session));
    let mut stream = client.stream();
    assert_eq!(
        server.folder.await_events("stream", 1)[0]["session"],
        json!(session)
    );
    server.folder.write(&json!({"notify": 1}));
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    assert_eq!(stream.message(), changed);
    let mut call = server.legacy_call(&session, "notify", json!({}));
    assert_eq!(call.response().status, 200);
    assert_eq!(stream.message(), changed);
    stream.leave();
    assert_eq!(server.end_of(3), "client-closed");
}

#[test]
fn chaos_stream_is_resumed_after_the_last_event() {
    let call = json!({"progress": 2, "then": "ok"});
    let events = json!({"priming": true, "retry_ms": 5, "resume_after": 1});
    let rule = json!({"on": {"http_method": "POST", "tool": "echo"}, "do": {"reply": "sse", "events": events}});
    let script = json!({"plain": true, "on_call": {"echo": call}, "http": {"rules": [rule]}});
    let server = Server::start(&script);
    let session = server.open_session();
    let mut client = server.connect();
    let params = json!({
        "name": "echo", "arguments": {"text": "a"}, "_meta": {"progressToken": "t"},
    });
    client.legacy(&session, "tools/call", params);
    let mut stream = client.stream();
    let first = stream.next().unwrap();
    assert_eq!(
        (first.data.as_str(), first.retry.as_deref()),
        ("", Some("5"))
    );
    assert!(first.id.is_some());
    let progress = stream.next().unwrap();
    assert_eq!(progress.json()["params"]["progress"], 1);
    let mut client = stream.end();
    let last = progress.id.unwrap();
    for _ in 0..2 {
        let mut headers = legacy_headers(&session);
        headers.push(("Last-Event-ID", &last));
        client.get(&headers);
        let mut stream = client.stream();
        assert_eq!(stream.message()["params"]["progress"], 2);
        assert_eq!(text(&stream.message()), r#"{"text":"a"}"#);
        client = stream.end();
    }
    let mut headers = legacy_headers(&session);
    headers.push(("Last-Event-ID", "99-1"));
    client.get(&headers);
    assert_eq!(client.response().status, 400);
    assert_eq!(
        server.folder.events("call").len(),
        1,
        "it was executed once"
    );
}

#[test]
fn chaos_resumption_in_the_settings_applies_to_posts_only() {
    let events = json!({"priming": true, "resume_after": 0});
    let script = json!({"plain": true, "http": {"reply": "sse", "events": events}});
    let server = Server::start(&json!({}));
    let session = server.open_session();
    server.folder.write(&script);
    let mut stream = server
        .legacy_call(&session, "echo", json!({"text": "a"}))
        .stream();
    let first = stream.next().unwrap().id.unwrap();
    let mut client = stream.end();
    let mut headers = legacy_headers(&session);
    headers.push(("Last-Event-ID", &first));
    client.get(&headers);
    let mut stream = client.stream();
    assert_eq!(stream.next().unwrap().data, "");
    assert_eq!(text(&stream.message()), r#"{"text":"a"}"#);
    drop(stream.end());
}

#[test]
fn chaos_answer_of_a_broken_stream_is_resumed() {
    let rules = json!([
        {"on": {"tool": "echo"}, "do": {"events": {"priming": true}, "reply": "sse", "cut": "event"}},
    ]);
    let server = Server::with_rules(rules);
    let session = server.open_session();
    let call = server.legacy_call(&session, "echo", json!({"text": "a"}));
    let mut stream = call.stream();
    let first = stream.next().unwrap();
    assert!(stream.rest().0.contains("data: {"));
    let mut client = server.connect();
    let mut headers = legacy_headers(&session);
    headers.push(("Last-Event-ID", first.id.as_deref().unwrap()));
    client.get(&headers);
    assert_eq!(text(&client.stream().message()), r#"{"text":"a"}"#);
}

#[test]
fn chaos_events_have_the_scripted_text() {
    let server = Server::start(&json!({"plain": true}));
    for newline in ["\n", "\r\n", "\r"] {
        let events = json!({"newline": newline, "split": true, "comments": 2, "retry_ms": 9});
        let script = json!({"plain": true, "http": {"reply": "sse", "events": events}});
        server.folder.write(&script);
        let mut stream = server.call("echo", json!({"text": "a"})).stream();
        assert_eq!(stream.next().unwrap().retry.as_deref(), Some("9"));
        for comment in ["comment 1", "comment 2"] {
            let expected = Event {
                comment: Some(comment.to_owned()),
                ..Event::default()
            };
            assert_eq!(stream.next(), Some(expected));
        }
        let answer = stream.next().unwrap();
        assert!(answer.data.starts_with("{\n"), "{answer:?}");
        assert_eq!(text(&answer.json()), r#"{"text":"a"}"#);
        drop(stream.end());
    }
}

#[test]
fn chaos_messages_and_bytes_are_sent_before_the_answer() {
    let ask = json!({"jsonrpc": "2.0", "id": "s", "method": "ping"}).to_string();
    let fault = json!({
        "reply": "sse", "before": [ask, "not JSON"], "raw_before": "data: \u{ff}\n\nnonsense\n\n",
    });
    let server = Server::with_rules(json!([{"on": {"tool": "echo"}, "do": fault}]));
    let mut stream = server.call("echo", json!({"text": "a"})).stream();
    assert_eq!(stream.message()["method"], "ping");
    assert_eq!(stream.next().unwrap().data, "not JSON");
    drop(stream);
    let mut call = server.call("echo", json!({"text": "a"}));
    call.head();
    let until = "nonsense\n\n";
    let mut bytes = 1;
    while !call.at_least(bytes).contains(until) {
        bytes += 1;
    }
    // The invalid byte is replaced where the test reads text.
    assert!(call.at_least(1).contains("data: \u{fffd}\n\nnonsense"));
    // The stream of a session begins with the messages of its rule as well.
    let rule = json!({"on": {"http_method": "GET"}, "do": {"before": ["{}"], "open_ms": 0}});
    server.folder.write(&json!({"http": {"rules": [rule]}}));
    let session = server.open_session();
    let mut client = server.connect();
    client.get(&legacy_headers(&session));
    let mut stream = client.stream();
    assert_eq!(stream.next().unwrap().data, "{}");
    drop(stream.end());
}

#[test]
fn chaos_answers_are_changed_in_both_forms() {
    let server = Server::start(&json!({}));
    let script = |behaviour: &str, reply: &str| {
        json!({
            "plain": true, "on_call": {"echo": behaviour},
            "http": {"reply": reply},
        })
    };
    let echo = || server.call("echo", json!({"text": "a"}));
    server.folder.write(&script("wrong-id", "json"));
    assert_eq!(echo().response().json()["id"], 1_000_000_008);
    server.folder.write(&script("dup", "json"));
    let body = echo().response().text();
    let (first, second) = body.split_once('\n').unwrap();
    assert_eq!(first, second);
    server.folder.write(&script("dup", "sse"));
    let mut stream = echo().stream();
    assert_eq!(stream.message(), stream.message());
    drop(stream.end());
}

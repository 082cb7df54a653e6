//! The end of a right: keys that are revoked, expire or lose a group, while they are used.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use harness::figure::Watch;
use harness::mcp_http::EventReader;
use harness::{Broker, Response, read, refusal, wait_until};
use serde_json::{Value, json};

use crate::caller::{Key, Session, until_end};
use crate::stage::{Stage, scripted};

/// How long a stream may last after the right of its caller.
const STREAM_LIMIT: Duration = Duration::from_secs(1);
/// The time that the slow tool takes: longer than a reload.
const SLOW_MS: u64 = 2_000;

fn access() -> Value {
    json!({
        "groups": ["reader", "writer", "admin"],
        "rules": [
            {"allow": ["/a/**"], "to": ["reader"]},
            {"allow": ["/b/**"], "to": ["writer"]},
            {"allow": ["/**"], "to": ["admin"]},
        ],
        "operators": ["admin"],
    })
}

/// A broker, the key of `ada`, which reads and writes, and the key of another caller.
fn stage() -> (Stage, Key, Key) {
    stage_with(|_| {})
}

fn stage_with(change: impl FnOnce(&mut Value)) -> (Stage, Key, Key) {
    let (ada, root) = (
        Key::new("ada", &["reader", "writer"]),
        Key::new("root", &["admin"]),
    );
    let mut config = config();
    change(&mut config);
    let stage = Stage::with(config, &[&ada, &root], |run| run);
    for server in ["a", "b"] {
        let slow = json!({"plain": true, "on_call": {"add": {"delay_ms": SLOW_MS}}});
        stage.bench.script(server, &slow);
    }
    (stage, ada, root)
}

fn config() -> Value {
    let mut config = scripted(access());
    config["tree"][0]["source"]["max_in_flight"] = json!(8);
    config
}

fn sum() -> Value {
    json!({"a": 1, "b": 2})
}

fn text() -> Value {
    json!({"text": "x"})
}

/// Waits until a stream has ended; the time since `watch` began.
fn ended(stream: EventReader, watch: Watch) {
    let rest = until_end(stream);
    assert!(rest.is_empty(), "{rest:?}");
    let passed = watch.passed();
    assert!(passed < STREAM_LIMIT, "the stream lasted for {passed:?}");
}

fn unauthorized(reply: &Response) -> Value {
    refusal(reply, 401, "unauthorized")
}

/// A time of the config: now and some seconds.
fn in_seconds(seconds: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let time = now.expect("it is after 1970").as_secs() + seconds;
    let (mut days, of_day) = (time / 86_400, time % 86_400);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let day = days + 1;
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[test]
fn revoked_key_is_refused_and_its_session_and_streams_end() {
    let (stage, ada, root) = stage();
    let (caller, other) = (stage.caller(&ada), stage.caller(&root));
    let session = caller.session("/mcp/direct");
    let (stream, subscription) = (session.stream(), caller.subscription());
    let of_other = other.session("/mcp/direct");
    let sessions = || other.get("/sources").json()["mcp_sessions"].clone();
    assert_eq!(sessions(), 2);

    stage.keys(std::slice::from_ref(&root.entry));
    let watch = Watch::start();
    unauthorized(&caller.call("/a/echo", &text()));
    unauthorized(&caller.tree("/", 2));
    for reply in [
        session.ask("ping", &json!({})),
        session.delete(),
        session.refused_stream(),
    ] {
        assert_eq!(reply.status, 401, "{}", reply.text());
    }
    let modern = caller.modern("/mcp/direct", "tools/list", &json!({}));
    assert_eq!(modern.status, 401, "{}", modern.text());
    ended(stream, watch);
    ended(subscription, watch);
    wait_until("its session has ended", || sessions() == 1);
    assert!(of_other.result("ping", &json!({})).is_object());

    // The same key again is the same caller, in a new session.
    stage.keys(&[root.entry.clone(), ada.entry.clone()]);
    assert_eq!(session.ask("ping", &json!({})).status, 404);
    assert_eq!(caller.call("/a/echo", &text()).status, 200);
    assert!(of_other.result("ping", &json!({})).is_object());
}

#[test]
fn key_that_expires_is_refused_and_its_streams_end() {
    let (stage, ada, root) = stage();
    let mut short = ada.entry.clone();
    const LIFE: u64 = 5;
    short["not_after"] = json!(in_seconds(LIFE));
    let watch = Watch::start();
    stage.keys(&[short, root.entry.clone()]);
    let caller = stage.caller(&ada);
    let session = caller.session("/mcp/direct");
    let (stream, subscription) = (session.stream(), caller.subscription());
    let of_other = stage.caller(&root).subscription();
    // No call of the caller is needed for the end of its streams.
    for stream in [stream, subscription] {
        assert!(until_end(stream).is_empty());
    }
    let passed = watch.passed();
    assert!(
        passed < Duration::from_secs(LIFE) + STREAM_LIMIT,
        "{passed:?}"
    );
    unauthorized(&caller.call("/a/echo", &text()));
    assert_eq!(session.ask("ping", &json!({})).status, 401);
    drop(of_other);
    let mut past = ada.entry.clone();
    past["not_after"] = json!("2020-01-01T00:00:00Z");
    stage.keys(&[past, root.entry.clone()]);
    unauthorized(&caller.tree("/", 1));
}

#[test]
fn key_that_loses_a_group_is_decided_anew_and_its_session_ends() {
    let (stage, ada, root) = stage();
    let caller = stage.caller(&ada);
    let session = caller.session("/mcp/direct");
    let (stream, subscription) = (session.stream(), caller.subscription());
    assert_eq!(caller.call("/b/echo", &text()).status, 200);
    stage.keys(&[ada.in_groups(&["reader"]), root.entry.clone()]);
    let watch = Watch::start();
    refusal(&caller.call("/b/echo", &text()), 404, "path_not_found");
    assert_eq!(caller.call("/a/echo", &text()).status, 200);
    let tree = caller.tree("/", 1).json();
    assert_eq!(tree["children"].as_array().map(Vec::len), Some(1), "{tree}");
    ended(stream, watch);
    ended(subscription, watch);
    wait_until("the session has ended", || {
        session.ask("ping", &json!({})).status == 404
    });
    let again = caller.session("/mcp/direct");
    assert!(again.result("ping", &json!({})).is_object());
    let params = json!({"name": "b-echo", "arguments": text()});
    let unknown = again.ask("tools/call", &params).json();
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

#[test]
fn call_that_was_sent_runs_to_its_end_and_its_result_is_discarded() {
    let (stage, ada, root) = stage();
    let caller = stage.caller(&ada);
    let session = caller.session("/mcp/direct");
    let watch = Watch::start();
    let over_meta = caller.begin_call("/a/add", &sum());
    let params = json!({"name": "a-add", "arguments": sum()});
    let over_mcp = session.begin(&json!(7), "tools/call", &params);
    stage.await_journal("a", "call", 2);
    stage.keys(std::slice::from_ref(&root.entry));

    let error = unauthorized(&read(over_meta));
    assert_eq!(error["maybe_executed"], true, "{error}");
    assert!(
        watch.passed() >= Duration::from_millis(SLOW_MS),
        "it ran to its end"
    );
    let reply = read(over_mcp).text();
    assert!(
        !reply.contains("\"sum\"") && reply.contains("unauthorized"),
        "{reply}"
    );
    assert_eq!(stage.journal("a", "cancelled").len(), 0);
    assert_eq!(stage.journal("a", "call").len(), 2);
}

#[test]
fn messages_of_a_call_end_with_the_right_of_its_caller() {
    let (stage, ada, root) = stage();
    let after =
        json!({"delay_ms": SLOW_MS, "then": {"progress": [{"progress": 2, "message": "late"}]}});
    let script = json!({"progress": [{"progress": 1, "message": "early"}], "then": after});
    stage
        .bench
        .script("a", &json!({"plain": true, "on_call": {"add": script}}));
    let caller = stage.caller(&ada);
    let session = caller.session("/mcp/direct");
    let meta = json!({"progressToken": "t"});
    let params = json!({"name": "a-add", "arguments": sum(), "_meta": meta});
    let replies = [
        session.begin(&json!(7), "tools/call", &params),
        caller.open_modern("/mcp/direct", "tools/call", &params),
    ];
    let mut replies = replies.map(EventReader::open);
    for events in &mut replies {
        let first = events.next_message().expect("progress").to_string();
        assert!(first.contains("early"), "{first}");
    }
    stage.keys(std::slice::from_ref(&root.entry));
    for events in replies {
        let rest = json!(until_end(events)).to_string();
        assert!(
            rest.contains("unauthorized") && !rest.contains("late"),
            "{rest}"
        );
    }
    assert_eq!(
        stage.journal("a", "cancelled").len(),
        0,
        "it ran to its end"
    );
}

#[test]
fn call_that_was_sent_is_cancelled_if_the_config_says_so() {
    let cancels = |config: &mut Value| config["identities"]["on_revoke"] = json!("cancel");
    let (stage, ada, root) = stage_with(cancels);
    let caller = stage.caller(&ada);
    let slow = json!({"plain": true, "on_call": {"add": {"delay_ms": 600_000}}});
    stage.bench.script("a", &slow);
    let session = caller.session("/mcp/direct");
    let over_meta = caller.begin_call("/a/add", &sum());
    let params = json!({"name": "a-add", "arguments": sum()});
    let over_mcp = session.begin(&json!(7), "tools/call", &params);
    stage.await_journal("a", "call", 2);
    stage.keys(std::slice::from_ref(&root.entry));

    let error = unauthorized(&read(over_meta));
    assert_eq!(error["maybe_executed"], true, "{error}");
    let reply = read(over_mcp).text();
    assert!(reply.contains("unauthorized"), "{reply}");
    stage.await_journal("a", "cancelled", 2);
}

/// A call that waits for the only place of its server, behind one of another caller.
fn queued(broker: &Broker, of_other: &Session, session: &Session) -> [std::net::TcpStream; 2] {
    let params = json!({"name": "b-add", "arguments": sum()});
    let first = of_other.begin(&json!("first"), "tools/call", &params);
    let calls = || {
        let health = of_other.caller.get("/sources").json();
        let sources = health["sources"].as_array().cloned().unwrap_or_default();
        let b = sources.into_iter().find(|source| source["path"] == "/b");
        b.and_then(|b| b["counters"]["calls"].as_u64())
    };
    wait_until("the first call was begun", || calls() == Some(1));
    let second = session.begin(&json!("second"), "tools/call", &params);
    wait_until("the second call was begun", || calls() == Some(2));
    assert!(!broker.stderr().contains("ERROR"), "{}", broker.stderr());
    [first, second]
}

#[test]
fn call_that_waits_for_its_server_is_never_sent() {
    let (stage, ada, root) = stage();
    let session = stage.caller(&ada).session("/mcp/direct");
    let of_other = stage.caller(&root).session("/mcp/direct");
    let [first, second] = queued(&stage.broker, &of_other, &session);
    stage.await_journal("b", "call", 1);
    stage.keys(std::slice::from_ref(&root.entry));
    let reply = read(second).text();
    assert!(reply.contains("unauthorized"), "{reply}");
    assert!(!reply.contains("maybe_executed"), "it was not: {reply}");
    let reply = read(first).json();
    assert_eq!(reply["result"]["isError"], false, "{reply}");
    // The next call of the server comes after the one that waited.
    let echo = stage.caller(&root).call("/b/echo", &text());
    assert_eq!(echo.status, 200, "{}", echo.text());
    let tools = stage.journal("b", "call");
    let tools: Vec<_> = tools.iter().map(|call| &call["tool"]).collect();
    assert_eq!(tools, ["add", "echo"]);
}

#[test]
fn call_that_waits_for_its_server_is_never_sent_if_a_reload_denies_it() {
    let (stage, ada, root) = stage();
    let session = stage.caller(&ada).session("/mcp/direct");
    let of_other = stage.caller(&root).session("/mcp/direct");
    let [first, second] = queued(&stage.broker, &of_other, &session);
    stage.await_journal("b", "call", 1);
    let mut narrower = config();
    narrower["identities"]["keys_file"] = json!("keys.json");
    let rules = narrower["access"]["rules"].as_array_mut();
    let deny = json!({"deny": ["/b/add"], "to": ["writer"]});
    rules.expect("rules").push(deny);
    stage.bench.write("c.json", &narrower.to_string());
    stage.reload();
    let reply = read(second).text();
    assert!(reply.contains("path_not_found"), "{reply}");
    assert!(!reply.contains("maybe_executed"), "it was not: {reply}");
    let reply = read(first).json();
    assert_eq!(reply["result"]["isError"], false, "{reply}");
    let echo = stage.caller(&ada).call("/b/echo", &text());
    assert_eq!(echo.status, 200, "its other rights stay: {}", echo.text());
    let tools = stage.journal("b", "call");
    let tools: Vec<_> = tools.iter().map(|call| &call["tool"]).collect();
    assert_eq!(tools, ["add", "echo"]);
}

#[test]
fn reload_that_changes_nothing_of_a_key_ends_nothing_of_it() {
    let (stage, ada, root) = stage();
    let caller = stage.caller(&ada);
    let session = caller.session("/mcp/direct");
    let stream = session.stream();
    let running = caller.begin_call("/a/add", &sum());
    stage.await_journal("a", "call", 1);
    let more = Key::new("more", &["reader"]);
    stage.keys(&[more.entry.clone(), root.entry.clone(), ada.entry.clone()]);
    assert_eq!(stage.caller(&more).call("/a/echo", &text()).status, 200);
    let reply = read(running);
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(session.result("ping", &json!({})).is_object());
    assert_eq!(session.delete().status, 204);
    assert!(until_end(stream).is_empty());
}

#[test]
fn file_of_keys_that_cannot_be_used_keeps_the_keys_before() {
    let (stage, ada, _root) = stage();
    let unknown = json!({"keys": [ada.in_groups(&["no-such-group"])]});
    for keys in [unknown.to_string(), "{".to_owned()] {
        let refused = || stage.broker.stderr().matches("not reloaded").count();
        let before = refused();
        stage.bench.write("keys.json", &keys);
        stage.broker.signal("HUP");
        wait_until("the reload is refused", || refused() > before);
        assert_eq!(stage.caller(&ada).call("/a/echo", &text()).status, 200);
    }
}

//! One caller tries to learn of, or to disturb, what only another one has: its session, its calls, its events,
//! its cached replies.

use harness::mcp_http::{ACCEPT, EventReader};
use harness::{Chaos, Response, read};
use serde_json::{Value, json};

use crate::caller::{Caller, Key, Session, until_end};
use crate::stage::{Comparable, Stage, comparable};

/// A session id that no broker gave.
const NEVER: &str = "s1-00000000000000000000000000000000";

/// `ada` sees `/a/echo` and `/b/**`, `bob` sees `/a/add` and `/b/**`.
fn stage() -> (Stage, Caller, Caller) {
    let (stage, [ada, bob, _eve]) = stage_of_three();
    (stage, ada, bob)
}

/// The same, and `eve`, who sees `/a/fail` and `/b/**`.
fn stage_of_three() -> (Stage, [Caller; 3]) {
    let access = json!({
        "groups": ["ada", "bob", "eve"],
        "rules": [
            {"allow": ["/a/echo"], "to": ["ada"]},
            {"allow": ["/a/add"], "to": ["bob"]},
            {"allow": ["/a/fail"], "to": ["eve"]},
            {"allow": ["/b/**"], "to": ["ada", "bob", "eve"]},
        ],
        "anonymous": ["bob"],
    });
    let keys = ["ada", "bob", "eve"].map(|name| Key::new(name, &[name]));
    let stage = Stage::new(access, &keys.each_ref());
    let callers = keys.map(|key| stage.caller(&key));
    (stage, callers)
}

fn without_session_id(reply: &Response, id: &str) -> Comparable {
    let (status, headers, body) = comparable(reply);
    (status, headers, body.replace(id, "SESSION"))
}

#[test]
fn session_of_one_key_is_an_unknown_one_for_every_other_caller() {
    let (stage, ada, bob) = stage();
    let session = ada.session("/mcp/direct");
    let stream = session.stream();
    let never = Session {
        id: NEVER.to_owned(),
        ..session.clone()
    };
    let anonymous = Caller::with(stage.broker.address(), &[]);
    let list = json!({});
    let cancelled = json!({"requestId": 1});
    for other in [&bob, &anonymous] {
        let (taken, never) = (session.by(other), never.by(other));
        for ask in [
            |session: &Session, list: &Value, _: &Value| session.ask("tools/list", list),
            |session: &Session, list: &Value, _: &Value| session.ask("ping", list),
            |session: &Session, _: &Value, id: &Value| {
                session.notify("notifications/cancelled", id)
            },
            |session: &Session, _: &Value, _: &Value| session.refused_stream(),
            |session: &Session, _: &Value, _: &Value| session.delete(),
        ] {
            let (found, expected) = (
                ask(&taken, &list, &cancelled),
                ask(&never, &list, &cancelled),
            );
            assert_eq!(found.status, 404, "{}", found.text());
            assert_eq!(
                without_session_id(&found, &taken.id),
                without_session_id(&expected, NEVER)
            );
        }
    }
    assert!(session.result("ping", &json!({})).is_object(), "it goes on");
    assert_eq!(session.delete().status, 204);
    assert!(until_end(stream).is_empty());
}

#[test]
fn session_goes_on_with_the_same_key_in_another_header() {
    let (stage, ada, _bob) = stage();
    let session = ada.session("/mcp/direct");
    let key = ada.credential[0].1.trim_start_matches("Bearer ");
    let same = Caller::with(stage.broker.address(), &[("X-API-Key", key)]);
    assert!(session.by(&same).result("ping", &json!({})).is_object());
}

#[test]
fn cancellation_by_one_caller_reaches_no_call_of_another_one() {
    let (stage, ada, bob) = stage();
    let slow = json!({"plain": true, "on_call": {"echo": {"delay_ms": 1_000}}});
    stage.bench.script("b", &slow);
    let session = ada.session("/mcp/direct");
    let params = json!({"name": "b-echo", "arguments": {"text": "mine"}});
    let running = session.begin(&json!(7), "tools/call", &params);
    stage.await_journal("b", "call", 1);
    let of_bob = bob.session("/mcp/direct");
    let cancelled = json!({"requestId": 7, "reason": "no"});
    let method = "notifications/cancelled";
    assert_eq!(of_bob.notify(method, &cancelled).status, 202);
    assert_eq!(session.by(&bob).notify(method, &cancelled).status, 404);
    // The id of the request of another session is free in this one.
    let ping = read(of_bob.begin(&json!(7), "ping", &json!({})));
    assert_eq!(ping.status, 200, "{}", ping.text());
    let reply = read(running).json();
    assert!(reply["result"].to_string().contains("mine"), "{reply}");
    assert_eq!(stage.journal("b", "cancelled").len(), 0);
}

/// The messages of the reply to a call of `b-echo` with a token for its progress.
fn call_with_progress(session: &Session, text: &str) -> std::net::TcpStream {
    let meta = json!({"progressToken": "the same"});
    let params = json!({"name": "b-echo", "arguments": {"text": text}, "_meta": meta});
    session.begin(&json!(1), "tools/call", &params)
}

#[test]
fn progress_of_a_call_reaches_its_caller_only() {
    let (stage, ada, bob) = stage();
    let progress = json!({"progress": 3, "then": {"delay_ms": 300}});
    stage
        .bench
        .script("b", &json!({"plain": true, "on_call": {"echo": progress}}));
    assert!(ACCEPT.contains("text/event-stream"));
    let sessions = [ada, bob].map(|caller| caller.session("/mcp/direct"));
    let texts = ["of ada", "of bob"];
    let replies = [0, 1].map(|at| call_with_progress(&sessions[at], texts[at]));
    for (reply, text) in replies.into_iter().zip(texts) {
        let mut events = EventReader::open(reply);
        let mut steps = 0;
        let result = loop {
            let message = events.next_message().expect("an answer comes");
            match message["method"].as_str() {
                Some("notifications/progress") => steps += 1,
                Some(other) => panic!("{other}"),
                None => break message,
            }
        };
        assert_eq!(steps, 3, "{result}");
        assert!(result.to_string().contains(text), "{result}");
    }
}

/// The script of a server without these tools.
fn without(names: &[&str], generation: u64) -> Value {
    let mut tools = Chaos::tools();
    tools.retain(|tool| !names.iter().any(|name| tool["name"] == *name));
    json!({"plain": true, "tools": tools, "generation": generation})
}

/// Waits until a tool that a caller sees is withdrawn.
fn await_withdrawn(caller: &Caller, path: &str) {
    harness::wait_until(&format!("`{path}` is withdrawn"), || {
        !caller.describe(path).json()["withdrawn"].is_null()
    });
}

/// The number of messages of a stream until its end.
fn rest(stream: EventReader) -> usize {
    until_end(stream).len()
}

#[test]
fn change_of_the_list_reaches_only_callers_that_saw_it() {
    let (stage, [ada, bob, eve]) = stage_of_three();
    let sessions = [&ada, &bob].map(|caller| caller.session("/mcp/direct"));
    let mut streams = sessions.each_ref().map(Session::stream);
    let mut subscriptions = [&ada, &bob].map(Caller::subscription);
    let announced = |stream: &mut EventReader| {
        let message = stream.next_message().expect("the change is announced");
        assert_eq!(message["method"], "notifications/tools/list_changed");
    };
    // What `ada` sees is withdrawn, then what `bob` sees, then what only `eve` sees.
    stage.bench.script("a", &without(&["echo"], 1));
    announced(&mut streams[0]);
    announced(&mut subscriptions[0]);
    stage.bench.script("a", &without(&["echo", "add"], 2));
    await_withdrawn(&bob, "/a/add");
    announced(&mut streams[1]);
    announced(&mut subscriptions[1]);
    let gone = ["echo", "add", "fail"];
    stage.bench.script("a", &without(&gone, 3));
    await_withdrawn(&eve, "/a/fail");
    // Then what all see.
    stage.bench.script("b", &without(&["add"], 1));
    for stream in streams.iter_mut().chain(&mut subscriptions) {
        announced(stream);
    }
    for session in &sessions {
        assert_eq!(session.delete().status, 204);
    }
    assert_eq!(streams.map(rest), [0, 0], "no message more");
    let (status, log) = stage.broker.terminate();
    assert!(status.success(), "{log}");
    // The answer to a subscription is its last message.
    assert_eq!(subscriptions.map(rest), [1, 1], "no message more");
}

/// The replies that a caller of `/b` can compare over time: bodies and entity tags.
fn seen(caller: &Caller) -> Vec<(Option<String>, String)> {
    let replies = [
        caller.tree("/", 1),
        caller.tree("/", 16),
        caller.tree("/a", 1),
        caller.describe("/"),
        caller.describe("/a"),
        caller.describe("/a/add"),
        caller.describe("/a/echo"),
        caller.call("/a/echo", &json!({"text": "x"})),
        caller.call("/a/ech", &json!({"text": "x"})),
        caller.modern("/mcp/direct", "tools/list", &json!({})),
        caller.modern("/mcp/meta", "tools/list", &json!({})),
        caller.modern("/mcp/direct", "server/discover", &json!({})),
        caller.get("/readyz"),
        caller.get("/healthz"),
    ];
    let replies = replies.iter();
    let replies = replies.map(|reply| {
        let tag = reply.header("etag").map(str::to_owned);
        (tag, comparable(reply).2)
    });
    replies.collect()
}

#[test]
fn withdrawal_of_a_tool_changes_nothing_for_a_caller_that_may_not_use_it() {
    let (stage, ada, bob) = stage();
    let (before, of_ada) = (seen(&bob), seen(&ada));
    stage.bench.script("a", &without(&["echo"], 1));
    await_withdrawn(&ada, "/a/echo");
    let degraded = |seen: Vec<(Option<String>, String)>| -> Vec<_> {
        // The state of the broker as a whole is the same for all.
        let seen = seen.into_iter();
        seen.filter(|(_, body)| !body.contains("degraded"))
            .collect()
    };
    assert_eq!(degraded(seen(&bob)), degraded(before));
    assert_ne!(degraded(seen(&ada)), degraded(of_ada));
}

#[test]
fn entity_tags_of_two_classes_differ_and_replies_are_private() {
    let (stage, ada, bob) = stage();
    let tag = |reply: &Response| reply.header("etag").expect("a tag").to_owned();
    let (of_ada, of_bob) = (ada.tree("/b", 1), bob.tree("/b", 1));
    assert_eq!(of_ada.body, of_bob.body);
    assert_ne!(tag(&of_ada), tag(&of_bob));
    assert_eq!(tag(&ada.tree("/b", 1)), tag(&of_ada));
    let anonymous = Caller::with(stage.broker.address(), &[]);
    let replies = [
        of_ada,
        of_bob,
        anonymous.tree("/", 1),
        ada.describe("/nope"),
        ada.call("/a/add", &json!({})),
        ada.get("/readyz"),
        ada.modern("/mcp/direct", "tools/list", &json!({})),
        ada.modern("/mcp", "tools/call", &json!({"name": "nope"})),
    ];
    let digests: Vec<_> = replies
        .iter()
        .map(|reply| reply.header("x-catalog-digest"))
        .collect();
    assert!(
        digests.windows(2).all(|pair| pair[0] == pair[1]),
        "{digests:?}"
    );
    for reply in &replies {
        assert_eq!(reply.header("cache-control"), Some("private"));
        let vary = reply.headers.iter().filter(|(name, _)| name == "vary");
        let vary: Vec<_> = vary.map(|(_, value)| value.as_str()).collect();
        assert!(vary.contains(&"authorization, x-api-key"), "{vary:?}");
    }
    for caller in [&ada, &bob] {
        let list = caller.modern("/mcp/direct", "tools/list", &json!({}));
        assert_eq!(list.json()["result"]["cacheScope"], "private");
    }
}

//! The attacks through nginx and Caddy with the directives of `docs/proxies.md`, and what the page says about prefixes of
//! paths, streams and callers that disconnect.

use harness::callers::call_and_leave;
use harness::faults::{ECHO, FaultFixture, source};
use harness::figure::Watch;
use harness::mcp_http::{EventReader, McpSession, send_modern};
use harness::websocket::WebSocketClient;
use harness::{Run, Tap, access, binary, get, post};
use serde_json::{Value, json};

use super::page::{both, caddy, has_rows, nginx};
use super::{Outcomes, Target};

/// A header that the proxy adds to each request that it forwards. Caddy sorts headers, and the broker may refuse a long
/// head before it is complete, so the name is one of the first.
const MARK: &str = "A-Mark: yes";

/// Attacks whose end Caddy notices before the answer of the broker or after it.
const VARYING: [&str; 2] = ["fewer bytes than the length", "chunks without an end"];

/// Runs the attacks through nginx or Caddy, with a tap between proxy and broker: the broker sends one answer for each
/// request that the proxy forwards.
fn attacked_through(target: &Target, is_nginx: bool) -> Outcomes {
    let tap = Tap::start(target.broker.address());
    let (name, value) = MARK.split_once(": ").expect("a header");
    let proxy = match is_nginx {
        true => {
            let directive = format!("proxy_set_header {name} {value};\nproxy_http_version");
            nginx(tap.address(), |server| {
                server.replacen("proxy_http_version", &directive, 1)
            })
        }
        false => caddy(tap.address(), &format!("request_header {name} {value}")),
    };
    let mut reused = 0;
    let outcomes = target.attack_through(proxy.address(), |attack| {
        let counts = tap.counts(MARK);
        let more = counts.iter().any(|(requests, answers)| answers > requests);
        assert!(
            !more,
            "{attack}: the broker read more requests than the proxy sent: {counts:?}"
        );
        reused = counts
            .into_iter()
            .map(|(_, answers)| answers)
            .max()
            .unwrap_or(0);
    });
    assert!(
        reused > 2,
        "the proxy sends several requests on a connection"
    );
    let mut outcomes = outcomes;
    for (name, outcome) in outcomes.iter_mut().filter(|_| !is_nginx) {
        if VARYING.contains(&&**name) && ["200", "502"].contains(&&**outcome) {
            "200 or 502".clone_into(outcome);
        }
    }
    outcomes
}

#[test]
fn attacks_through_nginx_and_caddy_differ_as_the_page_says() {
    let target = Target::on("127.0.0.1:0");
    let direct = target.attack();
    let (nginx, caddy) = (
        attacked_through(&target, true),
        attacked_through(&target, false),
    );
    let mut rows = String::new();
    for (at, (name, direct)) in direct.iter().enumerate() {
        let (first, second) = (&nginx[at].1, &caddy[at].1);
        if direct != first || direct != second {
            rows.push_str(&format!("| {name} | {direct} | {first} | {second} |\n"));
        }
    }
    has_rows(&rows);
}

#[test]
fn chaos_client_through_proxies_affects_no_other_caller() {
    let stage = FaultFixture::new(&json!({}));
    for proxy in both(stage.broker.address()) {
        for mode in ["flood", "lies", "half-open", "leave"] {
            let mut args = vec![mode, proxy.address(), "--path", ECHO];
            args.extend(["--count", "32", "--seconds", "1"]);
            if access::is_on() {
                args.extend(["--key", access::KEY]);
            }
            let output = Run::new(&binary("chaos-client")).args(args).output();
            assert_eq!(output.code, Some(0), "{mode}: {}", output.stderr);
            let report: Value = serde_json::from_str(&output.stdout).expect("a line of JSON");
            if mode == "flood" {
                let all = json!({"200": 32});
                assert_eq!(report["answered"], all, "{}: {report}", proxy.log());
            }
            assert_eq!(stage.echo("served beside it").status, 200);
            stage.await_answer();
        }
    }
    stage.is_as_before();
}

#[test]
fn prefix_of_paths_is_removed_by_both_proxies() {
    let stage = FaultFixture::new(&json!({}));
    for proxy in both(stage.broker.address()) {
        let front = proxy.address();
        access::listens(front);
        for prefix in ["", "/tools"] {
            let ready = get(front, &format!("{prefix}/readyz"));
            assert_eq!(ready.status, 200, "{prefix}");
            let call = json!({"path": "/a/add", "args": {"a": 1, "b": 2}});
            let reply = post(front, &format!("{prefix}/meta_call"), &call);
            assert_eq!(reply.status, 200, "{prefix}: {}", reply.text());
            let session = McpSession::begin(front, &format!("{prefix}/mcp/direct"));
            let listed = session.result("tools/list", &json!({}));
            assert!(!listed["tools"].as_array().expect("tools").is_empty());
            let mut socket = WebSocketClient::connect(front, &format!("{prefix}/ws/mcp"));
            assert!(socket.result("ping", &json!({})).is_object());
        }
        assert_eq!(get(front, "/toolsx/readyz").status, 404);
        assert_eq!(get(front, "/tools/tools/readyz").status, 404);
    }
}

/// A broker whose tool `slow` sends a progress notification and then nothing, until a timeout of so many seconds.
fn hanging(timeout: u64) -> FaultFixture {
    let script = json!({"on_call": {"slow": {"progress": [{"progress": 1}], "then": "hang"}}});
    FaultFixture::with(&script, |config| {
        source(config, 0)["tool_overrides"]["slow"] =
            json!({"timeout": timeout, "max_timeout": timeout});
    })
}

/// The stream of a call of this tool through an address.
fn stream_of_a_call(front: &str, prefix: &str) -> EventReader {
    access::listens(front);
    let params = json!({"name": "a-slow", "arguments": {"ms": 1}, "_meta": {"progressToken": 1}});
    let route = format!("{prefix}/mcp/direct");
    EventReader::open(send_modern(front, &route, &json!(1), "tools/call", &params))
}

#[test]
fn events_pass_both_proxies_before_the_call_ends() {
    // A proxy that kept the event until then would exceed the patience of the reader.
    let stage = hanging(3600);
    let [first, second] = both(stage.broker.address());
    // Version 1.0 has no chunks; then nginx would keep events without the header.
    let third = nginx(stage.broker.address(), |server| {
        server.replacen("proxy_http_version 1.1;", "proxy_http_version 1.0;", 1)
    });
    let mut calls = 0;
    for proxy in [first, second, third] {
        for prefix in ["", "/tools"] {
            let mut events = stream_of_a_call(proxy.address(), prefix);
            let first = events.next_message().expect("a message");
            assert_eq!(first["method"], "notifications/progress", "{first}");
            // The client disconnects.
            drop(events);
            calls += 1;
            stage.chaos.await_count("a", "cancelled", calls);
        }
    }
    stage.is_as_before();
}

#[test]
fn events_are_kept_by_nginx_that_ignores_the_header() {
    let stage = hanging(1);
    let proxy = nginx(stage.broker.address(), |server| {
        let older = "proxy_http_version 1.0;\nproxy_ignore_headers X-Accel-Buffering;";
        server.replacen("proxy_http_version 1.1;", older, 1)
    });
    let watch = Watch::start();
    let mut events = stream_of_a_call(proxy.address(), "");
    let first = events.next_message().expect("a message");
    assert_eq!(first["method"], "notifications/progress", "{first}");
    let until_first = watch.passed();
    let last = events.next_message().expect("an answer");
    assert_eq!(last["id"], 1, "{last}");
    // The server sends the first message at once, and the broker the last one after the timeout of the call.
    let between = watch.passed() - until_first;
    assert!(
        between * 4 < until_first,
        "{until_first:?}, then {between:?}"
    );
}

#[test]
fn caller_that_disconnects_from_a_proxy_cancels_its_call() {
    let stage = FaultFixture::new(&json!({"on_call": {"echo": "hang"}}));
    let mut calls = 0;
    for proxy in both(stage.broker.address()) {
        access::listens(proxy.address());
        let caller = call_and_leave(proxy.address(), ECHO, &json!({"text": "x"}));
        calls += 1;
        stage.chaos.await_count("a", "call", calls);
        drop(caller);
        stage.chaos.await_count("a", "cancelled", calls);
    }
}

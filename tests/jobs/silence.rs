//! Streams of a job that reports nothing stay open, and a call of an owner without a free place goes on.

use std::io::{BufRead as _, BufReader};
use std::thread;
use std::time::Duration;

use harness::figure::Watch;
use harness::mcp_http::{McpSession, without_chunks};
use harness::{contains, send};
use serde_json::{Value, json};

use crate::stage::{Caller, bench, executed, serve};

/// The interval of comments, less the accuracy of a timer.
const MIN_SILENCE: Duration = Duration::from_millis(14_900);
/// The interval, and the delays of a busy machine.
const MAX_SILENCE: Duration = Duration::from_secs(25);

#[test]
fn silent_streams_of_a_job_have_a_sign_of_life_within_15_seconds() {
    let bench = bench(&json!({}), &json!({}));
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    let id = caller.make("long", json!({"n": 1}));
    caller.wait(&id, &["running"]);
    thread::scope(|scope| {
        // The longest interval of ticks is shorter than that of comments.
        let ticks = scope.spawn(|| {
            let ticks = format!("/v1/mcp/progress/{id}?max_ms=11000&interval_ms=");
            let refused = caller.get(&format!("{ticks}10001"));
            let answer = caller.get(&format!("{ticks}10000"));
            (refused.status, without_chunks(&answer.body))
        });
        let request = format!(
            "GET /jobs/{id}/events HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            broker.address()
        );
        let stream = BufReader::new(send(broker.address(), request.as_bytes()));
        let mut silent_since = Watch::start();
        for line in stream.lines() {
            let line = line.expect("the stream is open");
            if line.contains("event: ") {
                silent_since = Watch::start();
            }
            if line == ": keep-alive" {
                break;
            }
        }
        let silence = silent_since.passed();
        assert!(
            (MIN_SILENCE..MAX_SILENCE).contains(&silence),
            "{silence:?} without a comment"
        );
        let (refused, ticks) = ticks.join().expect("the ticks end");
        assert_eq!(refused, 400);
        assert_eq!(ticks.matches("data: ").count(), 2, "{ticks}");
    });
}

#[test]
fn long_call_of_an_owner_with_four_running_jobs_answers_its_result() {
    let jobs = json!({"store": "jobs.sqlite", "promote_after": 1});
    let bench = bench(&jobs, &json!({}));
    let mut script: Value = serde_json::from_str(&bench.read("a.json")).expect("JSON");
    script["on_call"]["slow"] = json!({"delay_ms": 2500});
    bench.script("a", &script);
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let slow = |n: u64| {
        let params = json!({"name": "a-slow", "arguments": {"n": n}});
        session.result("tools/call", &params)
    };
    let became = slow(1)["structuredContent"]["job_id"].clone();
    let id = became.as_str().expect("it is a job");
    caller.end(id);
    for n in 0..4 {
        let id = caller.make("long", json!({"n": n}));
        caller.wait(&id, &["running"]);
    }
    let answered = slow(2);
    assert_ne!(answered["isError"], true);
    let text = answered["content"][0]["text"].as_str().unwrap_or_default();
    contains(text, &["\"n\":2"]);
    assert_eq!(executed(&bench, "slow"), [1, 2]);
}

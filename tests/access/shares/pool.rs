//! The threads for long work on requests: callers take turns, and signatures of tokens wait for no arguments.

use std::sync::atomic::AtomicBool;
use std::thread;

use harness::figure::{figure, shown};
use harness::{Bench, Broker, node};
use serde_json::{Value, json};

use super::{Flood, Shared, keep_asking, percentile, times};
use crate::caller::{Caller, Key};
use crate::stage::serve;

/// The number of requests of a median.
const ASKED: usize = 40;

/// Arguments that a thread of the pool reads for some time.
fn costly() -> Value {
    let items: Vec<_> = (0..20_000).map(|number| json!({"": number})).collect();
    json!({"text": "x", "more": items})
}

#[test]
fn costly_arguments_of_one_caller_leave_turns_for_another() {
    let _machine = harness::whole_machine();
    let shared = Shared::new(&json!({"plain": true}));
    let [ada, bob, ..] = &shared.callers;
    let body = json!({"path": "/a/echo", "args": costly()}).to_string();
    let ask = |caller: &Caller| {
        let headers = [("Content-Type", "application/json")];
        caller.request("POST", "/meta_call", &headers, &body).status
    };
    let is_over = AtomicBool::new(false);
    let statuses: Vec<u16> = thread::scope(|scope| {
        let _flood = Flood::new(&is_over);
        // More than the places of the pool's queue.
        for _ in 0..100 {
            scope.spawn(|| {
                keep_asking(&is_over, || {
                    ask(ada);
                });
            });
        }
        harness::wait_until("the queue of the pool is full", || ask(ada) == 429);
        let asked = (0..10).map(|_| ask(bob));
        asked.collect()
    });
    assert!(statuses.iter().all(|status| *status != 429), "{statuses:?}");
}

/// The number of tools of the large catalog.
const TOOLS: usize = 5_000;

/// A broker over so many tools, with keys for two callers.
fn large() -> (Bench, Broker, [Caller; 2]) {
    let keys = ["ada", "bob"].map(|name| Key::new(name, &["all"]));
    let config = json!({
        "types": false,
        "tree": [node("a", json!({}))],
        "access": {"groups": ["all"], "rules": [{"allow": ["/**"], "to": ["all"]}]},
        "identities": {"keys": keys.each_ref().map(|key| key.entry.clone())},
    });
    let bench = Bench::new();
    let bulk = json!({"tools": TOOLS, "text": "1", "times": 1});
    bench.script("a", &json!({"plain": true, "bulk": bulk}));
    bench.write("c.json", &config.to_string());
    bench.lock();
    let broker = Broker::start_ready(serve(&bench));
    let callers = keys.each_ref().map(|key| key.at(broker.address()));
    (bench, broker, callers)
}

#[test]
fn unknown_paths_cost_other_callers_no_more_than_known_ones() {
    let _machine = harness::whole_machine();
    let (_bench, _broker, [ada, bob]) = large();
    let described = |path: fn(usize) -> String| {
        let paths: Vec<_> = (0..50).map(path).collect();
        json!({"paths": paths})
    };
    let known = described(|at| format!("/a/bulk-{at}"));
    let unknown = described(|at| format!("/a/bluk{at}-of-no-tool"));
    let reply = ada.post("/meta_desc", &unknown).text();
    let found: Value = serde_json::from_str(&reply).expect("JSON");
    let suggested = found["entries"].as_array().expect("a list").iter();
    let suggested = suggested.filter(|one| one["error"]["did_you_mean"].is_array());
    assert!(suggested.count() <= 5, "{reply}");
    let beside = |body: &Value| {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _flood = Flood::new(&is_over);
            for _ in 0..8 {
                scope.spawn(|| keep_asking(&is_over, || drop(ada.post("/meta_desc", body))));
            }
            times(ASKED, || {
                assert_eq!(bob.call("/a/add", &json!({"a": 1, "b": 2})).status, 200);
            })
        })
    };
    let (known, unknown) = (beside(&known), beside(&unknown));
    let (of_known, of_unknown) = (percentile(&known, 50), percentile(&unknown, 50));
    figure(
        "shares-unknown-paths",
        &format!(
            "{TOOLS} tools: p50 {} beside 8 connections that describe 50 known paths, {} beside unknown ones",
            shown(of_known),
            shown(of_unknown)
        ),
    );
    assert!(of_unknown <= of_known * 2, "{of_known:?}, {of_unknown:?}");
}

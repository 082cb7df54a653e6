//! Drift while the broker serves: single tools are withdrawn, stay visible with the reason, and come
//! back by themselves.

use std::thread;

use harness::figure::Watch;
use harness::{Broker, Chaos, refusal, wait_until};
use serde_json::{Value, json};

/// Text that only the live server has; it must never be served.
const LIVE: &str = "Sends it to another address";

fn plain(chaos: &Chaos) -> Broker {
    Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]))
}

fn tolerant(chaos: &Chaos) -> Broker {
    Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0", "--ignore-broken-tool"]))
}

fn drifted(generation: u64) -> Value {
    let tools = Chaos::tools_with("echo", |tool| {
        tool["description"] = json!(LIVE);
        tool["inputSchema"]["properties"]["to"] = json!({"type": "string"});
        tool["inputSchema"]["required"] = json!(["text", "to"]);
    });
    json!({"tools": tools, "generation": generation})
}

fn await_withdrawn(broker: &Broker, source: &str, count: u64) {
    let what = format!("{count} tools of {source} are withdrawn");
    wait_until(&what, || broker.source(source)["withdrawn"] == count);
}

fn describe(broker: &Broker, path: &str) -> Value {
    broker.post("/meta_desc", &json!({"path": path})).json()
}

fn echo(broker: &Broker) -> harness::Response {
    broker.call("/a/echo", json!({"text": "x"}))
}

/// Asserts that `/a/echo` is withdrawn with the reason in tree, description and call, and nothing else
/// changed.
fn only_echo_is_withdrawn(broker: &Broker, rules: &Value) {
    let description = describe(broker, "/a/echo");
    let withdrawn = &description["withdrawn"];
    let mut names: Vec<&str> = withdrawn
        .as_object()
        .expect("it is there")
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["class", "message", "rules", "since"], "{withdrawn}");
    assert_eq!(&withdrawn["rules"], rules, "{withdrawn}");
    assert!(
        withdrawn["since"]
            .as_str()
            .is_some_and(|since| since.ends_with('Z')),
        "{withdrawn}"
    );
    assert!(
        withdrawn["message"]
            .as_str()
            .is_some_and(|message| !message.is_empty()),
        "{withdrawn}"
    );
    for (path, depth) in [("/a", 1), ("/", 2)] {
        let tree = broker.post("/meta_tree", &json!({"path": path, "depth": depth}));
        assert!(!tree.text().contains(LIVE));
        let node = if depth == 1 {
            tree.json()
        } else {
            tree.json()["children"][0].clone()
        };
        for tool in node["children"].as_array().expect("a list") {
            let expected = if tool["path"] == "/a/echo" {
                withdrawn
            } else {
                &Value::Null
            };
            assert_eq!(&tool["withdrawn"], expected, "{tool}");
        }
    }
    assert_eq!(
        description["description"], "Echoes its arguments",
        "the reviewed text is served"
    );
    assert_eq!(
        description["args_schema"]["properties"],
        json!({"text": {"type": "string"}})
    );
    let calls = |source: &str| broker.source(source)["withdrawn"].clone();
    assert_eq!((calls("/a"), calls("/b")), (json!(1), json!(0)));
    // A start withdraws tools before their source is ready for calls.
    wait_until("the source is ready", || {
        broker.source("/a")["state"] == "ready"
    });
    let error = refusal(&echo(broker), 409, "tool_withdrawn");
    let details = &error["details"];
    assert_eq!(&details["rules"], rules);
    assert_eq!(details["expected"], description["digest"]);
    assert_eq!(
        (&error["path"], &error["maybe_executed"]),
        (&json!("/a/echo"), &json!(false))
    );
    let text = broker.result("/a/add", json!({"a": 2, "b": 3}))["content"][0]["text"].clone();
    assert_eq!(text, "5", "other tools work");
    broker.result("/b/echo", json!({"text": "x"}));
}

fn in_service(broker: &Broker) {
    await_withdrawn(broker, "/a", 0);
    assert_eq!(describe(broker, "/a/echo").get("withdrawn"), None);
    broker.result("/a/echo", json!({"text": "x"}));
}

#[test]
fn tolerant_start_withdraws_only_the_drifted_tool() {
    let chaos = Chaos::new();
    chaos.script("a", &drifted(0));
    let broker = tolerant(&chaos);
    only_echo_is_withdrawn(
        &broker,
        &json!(["input-required-added", "description-changed"]),
    );
    let details = refusal(&echo(&broker), 409, "tool_withdrawn")["details"].clone();
    assert_eq!(details["class"], "breaking");
    let found = details["found"]
        .as_str()
        .expect("the live form has a digest");
    assert!(
        found.starts_with("sha256/1:") && details["found"] != details["expected"],
        "{details}"
    );
    let calls = chaos.events("a", "call");
    assert!(calls.iter().all(|call| call["tool"] != "echo"), "{calls:?}");
}

#[test]
fn withdrawn_tool_is_restored_after_its_drift_ends() {
    let chaos = Chaos::new();
    chaos.script("a", &drifted(0));
    let broker = tolerant(&chaos);
    refusal(&echo(&broker), 409, "tool_withdrawn");
    chaos.script("a", &json!({"generation": 1}));
    in_service(&broker);
    assert_eq!(chaos.pids("a").len(), 1, "the server went on");
}

#[test]
fn tool_that_is_gone_is_withdrawn_without_a_live_digest() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"tools": Chaos::tools_without("echo")}));
    let broker = tolerant(&chaos);
    only_echo_is_withdrawn(&broker, &json!(["tool-gone"]));
    let details = refusal(&echo(&broker), 409, "tool_withdrawn")["details"].clone();
    assert_eq!(
        (&details["class"], &details["found"]),
        (&json!("gone"), &Value::Null)
    );
}

#[test]
fn source_without_any_listed_tool_is_withdrawn() {
    let chaos = Chaos::new();
    chaos.script("b", &json!({"tools": []}));
    let broker = tolerant(&chaos);
    await_withdrawn(&broker, "/b", 4);
    // The tools are withdrawn before the source changes its state.
    wait_until("the source is withdrawn", || {
        broker.source("/b")["state"] == "withdrawn"
    });
    assert_eq!(broker.source("/b")["tools"], 4);
    assert_eq!(broker.get("/readyz").status, 200);
}

#[test]
fn tolerant_start_serves_when_a_source_is_down() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"start_exit": 1}));
    let broker = tolerant(&chaos);
    broker.result("/b/echo", json!({"text": "x"}));
    let source = broker.source("/a");
    assert_eq!(
        (&source["withdrawn"], &source["cause"]),
        (&json!(0), &json!("exit_before_ready")),
        "{source}"
    );
    assert_eq!(
        describe(&broker, "/a/echo").get("withdrawn"),
        None,
        "what was not read has not drifted"
    );
    refusal(&echo(&broker), 503, "source_unavailable");
    chaos.script("a", &json!({}));
    wait_until("a call wakes it", || echo(&broker).status == 200);
}

#[test]
fn tolerant_start_admits_calls_after_the_verdict_of_their_source() {
    let chaos = Chaos::new();
    chaos.script("b", &json!({"on_method": {"tools/list": "hang"}}));
    let run = chaos.run("chaos-broker", &["127.0.0.1:0", "--ignore-broken-tool"]);
    let broker = Broker::start(run);
    wait_until("`/a` serves", || echo(&broker).status == 200);
    assert_eq!(broker.get("/readyz").status, 503);
    refusal(
        &broker.call("/b/echo", json!({"text": "x"})),
        503,
        "starting",
    );
}

#[test]
fn announced_drift_withdraws_the_tool_and_its_end_restores_it() {
    let chaos = Chaos::new();
    let broker = plain(&chaos);
    in_service(&broker);
    let executed = || {
        chaos
            .events("a", "call")
            .iter()
            .filter(|call| call["tool"] == "echo")
            .count()
    };
    assert_eq!(executed(), 1);
    chaos.script("a", &drifted(1));
    await_withdrawn(&broker, "/a", 1);
    only_echo_is_withdrawn(
        &broker,
        &json!(["input-required-added", "description-changed"]),
    );
    assert_eq!(executed(), 1);
    wait_until("the log reports it", || broker.stderr().contains("/a/echo"));
    let since = describe(&broker, "/a/echo")["withdrawn"]["since"].clone();
    // The same difference again: the time of the withdrawal stays.
    let lists = chaos.events("a", "list").len();
    chaos.script("a", &drifted(2));
    chaos.await_events("a", "list", lists + 1);
    assert_eq!(describe(&broker, "/a/echo")["withdrawn"]["since"], since);
    chaos.script("a", &json!({"generation": 3}));
    in_service(&broker);
    assert_eq!(broker.get("/readyz").status, 200);
}

#[test]
fn five_announced_changes_in_a_row_are_each_compared_at_once() {
    let chaos = Chaos::new();
    let broker = plain(&chaos);
    let watch = Watch::start();
    for change in 1..=5 {
        let is_drift = change % 2 == 1;
        let script = match is_drift {
            true => drifted(change),
            false => json!({"generation": change}),
        };
        chaos.script("a", &script);
        await_withdrawn(&broker, "/a", u64::from(is_drift));
    }
    // With a gap between listings that doubles, the last comparison would come after 15 s.
    let took = watch.passed();
    assert!(took.as_secs() < 10, "five comparisons within {took:?}");
}

#[test]
fn announcements_in_a_storm_cause_few_listings() {
    let chaos = Chaos::new();
    let broker = plain(&chaos);
    for _ in 0..60 {
        broker.result("/a/notify", json!({}));
    }
    assert_eq!(chaos.events("a", "list-changed").len(), 60);
    // Only the last of them counts.
    let lists = chaos.events("a", "list").len();
    assert!(lists < 30, "{lists} lists for 60 announcements");
    chaos.script("a", &drifted(1));
    await_withdrawn(&broker, "/a", 1);
    assert_eq!(chaos.pids("a").len(), 1);
}

#[test]
fn announced_drift_of_a_legacy_server_withdraws_the_tool() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"era": "legacy"}));
    let broker = plain(&chaos);
    let mut script = drifted(1);
    script["era"] = json!("legacy");
    chaos.script("a", &script);
    await_withdrawn(&broker, "/a", 1);
    chaos.script("a", &json!({"era": "legacy", "generation": 2}));
    in_service(&broker);
}

#[test]
fn server_restarted_after_a_crash_is_checked_again() {
    let chaos = Chaos::new();
    let broker = plain(&chaos);
    in_service(&broker);
    // No notification: only the new process lists something else.
    chaos.script("a", &drifted(0));
    refusal(
        &broker.call("/a/die", json!({"code": 9})),
        502,
        "source_exited",
    );
    wait_until("the drifted tool is refused", || {
        match echo(&broker).status {
            409 => true,
            status => {
                assert!(matches!(status, 502 | 503), "status {status}");
                false
            }
        }
    });
    only_echo_is_withdrawn(
        &broker,
        &json!(["input-required-added", "description-changed"]),
    );
    let second = chaos.pids("a")[1];
    let calls = chaos.events("a", "call");
    assert!(
        !calls
            .iter()
            .any(|call| call["pid"] == second && call["tool"] == "echo"),
        "{calls:?}"
    );
    chaos.script("a", &json!({}));
    refusal(
        &broker.call("/a/die", json!({"code": 9})),
        502,
        "source_exited",
    );
    in_service(&broker);
}

#[test]
fn instructions_changed_at_run_time_withdraw_nothing() {
    let chaos = Chaos::new();
    let broker = plain(&chaos);
    chaos.script("a", &json!({"instructions": LIVE}));
    refusal(
        &broker.call("/a/die", json!({"code": 0})),
        502,
        "source_exited",
    );
    wait_until("it is back", || echo(&broker).status == 200);
    assert_eq!(broker.source("/a")["withdrawn"], 0);
    wait_until("the log reports it", || {
        broker.stderr().contains("instructions")
    });
}

#[test]
fn optional_source_in_a_plain_start_is_withdrawn_by_tool() {
    let chaos = Chaos::new();
    let tools = Chaos::tools_with("echo", |tool| {
        tool["inputSchema"]["required"] = json!(["text", "to"]);
    });
    chaos.script("optional", &json!({"tools": tools}));
    let broker = plain(&chaos);
    await_withdrawn(&broker, "/optional", 1);
    let call = broker.call("/optional/echo", json!({"text": "x"}));
    refusal(&call, 409, "tool_withdrawn");
    assert_eq!(chaos.events("optional", "call"), Vec::<Value>::new());
}

/// A broker with a changed config of the source `/a`.
fn configured(chaos: &Chaos, change: impl FnOnce(&mut Value)) -> Broker {
    let compiled = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/chaos-broker/config.json"
    );
    let file = chaos.config(compiled, |config| change(&mut config["tree"][0]["source"]));
    Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0", &file]))
}

fn counter(broker: &Broker, name: &str) -> u64 {
    let sources = broker.get("/sources").json();
    let counter = sources["sources"][0]["counters"][name].as_u64();
    counter.expect("it is counted")
}

#[test]
fn announced_listing_that_is_late_refuses_new_calls() {
    let chaos = Chaos::new();
    let broker = configured(&chaos, |source| {
        source["tool_overrides"]["slow"]["timeout"] = json!(60);
    });
    thread::scope(|scope| {
        let under_way = scope.spawn(|| broker.call("/a/slow", json!({"ms": 13_000})));
        chaos.await_events("a", "call", 1);
        let tools = Chaos::tools_asking_more("echo");
        let withheld = json!({"generation": 1, "list_delay_ms": 16_000, "tools": tools});
        chaos.script("a", &withheld);
        wait_until("the listing is awaited", || {
            broker.source("/a")["cause"] == "recheck_pending"
        });
        assert_eq!(broker.source("/a")["state"], "starting");
        let refused = broker.call("/a/add", json!({"a": 1, "b": 2}));
        let error = refusal(&refused, 503, "source_unavailable");
        assert_eq!(error["details"]["cause"], "recheck_pending", "{error}");
        assert_eq!(error["retryable"], true, "{error}");
        broker.result("/b/echo", json!({"text": "x"}));
        let finished = under_way.join().expect("it ended");
        assert_eq!(finished.status, 200, "{}", finished.text());
    });
    wait_until("it serves again", || {
        broker.source("/a")["state"] == "ready"
    });
    let echo = broker.call("/a/echo", json!({"text": "x"}));
    refusal(&echo, 409, "tool_withdrawn");
    broker.result("/a/add", json!({"a": 1, "b": 2}));
    assert_eq!(
        (counter(&broker, "restarts"), chaos.pids("a").len()),
        (0, 1)
    );
}

#[test]
fn announced_listing_that_never_comes_restarts_the_server() {
    let chaos = Chaos::new();
    let broker = configured(&chaos, |source| source["startup_timeout"] = json!(2));
    let hangs = json!({"generation": 1, "on_method": {"tools/list": "hang"}});
    chaos.script("a", &hangs);
    wait_until("the listing is awaited", || {
        broker.source("/a")["cause"] == "recheck_pending"
    });
    chaos.script("a", &json!({"generation": 1}));
    wait_until("another process serves", || {
        broker.source("/a")["state"] == "ready"
    });
    broker.result("/a/echo", json!({"text": "x"}));
    assert_eq!(
        (counter(&broker, "restarts"), chaos.pids("a").len()),
        (1, 2)
    );
    wait_until("the log has the cause", || {
        broker.stderr().contains("list_failed")
    });
}

#[test]
fn drift_without_an_announcement_is_found_by_the_next_poll() {
    let chaos = Chaos::new();
    let broker = configured(&chaos, |source| source["relist_interval"] = json!(1));
    chaos.script("a", &json!({"tools": Chaos::tools_asking_more("echo")}));
    wait_until("the tool is withdrawn", || {
        broker.source("/a")["withdrawn"] == 1
    });
    assert_eq!(chaos.events("a", "list-changed"), Vec::<Value>::new());
    chaos.script("a", &json!({}));
    wait_until("the tool is back", || broker.source("/a")["withdrawn"] == 0);
    assert_eq!(counter(&broker, "restarts"), 0);
}

#[test]
fn drift_during_calls_admits_none_after_the_verdict() {
    let chaos = Chaos::new();
    let broker = configured(&chaos, |source| {
        source["tool_overrides"]["slow"]["timeout"] = json!(60);
    });
    let mut tools = json!(Chaos::tools_asking_more("slow"));
    let all = tools.as_array_mut().expect("a list");
    let changed = all.iter_mut().find(|tool| tool["name"] == "echo");
    changed.expect("it is there")["description"] = json!("Echoes its arguments\u{200b}");
    let answered = thread::scope(|scope| {
        let slow = [(); 4].map(|()| scope.spawn(|| broker.call("/a/slow", json!({"ms": 6000}))));
        chaos.await_events("a", "call", 4);
        let callers = [(); 4].map(|()| {
            scope.spawn(|| {
                let mut answered = 0;
                loop {
                    let call = broker.call("/a/echo", json!({"text": "x"}));
                    match call.status {
                        200 => answered += 1,
                        _ => {
                            let error = refusal(&call, 409, "tool_withdrawn");
                            assert_eq!(error["details"]["class"], "security", "{error}");
                            return answered;
                        }
                    }
                }
            })
        });
        let echoes = || chaos.events("a", "call").len() > 20;
        wait_until("calls are under way", echoes);
        chaos.script("a", &json!({"generation": 1, "tools": tools}));
        let answered: usize = callers
            .map(|one| one.join().expect("it ended"))
            .iter()
            .sum();
        let late = broker.call("/a/slow", json!({"ms": 1}));
        let error = refusal(&late, 409, "tool_withdrawn");
        assert_eq!(error["details"]["class"], "breaking", "{error}");
        for call in slow {
            let call = call.join().expect("it ended");
            assert_eq!(call.status, 200, "{}", call.text());
        }
        answered
    });
    // A caller that got the withdrawal reached no server, and every other answer was one call.
    for _ in 0..20 {
        refusal(&echo(&broker), 409, "tool_withdrawn");
    }
    let calls = chaos.events("a", "call");
    let executed = |name: &str| calls.iter().filter(|call| call["tool"] == name).count();
    assert_eq!((executed("echo"), executed("slow")), (answered, 4));
}

/// A reviewed tool that its server removes while a call of it runs.
fn tool_is_removed_during_its_call(era: &str) {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"era": era}));
    let broker = configured(&chaos, |source| {
        source["tool_overrides"]["slow"]["timeout"] = json!(120);
    });
    thread::scope(|scope| {
        // Longer than the list takes to be compared.
        let under_way = scope.spawn(|| broker.call("/a/slow", json!({"ms": 8000})));
        chaos.await_events("a", "call", 1);
        let tools = Chaos::tools_without("slow");
        chaos.script("a", &json!({"era": era, "generation": 1, "tools": tools}));
        await_withdrawn(&broker, "/a", 1);
        let next = broker.call("/a/slow", json!({"ms": 1}));
        let error = refusal(&next, 409, "tool_withdrawn");
        assert_eq!(error["details"]["class"], "gone", "{error}");
        assert_eq!(error["maybe_executed"], false, "{error}");
        // Nothing happens to the other tools meanwhile.
        broker.result("/a/echo", json!({"text": "x"}));
        broker.result("/b/echo", json!({"text": "x"}));
        assert!(!under_way.is_finished(), "the call was to be under way");
        let finished = under_way.join().expect("it ended");
        assert_eq!(finished.status, 200, "{}", finished.text());
    });
    broker.result("/a/add", json!({"a": 1, "b": 2}));
    let calls = chaos.events("a", "call");
    let slow = calls.iter().filter(|call| call["tool"] == "slow").count();
    assert_eq!(slow, 1, "{calls:?}");
    assert_eq!(
        (counter(&broker, "restarts"), chaos.pids("a").len()),
        (0, 1)
    );
    chaos.script("a", &json!({"era": era, "generation": 2}));
    await_withdrawn(&broker, "/a", 0);
    broker.result("/a/slow", json!({"ms": 1}));
}

#[test]
fn tool_removed_during_its_call_is_withdrawn_after_its_result() {
    thread::scope(|scope| {
        for era in ["legacy", "modern"] {
            scope.spawn(move || tool_is_removed_during_its_call(era));
        }
    });
}

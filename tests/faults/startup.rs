//! Starts that are slow, unusual or impossible, and the service meanwhile.

use harness::figure::{Watch, figure, shown};
use harness::{Broker, Chaos, refusal, wait_until};
use serde_json::json;

use harness::faults::{FaultFixture, config_args, signal, source};

fn start(chaos: &Chaos, startup_timeout: u64, args: &[&str]) -> Broker {
    let given = config_args(chaos, |config| {
        config["start_wait"] = json!(1);
        for at in 0..3 {
            config["tree"][at]["source"]["startup_timeout"] = json!(startup_timeout);
        }
    });
    let args: Vec<_> = given
        .iter()
        .map(String::as_str)
        .chain(args.iter().copied())
        .collect();
    Broker::start(chaos.run("chaos-broker", &args))
}

#[test]
fn slow_start_delays_no_other_source_and_is_extended_by_stderr() {
    let chaos = Chaos::new();
    // Longer than its timeout of 4 s, but with continuous output on stderr.
    let script = json!({"start_delay_ms": 6000, "stderr_flood": 1});
    chaos.script("a", &script);
    let watch = Watch::start();
    let broker = start(&chaos, 4, &["--ignore-broken-tool"]);
    let listed = broker.post("/meta_tree", &json!({"path": "/a"}));
    assert!(listed.text().contains("/a/echo"), "{}", listed.text());
    wait_until("the other source serves", || {
        broker.call("/b/add", json!({"a": 1, "b": 2})).status == 200
    });
    let other = watch.passed();
    assert_eq!(broker.source("/a")["state"], "starting");
    refusal(
        &broker.call("/a/add", json!({"a": 1, "b": 2})),
        503,
        "starting",
    );
    wait_until("the slow one serves", || {
        broker.source("/a")["state"] == "ready"
    });
    assert_eq!(chaos.pids("a").len(), 1, "it was left alone");
    figure(
        "F-29",
        &format!(
            "first call of another source {} after the start, the slow one ready after {}",
            shown(other),
            shown(watch.passed())
        ),
    );
}

#[test]
fn era_is_detected_for_each_reaction_to_the_probe() {
    for era in ["modern", "legacy", "both", "silent-probe"] {
        let watch = Watch::start();
        // The silent probe alone takes 10 s of this time.
        let stage = FaultFixture::with(&json!({"era": era}), |config| {
            for at in 0..3 {
                source(config, at)["startup_timeout"] = json!(60);
            }
        });
        stage.broker.result("/a/add", json!({"a": 1, "b": 2}));
        figure(
            &format!("F-54-{era}"),
            &format!("`{era}`: serves after {}", shown(watch.passed())),
        );
        stage.is_as_before();
    }
}

/// The lock has the modern era. A server that dies in it may be broken for a moment, and is not taken for an older one.
#[test]
fn server_that_dies_at_the_probe_of_its_locked_era_is_tried_in_that_era_only() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"era": "probe-dies"}));
    let broker = start(&chaos, 20, &["--ignore-broken-tool"]);
    wait_until("its failure is known", || {
        broker.source("/a")["cause"] == "exit_before_ready"
    });
    assert!(chaos.events("a", "discover").len() >= 2);
    assert_eq!(chaos.events("a", "initialize").len(), 0);
    wait_until("the others serve", || {
        broker.call("/b/add", json!({"a": 1, "b": 2})).status == 200
    });
}

#[test]
fn exit_before_the_handshake_is_reported_and_other_sources_serve() {
    for (script, cause) in [
        (json!({"start_exit": 0}), "exit_before_ready"),
        (
            json!({"start_exit": 7, "stderr_lines": ["no licence"]}),
            "exit_before_ready",
        ),
    ] {
        let chaos = Chaos::new();
        chaos.script("optional", &script);
        let watch = Watch::start();
        let broker = start(&chaos, 20, &[]);
        wait_until("it is known", || {
            broker.source("/optional")["cause"] == cause
        });
        let took = watch.passed();
        wait_until("the others serve", || {
            broker.call("/b/add", json!({"a": 1, "b": 2})).status == 200
        });
        figure(
            "F-04",
            &format!("known {} after the start of the broker", shown(took)),
        );
    }
}

#[test]
fn call_of_a_source_without_a_handshake_reports_the_cause() {
    let stage = FaultFixture::with(&json!({}), |config| {
        source(config, 2)["startup_timeout"] = json!(120);
        source(config, 2)["timeout"] = json!(1);
    });
    let hang = json!({"on_method": {"server/discover": "hang", "initialize": "hang"}});
    stage.chaos.script("optional", &hang);
    signal(stage.chaos.pids("optional")[0], "KILL");
    stage.chaos.await_events("optional", "discover", 2);
    assert_eq!(stage.broker.source("/optional")["state"], "starting");
    let reply = stage.broker.call("/optional/echo", json!({"text": "x"}));
    let error = refusal(&reply, 503, "source_unavailable");
    assert_eq!(error["details"]["cause"], "exited", "{error}");
    assert_eq!(error["maybe_executed"], false, "{error}");
    assert_eq!(error["retryable"], true, "{error}");
}

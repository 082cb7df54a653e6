//! A clock that jumps while a broker runs, by `faketime` on its process: finished jobs are kept for their time on the clock that
//! never jumps. A job whose tool is withdrawn ends after 10 minutes.

use std::path::PathBuf;
use std::time::Duration;

use harness::{Bench, Broker, refusal, wait_until};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::stage::{Caller, bench, executed, run};

/// The time for which the jobs of the test are kept.
const TTL: Duration = Duration::from_secs(6);
/// The time between two questions, with what a busy machine adds.
const SLACK: Duration = Duration::from_secs(2);

/// Returns the library of Debian's package `libfaketime`.
fn library() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").expect("a folder").flatten();
    let mut found = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    found
        .find(|file| file.exists())
        .expect("tests/proxies/install has installed faketime")
}

/// Sets the clock of the brokers in the folder, as a difference from the time of the machine.
fn set_clock(bench: &Bench, difference: &str) {
    bench.write("clock.draft", difference);
    std::fs::rename(bench.path("clock.draft"), bench.path("clock"))
        .expect("a rename within one folder");
}

fn serve(bench: &Bench) -> Broker {
    let clock = bench.path("clock");
    Broker::start_ready(
        run(bench)
            .env("LD_PRELOAD", library())
            .env("FAKETIME_TIMESTAMP_FILE", clock)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    )
}

/// Returns the day on which a job was made.
fn day(caller: Caller<'_>, id: &str) -> String {
    let created = caller.job(id)["created_at"].clone();
    let day = created.as_str().and_then(|time| time.get(..10));
    day.unwrap_or_else(|| panic!("a time: {created}"))
        .to_owned()
}

/// Waits until a job is deleted, and returns the time since `ended`.
fn life(caller: Caller<'_>, id: &str, ended: Instant) -> Duration {
    while caller.get(&format!("/jobs/{id}")).status == 200 {
        assert!(ended.elapsed() < 10 * TTL, "{id} is not deleted");
        std::thread::sleep(Duration::from_millis(50));
    }
    ended.elapsed()
}

#[test]
fn clock_that_jumps_a_day_deletes_no_result_early_and_keeps_none_longer_than_twice_its_time() {
    for (jump, is_restarted) in [("+1d", false), ("-1d", false), ("+1d", true), ("-1d", true)] {
        let bench = bench(&json!({"store": "jobs.sqlite"}), &json!({}));
        set_clock(&bench, "+0d");
        let mut broker = serve(&bench);
        let made = |broker: &Broker, ttl: u64| {
            let body = json!({"args": {"n": 1}, "mode": "async", "ttl_s": ttl});
            let made = Caller::of(broker).call("quick", body).json();
            let id = made["job_id"].as_str().expect("an id").to_owned();
            Caller::of(broker).end(&id);
            id
        };
        let long = made(&broker, 3_600);
        let short = made(&broker, TTL.as_secs());
        let ended = Instant::now();
        set_clock(&bench, jump);
        if is_restarted {
            let (status, log) = broker.terminate();
            assert!(status.success(), "{log}");
            broker = serve(&bench);
        }
        let caller = Caller::of(&broker);
        let later = made(&broker, 3_600);
        assert_ne!(day(caller, &long), day(caller, &later), "the clock jumped");
        let life = life(caller, &short, ended);
        assert!(life + SLACK / 2 >= TTL, "{jump}: deleted after {life:?}");
        assert!(life <= 2 * TTL + SLACK, "{jump}: deleted after {life:?}");
        for id in [&long, &later] {
            assert_eq!(caller.job(id)["status"], "succeeded", "{jump}: {id}");
        }
    }
}

#[test]
fn job_whose_tool_is_withdrawn_fails_after_10_minutes() {
    let bench = bench(&json!({"store": "jobs.sqlite"}), &json!({}));
    set_clock(&bench, "+0d");
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    // The four places of the owner are taken, so that the fifth job waits.
    let long: Vec<_> = (0..4)
        .map(|n| caller.make("long", json!({"n": n})))
        .collect();
    for id in &long {
        caller.wait(id, &["running"]);
    }
    let waiting = caller.make("quick", json!({"n": 9}));
    let mut script: Value = serde_json::from_str(&bench.read("a.json")).expect("JSON");
    script["tools"][0]["inputSchema"]["required"] = json!(["n"]);
    script["tools"][0]["description"] = json!("Deletes everything");
    script["tools"][0]["annotations"] = json!({"destructiveHint": true});
    script["generation"] = json!(1);
    bench.script("a", &script);
    wait_until("the tool is withdrawn", || {
        broker.source("/a")["withdrawn"] == 1
    });
    refusal(
        &caller.call("quick", json!({"args": {"n": 1}})),
        409,
        "tool_withdrawn",
    );
    for id in &long {
        caller.send("DELETE", &format!("/jobs/{id}"), &[], "");
        caller.end(id);
    }
    set_clock(&bench, "+9m");
    // Jobs are decided in their order: the one that waits was decided again before this one ran.
    let later = caller.make("slow", json!({"n": 10}));
    assert_eq!(caller.end(&later)["status"], "succeeded");
    assert_eq!(caller.job(&waiting)["status"], "queued");
    set_clock(&bench, "+11m");
    let ended = caller.end(&waiting);
    assert_eq!(ended["status"], "failed", "{ended}");
    assert_eq!(ended["error"]["code"], "tool_withdrawn", "{ended}");
    assert_eq!(executed(&bench, "quick"), [] as [i64; 0]);
}

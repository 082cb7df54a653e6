//! Jobs through crashes, restarts, and stores that cannot be used.

use std::collections::BTreeMap;
use std::fs;

use harness::{Run, binary, contains, wait_until};
use serde_json::json;

use crate::stage::{Caller, bench, executed, kill, run, serve};

#[test]
fn job_that_waited_runs_after_a_crash_and_one_that_was_sent_is_lost() {
    let bench = bench(&json!({"store": "jobs.sqlite"}), &json!({}));
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    let sent: Vec<_> = (0..4)
        .map(|n| caller.make("long", json!({"n": n})))
        .collect();
    wait_until("the server has the calls", || {
        executed(&bench, "long").len() == 4
    });
    let waiting = caller.make("quick", json!({"n": 9}));
    assert_eq!(caller.job(&waiting)["status"], "queued");
    kill(broker);

    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    for id in &sent {
        let job = caller.job(id);
        assert_eq!(
            (&job["status"], &job["maybe_executed"]),
            (&json!("lost"), &json!(true))
        );
        assert_eq!(job["error"]["code"], "job_lost");
        let lost = caller.get(&format!("/jobs/{id}/download"));
        assert_eq!((lost.status, lost.code().as_str()), (502, "job_lost"));
    }
    assert_eq!(caller.end(&waiting)["status"], "succeeded");
    assert_eq!(executed(&bench, "quick"), [9]);
    assert_eq!(executed(&bench, "long").len(), 4, "no call was sent twice");
}

#[test]
fn jobs_end_once_through_crashes_under_load() {
    let jobs = match std::env::var("MCP_BROKER_JOBS") {
        Ok(number) => number.parse().expect("a number"),
        Err(_) => 300,
    };
    let bench = bench(&json!({"store": "jobs.sqlite"}), &json!({}));
    let (mut ids, mut open, mut made) = (BTreeMap::new(), Vec::new(), 0);
    while made < jobs {
        let broker = serve(&bench);
        let caller = Caller::of(&broker);
        let next = jobs.min(made + 25);
        for n in made..next {
            let tool = if n % 2 == 0 { "slow" } else { "quick" };
            let id = caller.make(tool, json!({"n": n}));
            open.push(id.clone());
            ids.insert(id, n);
        }
        made = next;
        // At the kill some run and some wait.
        wait_until("jobs have ended", || {
            open.retain(|id| {
                let job = caller.job(id);
                ["queued", "running"]
                    .iter()
                    .any(|state| job["status"] == *state)
            });
            open.len() <= 20
        });
        kill(broker);
    }
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    let mut counts = BTreeMap::<String, usize>::new();
    let mut calls = executed(&bench, "slow");
    for (id, n) in &ids {
        let job = caller.end(id);
        let status = job["status"].as_str().expect("a state").to_owned();
        match status.as_str() {
            "succeeded" => {
                let result = caller.get(&format!("/jobs/{id}/download")).text();
                assert!(
                    result.contains(&format!("\\\"n\\\":{n},")),
                    "{id}: {result}"
                );
            }
            "lost" | "failed" => assert_eq!(job["maybe_executed"], true, "{job}"),
            other => panic!("{id} is {other}"),
        }
        *counts.entry(status).or_default() += 1;
    }
    calls.clear();
    for tool in ["slow", "quick"] {
        calls.extend(executed(&bench, tool));
    }
    let all = calls.len();
    calls.sort_unstable();
    calls.dedup();
    assert_eq!(calls.len(), all, "a job was executed twice: {counts:?}");
    assert_eq!(counts.values().sum::<usize>(), jobs, "{counts:?}");
}

#[test]
fn broker_that_ends_in_order_loses_no_job_that_was_not_sent() {
    let bench = bench(
        &json!({"store": "jobs.sqlite"}),
        &json!({"drain_timeout": 5}),
    );
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    let ids: Vec<_> = (0..12)
        .map(|n| caller.make("slow", json!({"n": n})))
        .collect();
    caller.end(&ids[0]);
    let (status, log) = broker.terminate();
    assert!(status.success(), "{log}");
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    for id in &ids {
        assert_eq!(caller.end(id)["status"], "succeeded");
    }
    let mut calls = executed(&bench, "slow");
    calls.sort_unstable();
    assert_eq!(calls, (0..12).collect::<Vec<_>>());
}

#[test]
fn second_broker_on_a_store_serves_calls_without_jobs() {
    let bench = bench(&json!({"store": "jobs.sqlite"}), &json!({}));
    let first = serve(&bench);
    let second = serve(&bench);
    let caller = Caller::of(&second);
    assert_eq!(caller.call("quick", json!({"args": {"n": 1}})).status, 200);
    assert_eq!(
        caller
            .call("quick", json!({"args": {"n": 2}, "mode": "auto"}))
            .status,
        200
    );
    let refused = caller.call("quick", json!({"mode": "async"}));
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (503, "store_unavailable")
    );
    assert_eq!(caller.get("/jobs").status, 503);
    contains(
        &second.stderr(),
        &["jobs are off", "jobs.sqlite", "is used by"],
    );
    let state = caller.get("/sources").json()["jobs"].clone();
    assert_eq!(state["state"], "store_in_use");
    contains(state["reason"].as_str().expect("a text"), &["is used by"]);
    let status = Run::new(&binary("mcp-broker"))
        .args(["status", second.address()])
        .output();
    assert_eq!(status.code, Some(1), "{}", status.stdout);
    let words: Vec<&str> = status.stdout.split_whitespace().collect();
    contains(
        &words.join(" "),
        &["Jobs are off (store_in_use)", "is used by"],
    );
    assert!(Caller::of(&first).get("/sources").json()["jobs"].is_null());
    let id = Caller::of(&first).make("quick", json!({"n": 3}));
    assert_eq!(Caller::of(&first).end(&id)["status"], "succeeded");
}

#[test]
fn damaged_store_turns_jobs_off_and_is_not_overwritten() {
    let bench = bench(&json!({"store": "jobs.sqlite"}), &json!({}));
    let damaged = "this is not a store of jobs\n".repeat(400);
    fs::write(bench.path("jobs.sqlite"), &damaged).expect("the file can be written");
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    assert_eq!(caller.call("quick", json!({"args": {"n": 1}})).status, 200);
    assert_eq!(caller.call("quick", json!({"mode": "async"})).status, 503);
    broker.terminate();
    assert_eq!(bench.read("jobs.sqlite"), damaged);

    let mut config: serde_json::Value = serde_json::from_str(&bench.read("c.json")).expect("JSON");
    config["jobs"]["required"] = json!(true);
    bench.write("c.json", &config.to_string());
    let refused = run(&bench).output();
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    contains(
        &refused.stderr,
        &["jobs_unusable", "/jobs/store", "jobs.sqlite"],
    );
    assert_eq!(bench.read("jobs.sqlite"), damaged);
}

//! The codes of jobs: each is produced by the real binary, in the test `CODE_is_returned_for_…`. A test of the meta API
//! compares them with the closed set of codes.

use std::fs;

use harness::{refusal, wait_until};
use serde_json::json;

use crate::stage::{Caller, KEYS, bench, executed, kill, serve};

#[test]
fn not_durable_is_returned_for_a_key_without_a_store() {
    let bench = bench(&json!({}), &json!({}));
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    let refused = caller.call_with("quick", json!({}), &[("Idempotency-Key", "k")]);
    let error = refusal(&refused, 422, "not_durable");
    assert_eq!(error["maybe_executed"], false, "{error}");
}

#[test]
fn idempotency_mismatch_is_returned_for_a_key_with_other_arguments() {
    let (name, key, digest) = KEYS[0];
    let keys = json!([{"name": name, "sha256": digest, "groups": []}]);
    let bench = bench(
        &json!({"store": "jobs.sqlite"}),
        &json!({"identities": {"keys": keys}}),
    );
    let broker = serve(&bench);
    let caller = Caller {
        broker: &broker,
        key: Some(key),
    };
    let header = [("Idempotency-Key", "k")];
    let body = |n: i64| json!({"args": {"n": n}, "mode": "async"});
    assert_eq!(caller.call_with("quick", body(1), &header).status, 202);
    refusal(
        &caller.call_with("quick", body(2), &header),
        409,
        "idempotency_mismatch",
    );
}

#[test]
fn job_not_found_is_returned_for_an_unknown_id() {
    let bench = bench(&json!({}), &json!({}));
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    refusal(&caller.get("/jobs/j_abc"), 404, "job_not_found");
}

#[test]
fn job_not_finished_is_returned_for_the_result_of_a_job_that_runs() {
    let bench = bench(&json!({}), &json!({}));
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    let id = caller.make("long", json!({"n": 1}));
    let answer = caller.get(&format!("/jobs/{id}/download"));
    let error = refusal(&answer, 409, "job_not_finished");
    assert_eq!(error["retryable"], true, "{error}");
}

#[test]
fn job_finished_is_returned_for_the_cancellation_of_a_job_that_has_ended() {
    let bench = bench(&json!({}), &json!({}));
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    let id = caller.make("quick", json!({"n": 1}));
    caller.end(&id);
    let answer = caller.send("DELETE", &format!("/jobs/{id}"), &[], "");
    let error = refusal(&answer, 409, "job_finished");
    assert_eq!(error["details"]["state"], "succeeded", "{error}");
}

#[test]
fn job_lost_is_returned_for_the_result_of_a_lost_job() {
    let bench = bench(&json!({"store": "jobs.sqlite"}), &json!({}));
    let broker = serve(&bench);
    let id = Caller::of(&broker).make("long", json!({"n": 1}));
    wait_until("the server has the call", || {
        executed(&bench, "long").len() == 1
    });
    kill(broker);
    let broker = serve(&bench);
    let answer = Caller::of(&broker).get(&format!("/jobs/{id}/download"));
    let error = refusal(&answer, 502, "job_lost");
    assert_eq!(error["maybe_executed"], true, "{error}");
}

#[test]
fn store_unavailable_is_returned_for_a_job_whose_store_cannot_be_used() {
    let bench = bench(&json!({"store": "jobs.sqlite"}), &json!({}));
    fs::write(bench.path("jobs.sqlite"), "not a store").expect("writable");
    let broker = serve(&bench);
    let answer = Caller::of(&broker).call("quick", json!({"mode": "async"}));
    let error = refusal(&answer, 503, "store_unavailable");
    assert_eq!(error["maybe_executed"], false, "{error}");
}

//! Jobs belong to the identity that made them.

use harness::Broker;
use serde_json::{Value, json};

use crate::stage::{Caller, KEYS, bench, executed, run, serve};

pub(crate) fn identities() -> Value {
    let keys = KEYS
        .iter()
        .map(|(name, _, digest)| json!({"name": name, "sha256": digest, "groups": [name]}));
    json!({
        "identities": {"keys": keys.collect::<Vec<_>>()},
        "access": {
            "groups": ["one", "two"],
            "rules": [{"allow": ["/**"], "to": ["one", "two"]}],
            "operators": ["two"],
        },
    })
}

#[test]
fn job_of_another_caller_is_unknown_and_operators_see_no_result() {
    let bench = bench(&json!({"store": "jobs.sqlite"}), &identities());
    let broker = serve(&bench);
    let of = |key| Caller {
        broker: &broker,
        key: Some(key),
    };
    let (one, two) = (of(KEYS[0].1), of(KEYS[1].1));
    let id = one.make("quick", json!({"n": 1}));
    one.end(&id);
    let hidden = two.make("quick", json!({"n": 2}));
    two.end(&hidden);
    for route in ["", "/events", "/download", "/manifest"] {
        let refused = one.get(&format!("/jobs/{hidden}{route}"));
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (404, "job_not_found"),
            "{route}"
        );
    }
    assert_eq!(
        one.send("DELETE", &format!("/jobs/{hidden}"), &[], "")
            .status,
        404
    );
    let listed = |caller: Caller<'_>| -> Vec<Value> {
        let page = caller.get("/jobs").json();
        page["jobs"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|job| job["job_id"].clone())
            .collect()
    };
    assert_eq!(listed(one), [json!(id)]);
    assert_eq!(
        listed(two),
        [json!(hidden), json!(id)],
        "an operator sees every job, the newest first"
    );
    assert_eq!(two.job(&id)["status"], "succeeded");
    for route in ["/events", "/download", "/manifest"] {
        assert_eq!(
            two.get(&format!("/jobs/{id}{route}")).status,
            404,
            "{route}"
        );
    }
    // An unknown caller learns nothing.
    let none = Caller::of(&broker);
    assert_eq!(none.get(&format!("/jobs/{id}")).status, 401);
}

#[test]
fn idempotency_key_makes_one_job_for_its_owner_and_path() {
    let bench = bench(&json!({"store": "jobs.sqlite"}), &identities());
    let broker = serve(&bench);
    let of = |key| Caller {
        broker: &broker,
        key: Some(key),
    };
    let (one, two) = (of(KEYS[0].1), of(KEYS[1].1));
    let body = |n: i64, mode: &str| json!({"args": {"n": n}, "mode": mode});
    let key = [("Idempotency-Key", "order-17")];
    let first = one.call_with("slow", body(1, "async"), &key);
    assert_eq!(
        (first.status, &first.json()["replayed"]),
        (202, &Value::Null)
    );
    let again = one.call_with("slow", body(1, "async"), &key);
    assert_eq!(
        (again.status, &again.json()["replayed"]),
        (202, &json!(true))
    );
    assert_eq!(again.json()["job_id"], first.json()["job_id"]);
    let id = first.json()["job_id"].as_str().expect("an id").to_owned();
    one.end(&id);
    let ended = one.call_with("slow", body(1, "async"), &key);
    assert_eq!(
        (ended.status, &ended.json()["replayed"]),
        (200, &json!(true))
    );
    assert_eq!(ended.json()["job_id"], id);
    assert!(
        ended.json()["result"]["content"].is_array(),
        "{}",
        ended.text()
    );
    let other = one.call_with("slow", body(2, "async"), &key);
    assert_eq!(
        (other.status, other.code().as_str()),
        (409, "idempotency_mismatch")
    );
    assert_eq!(other.json()["error"]["details"]["job_id"], id);
    // A call that waits for its result is a job as well; the key of another caller is another key.
    let waited = two.call_with("slow", body(7, "sync"), &key);
    assert_eq!(waited.status, 200, "{}", waited.text());
    assert_eq!(crate::stage::executed(&bench, "slow"), [1, 7]);
    let wrong = one.call_with("slow", body(1, "async"), &[("Idempotency-Key", "a b")]);
    assert_eq!(
        (wrong.status, wrong.code().as_str()),
        (400, "header_invalid")
    );
}

#[test]
fn key_is_refused_without_a_durable_store_or_a_credential() {
    let key = [("Idempotency-Key", "k")];
    for jobs in [json!({}), json!({"store": "jobs.sqlite"})] {
        let bench = bench(&jobs, &json!({}));
        let broker = serve(&bench);
        let refused = Caller::of(&broker).call_with("quick", json!({}), &key);
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (422, "not_durable"),
            "{jobs}"
        );
        assert_eq!(Caller::of(&broker).get("/jobs").json(), json!({"jobs": []}));
    }
}

#[test]
fn right_that_was_taken_closes_the_result() {
    let bench = bench(&json!({"store": "jobs.sqlite"}), &identities());
    let broker = serve(&bench);
    fn one(broker: &Broker) -> Caller<'_> {
        Caller {
            broker,
            key: Some(KEYS[0].1),
        }
    }
    let id = one(&broker).make("quick", json!({"n": 1}));
    one(&broker).end(&id);
    assert_eq!(
        one(&broker).get(&format!("/jobs/{id}/download")).status,
        200
    );
    broker.terminate();
    let mut config: Value = serde_json::from_str(&bench.read("c.json")).expect("JSON");
    config["access"]["rules"] = json!([{"allow": ["/**"], "to": ["two"]}]);
    bench.write("c.json", &config.to_string());
    bench.lock();
    let broker = serve(&bench);
    assert_eq!(one(&broker).job(&id)["status"], "succeeded");
    let closed = one(&broker).get(&format!("/jobs/{id}/download"));
    assert_eq!(
        (closed.status, closed.code().as_str()),
        (404, "path_not_found")
    );
}

#[test]
fn key_of_a_job_is_answered_from_the_store_while_its_source_is_down() {
    const KEY: [(&str, &str); 1] = [("Idempotency-Key", "order-1")];
    let bench = bench(&json!({"store": "jobs.sqlite"}), &identities());
    fn keyed(broker: &Broker) -> Caller<'_> {
        Caller {
            broker,
            key: Some(KEYS[0].1),
        }
    }
    let body = json!({"args": {"n": 1}});
    let broker = serve(&bench);
    let first = keyed(&broker).call_with("quick", body.clone(), &KEY);
    assert_eq!(first.status, 200, "{}", first.text());
    let (status, log) = broker.terminate();
    assert!(status.success(), "{log}");
    bench.write("a.json", "not a script");
    let broker = Broker::start(run(&bench));
    let caller = keyed(&broker);
    // While the source is awaited, and after its start has failed.
    for _ in 0..2 {
        for mode in ["sync", "async", "auto"] {
            let mut body = body.clone();
            body["mode"] = json!(mode);
            let again = caller.call_with("quick", body, &KEY);
            assert_eq!(again.status, 200, "{mode}: {}", again.text());
            assert_eq!(again.json()["replayed"], true, "{}", again.text());
            assert_eq!(again.json()["result"], first.json()["result"]);
        }
        let other = caller.call_with("quick", json!({"args": {"n": 2}}), &KEY);
        harness::refusal(&other, 409, "idempotency_mismatch");
        let without = caller.call("quick", body.clone());
        assert!(without.status >= 500, "{}", without.text());
    }
    // The right is decided as for each call.
    let mut hidden = body;
    hidden["path"] = json!("/a/quick");
    let stranger = Caller::of(&broker).call_with("quick", hidden, &KEY);
    assert_ne!(stranger.status, 200, "{}", stranger.text());
    assert_eq!(executed(&bench, "quick"), [1]);
}

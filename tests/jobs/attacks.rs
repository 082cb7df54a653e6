//! Attacks on jobs: ids that are guessed or belong to another caller, keys of other callers, and results that fill the store.

use std::fs;
use std::thread;

use harness::websocket::WebSocketClient;
use harness::{Broker, ResourceUsage};
use serde_json::{Value, json};

use crate::stage::{Caller, KEYS, bench, serve};

/// The bytes of a result that fills the store, a little less than a job may have.
const RESULT_BYTES: usize = 15 << 20;
/// The bytes of the store of that test; one owner has a quarter.
const STORE_BYTES: u64 = 256 << 20;
/// The maximum growth of the broker's memory under these results, in KiB.
const MAX_GROWTH: u64 = 512 << 10;
/// The ids that are guessed.
const GUESSES: u32 = 200;

/// Two callers, neither of whom is an operator.
fn identities() -> Value {
    let keys = KEYS
        .iter()
        .map(|(name, _, digest)| json!({"name": name, "sha256": digest, "groups": [name]}));
    json!({
        "identities": {"keys": keys.collect::<Vec<_>>()},
        "access": {
            "groups": ["one", "two"],
            "rules": [{"allow": ["/**"], "to": ["one", "two"]}],
        },
    })
}

fn caller(broker: &Broker, at: usize) -> Caller<'_> {
    Caller {
        broker,
        key: Some(KEYS[at].1),
    }
}

/// Returns the number of results that fill the store.
fn results() -> usize {
    let results = std::env::var("MCP_BROKER_LARGE_RESULTS");
    results.map_or(16, |results| results.parse().expect("a number"))
}

/// Returns the answers of every route of a job to a caller, without the ids of the requests.
fn answers(caller: Caller<'_>, id: &str) -> Vec<(String, u16, Value)> {
    let mut routes = Vec::new();
    for base in ["", "/v1"] {
        routes.push(("GET", format!("{base}/jobs/{id}")));
        routes.push(("DELETE", format!("{base}/jobs/{id}")));
        for end in [
            "manifest",
            "download",
            "download?part=0",
            "events",
            "events?after=0",
        ] {
            routes.push(("GET", format!("{base}/jobs/{id}/{end}")));
        }
    }
    routes.push(("GET", format!("/v1/mcp/progress/{id}")));
    let key = [("X-API-Key", caller.key.expect("a key"))];
    let mut answers = Vec::new();
    for (method, route) in routes {
        let answer = caller.send(method, &route, &[], "");
        let mut body = answer.json();
        body["error"]["request_id"].take();
        answers.push((route.replace(id, "ID"), answer.status, body));
    }
    for target in [
        format!("/ws/jobs/{id}"),
        format!("/v1/ws/jobs/{id}?after=1"),
    ] {
        let refused = WebSocketClient::try_connect(caller.broker.address(), &target, &key);
        let refused = refused.expect_err("it is refused");
        let mut body = refused.json();
        body["error"]["request_id"].take();
        answers.push((target.replace(id, "ID"), refused.status, body));
    }
    answers
}

#[test]
fn id_of_another_caller_is_answered_as_a_guessed_one_on_each_route() {
    let bench = bench(&json!({"store": "jobs.sqlite"}), &identities());
    let broker = serve(&bench);
    let (one, two) = (caller(&broker, 0), caller(&broker, 1));
    let ended = one.make("quick", json!({"n": 1}));
    one.end(&ended);
    let running = one.make("long", json!({"n": 2}));
    one.wait(&running, &["running"]);
    let guessed = answers(two, "j_aaaaaaaaaaaaaaaaaaaaaaaaaa");
    for (route, status, body) in &guessed {
        assert_eq!(*status, 404, "{route}");
        assert_eq!(body["error"]["code"], "job_not_found", "{route}");
    }
    assert_eq!(answers(two, &ended), guessed);
    assert_eq!(answers(two, &running), guessed);
    // An attempt to cancel it changed nothing.
    assert_eq!(one.job(&running)["status"], "running");
    // Ids near one that exists.
    let (head, tail) = ended.split_at(ended.len() - 2);
    for guess in 0..GUESSES {
        let digits = b"abcdefghijklmnopqrstuvwxyz234567";
        let at = |shift: u32| char::from(digits[(guess >> shift) as usize % digits.len()]);
        let id = format!("{head}{}{}", at(5), at(0));
        if id == ended || tail.is_empty() {
            continue;
        }
        assert_eq!(one.get(&format!("/jobs/{id}")).status, 404, "{id}");
    }
    // The tool of a model knows only the jobs of its caller as well.
    let params = json!({"name": "job", "arguments": {"id": ended}});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let answer = two.send("POST", "/v1/mcp", &[], &request.to_string());
    assert!(answer.text().contains("job_not_found"), "{}", answer.text());
}

#[test]
fn idempotency_key_of_another_caller_reveals_no_job() {
    let bench = bench(&json!({"store": "jobs.sqlite"}), &identities());
    let broker = serve(&bench);
    let (one, two) = (caller(&broker, 0), caller(&broker, 1));
    let key = [("Idempotency-Key", "invoice-2026-11")];
    let body = |n: i64| json!({"args": {"n": n}, "mode": "async"});
    let first = one.call_with("quick", body(1), &key).json();
    let id = first["job_id"].as_str().expect("an id").to_owned();
    one.end(&id);
    // Neither the same arguments replay it, nor do others conflict with it.
    for n in [1, 2] {
        let path_of = |caller: Caller<'_>| caller.call_with("quick", body(n), &key);
        let made = path_of(two);
        match n {
            1 => {
                assert_eq!(made.status, 202, "{}", made.text());
                assert!(made.json().get("replayed").is_none(), "{}", made.text());
                let own = made.json()["job_id"].as_str().expect("an id").to_owned();
                assert_ne!(own, id);
                two.end(&own);
            }
            // It conflicts with the caller's own job only.
            _ => {
                assert_eq!(made.code(), "idempotency_mismatch");
                assert_ne!(made.json()["error"]["details"]["job_id"], id);
            }
        }
    }
    let again = one.call_with("quick", body(1), &key);
    assert_eq!((again.status, &again.json()["job_id"]), (200, &json!(id)));
    assert_eq!(crate::stage::executed(&bench, "quick"), [1, 1]);
}

#[test]
fn large_results_stay_within_the_bound_of_their_owner_and_of_the_memory() {
    let jobs = json!({"store": "jobs.sqlite", "store_bytes": STORE_BYTES});
    let bench = bench(&jobs, &identities());
    let mut script: Value = serde_json::from_str(&bench.read("a.json")).expect("JSON");
    let text = "x".repeat(RESULT_BYTES);
    let block = json!({"type": "text", "text": text});
    script["on_call"]["long"] = json!({"result": {"content": [block]}});
    bench.script("a", &script);
    let broker = serve(&bench);
    let (one, two) = (caller(&broker, 0), caller(&broker, 1));
    let kept = two.make("quick", json!({"n": 1}));
    two.end(&kept);
    let before = ResourceUsage::measure(broker.pid()).resident;
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..results() / 4 {
                    let id = one.make("long", json!({"n": n}));
                    assert_eq!(one.end(&id)["status"], "succeeded");
                }
            });
        }
    });
    let usage = ResourceUsage::measure(broker.pid());
    let grown = usage.peak.saturating_sub(before);
    assert!(grown < MAX_GROWTH, "{grown} KiB");
    // The newest results are there, and the oldest made room for them.
    let page = one.get("/jobs?limit=100").json();
    let jobs = page["jobs"].as_array().expect("a list");
    assert_eq!(jobs.len(), results());
    let stored: u64 = jobs
        .iter()
        .filter_map(|job| job["result_bytes"].as_u64())
        .sum();
    assert!(stored > STORE_BYTES / 8, "{stored} bytes");
    assert!(stored <= STORE_BYTES / 4, "{stored} bytes");
    let file = fs::metadata(bench.path("jobs.sqlite")).expect("a store");
    assert!(file.len() <= STORE_BYTES, "{} bytes", file.len());
    let oldest = jobs.last().expect("jobs")["job_id"]
        .as_str()
        .expect("an id");
    assert_eq!(one.get(&format!("/jobs/{oldest}/download")).status, 502);
    // Another owner is not touched.
    assert_eq!(two.get(&format!("/jobs/{kept}/download")).status, 200);
}

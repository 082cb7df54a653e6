//! Arguments that are costly to check: refused within the step budget, while others are answered.

use std::thread;

use harness::{Broker, Chaos, refusal};
use serde_json::{Value, json};

/// Requests at one time.
const REQUESTS: usize = 8;

/// The tools from which the lock was made.
fn tools() -> Value {
    serde_json::from_str(include_str!("../../budget-broker/tools.json")).expect("JSON")
}

fn started() -> (Chaos, Broker) {
    let chaos = Chaos::new();
    chaos.script("t", &json!({"tools": tools()}));
    let broker = Broker::start_ready(chaos.serve("budget-broker", &["127.0.0.1:0"]));
    (chaos, broker)
}

/// `{"not": {"not": … innermost}}` of this depth.
fn nested(depth: usize, innermost: Value) -> Value {
    (0..depth).fold(innermost, |inner, _| json!({"not": inner}))
}

#[test]
fn costly_arguments_are_refused_while_health_is_answered() {
    let (_chaos, broker) = started();
    let costly = [
        ("/t/filter", json!({"filter": nested(60, json!({"eq": 1}))})),
        ("/t/chain", json!({"filter": nested(40, json!("good"))})),
        ("/t/all_of", json!({"filter": nested(20, json!(1))})),
        ("/t/branches", json!({"list": vec![json!("no"); 8000]})),
    ];
    thread::scope(|scope| {
        let calls: Vec<_> = (0..REQUESTS)
            .map(|at| {
                let (path, args) = &costly[at % costly.len()];
                let broker = &broker;
                scope.spawn(move || broker.call(path, args.clone()))
            })
            .collect();
        // As long as any of them is under way, and at least once.
        loop {
            assert_eq!(broker.get("/healthz").status, 200);
            if calls.iter().all(thread::ScopedJoinHandle::is_finished) {
                break;
            }
        }
        for call in calls {
            refusal(&call.join().expect("a response"), 422, "args_invalid");
        }
    });
}

#[test]
fn costly_arguments_over_the_budget_are_refused_with_the_place() {
    let (_chaos, broker) = started();
    let response = broker.call("/t/chain", json!({"filter": nested(40, json!("good"))}));
    refusal(&response, 422, "args_invalid");
    let error = &response.json()["error"];
    let first = &error["details"]["errors"][0];
    assert_eq!(first["keyword"], "budget", "{error}");
    let pointer = first["pointer"].as_str().expect("a pointer");
    assert!(pointer.starts_with("/filter/not"), "{pointer}");
    assert_eq!(error["details"]["more"], true);
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|text| text.contains("send fewer")),
        "{error}"
    );
    assert!(!response.text().contains("good"), "no value is shown");
}

#[test]
fn costly_arguments_error_is_short() {
    let (_chaos, broker) = started();
    let response = broker.call("/t/all_of", json!({"filter": nested(20, json!(1))}));
    refusal(&response, 422, "args_invalid");
    let details = &response.json()["error"]["details"];
    assert_eq!(details["errors"].as_array().map(Vec::len), Some(20));
    assert_eq!(details["more"], true);
    assert!(response.text().len() < 16 << 10);
}

//! The memory of one request whose parsed arguments are many times larger than their text.

use harness::figure::figure;
use harness::{Broker, Chaos, ResourceUsage, Response, post_bytes, raw, refusal};
use serde_json::{Value, json};

/// Memory that one request may add to the process at its peak, in KiB.
const MAX_GROWTH: u64 = 128 << 10;
/// The maximum length of a body.
const MAX_BODY: usize = 4 << 20;
/// The maximum number of values in the arguments of a call.
const MAX_VALUES: usize = 1_000_000;

struct Fixture {
    _chaos: Chaos,
    broker: Broker,
    before: ResourceUsage,
}

fn started() -> Fixture {
    let chaos = Chaos::new();
    let tools: Value =
        serde_json::from_str(include_str!("../../budget-broker/tools.json")).expect("JSON");
    chaos.script("t", &json!({"tools": tools}));
    let broker = Broker::start_ready(chaos.serve("budget-broker", &["127.0.0.1:0"]));
    let before = ResourceUsage::measure(broker.pid());
    Fixture {
        _chaos: chaos,
        broker,
        before,
    }
}

impl Fixture {
    /// Calls `tool` with this many `element`s in a list.
    fn call(&self, tool: &str, element: &str, count: usize) -> Response {
        let elements = vec![element; count].join(",");
        let args = format!(r#"{{"text":"x","list":[{elements}]}}"#);
        let body = format!(r#"{{"path":"/t/{tool}","args":{args}}}"#);
        assert!(body.len() <= MAX_BODY);
        let address = self.broker.address();
        raw(address, &post_bytes(address, "/meta_call", &body))
    }

    /// The growth of the broker at its peak, in KiB.
    fn grown(&self) -> u64 {
        let peak = ResourceUsage::measure(self.broker.pid()).peak;
        peak.saturating_sub(self.before.resident)
    }
}

/// The maximum number of elements in a body and in the arguments of a call.
fn most(element: &str, values: usize) -> usize {
    ((MAX_BODY - 100) / (element.len() + 1)).min((MAX_VALUES - 10) / values)
}

/// An upper estimate of the `refused` elements for which the budget has room.
fn admissible(error: &Value, refused: usize) -> usize {
    let [needed, limit] = ["needed_bytes", "limit_bytes"].map(|name| {
        let figure = error["details"][name].as_u64().expect("a figure");
        usize::try_from(figure).expect("a size")
    });
    assert!(needed > limit, "{error}");
    (refused * limit / needed * 5 / 4).min(refused - refused / 100)
}

#[test]
fn request_over_the_memory_limit_is_refused_before_it_is_parsed() {
    let stage = started();
    let element = r#"{"":0}"#;
    let response = stage.call("plain", element, most(element, 2));
    refusal(&response, 413, "body_too_large");
    let grown = stage.grown();
    // The body, twice while it grows.
    assert!(grown <= 16 << 10, "{grown} KiB");
    figure(
        "request-refused",
        &format!("a refused body of 4 MiB of {element}: {grown} KiB more at the peak"),
    );
}

#[test]
fn arguments_of_more_than_a_million_values_are_refused() {
    let stage = started();
    // The arguments themselves, the text and the list are values too.
    assert_eq!(stage.call("plain", "0", MAX_VALUES - 3).status, 200);
    let response = stage.call("plain", "0", MAX_VALUES - 2);
    let error = refusal(&response, 422, "args_invalid");
    let first = &error["details"]["errors"][0];
    assert_eq!(first["keyword"], "budget", "{error}");
    assert_eq!(first["expected"], "at most 1000000 values");
    assert_eq!(first["got"], "1000001 values");
}

#[test]
fn request_of_the_worst_shape_stays_within_the_memory_limit() {
    let _machine = harness::whole_machine();
    let requests = [
        // Sent to the server.
        ("plain", 200, r#"{"":0}"#, 2),
        ("plain", 200, "[0]", 2),
        ("plain", 200, "[]", 1),
        ("plain", 200, "{}", 1),
        ("plain", 200, "\"a\"", 1),
        // Refused with reasons.
        ("branches", 422, r#"{"":0}"#, 2),
    ];
    for (at, (tool, status, element, values)) in requests.into_iter().enumerate() {
        let stage = started();
        let mut count = most(element, values);
        let mut response = stage.call(tool, element, count);
        if response.status == 413 {
            count = admissible(&response.json()["error"], count);
            response = stage.call(tool, element, count);
        }
        while response.status == 413 {
            count -= count / 100;
            response = stage.call(tool, element, count);
        }
        assert_eq!(response.status, status, "{element}: {}", response.text());
        let grown = stage.grown();
        assert!(
            grown <= MAX_GROWTH,
            "{tool}: {grown} KiB for {count} of {element}"
        );
        figure(
            &format!("request-{at}"),
            &format!(
                "{tool}: {count} of {element}: {} MiB more at the peak",
                grown >> 10
            ),
        );
    }
}

//! Odd tools in the list of a running server: they cost themselves, and no other tool and no process.

use harness::{Broker, Chaos, contains, refusal, wait_until};
use serde_json::{Value, json};

fn broker(chaos: &Chaos) -> Broker {
    Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]))
}

/// The script with all reviewed tools and these raw elements after them.
fn with(elements: &str, generation: u64) -> String {
    let reviewed: Vec<String> = Chaos::tools().iter().map(Value::to_string).collect();
    format!(
        r#"{{"tools":[{},{elements}],"generation":{generation}}}"#,
        reviewed.join(",")
    )
}

fn echo(broker: &Broker) -> harness::Response {
    broker.call("/a/echo", json!({"text": "x"}))
}

/// Asserts that every reviewed tool is served by the first process.
fn all_are_served(chaos: &Chaos, broker: &Broker, kind: &str) {
    let source = broker.source("/a");
    assert_eq!(source["withdrawn"], 0, "{kind}: {source}");
    assert_eq!(echo(broker).status, 200, "{kind}");
    assert_eq!(chaos.pids("a").len(), 1, "{kind}: the process goes on");
}

#[test]
fn new_odd_tools_change_nothing_for_reviewed_ones() {
    let chaos = Chaos::new();
    let broker = broker(&chaos);
    let echo_again = Chaos::tools()[0].to_string();
    // Announcements in a row are answered more and more slowly, so one listing has every kind.
    let elements = [
        r#"{"name":"null","description":null}"#,
        r#"{"name":"array","inputSchema":{"properties":[]}}"#,
        echo_again.as_str(),
        r#"{"name":7}"#,
        r#"{"name":"text","description":7}"#,
        r#"{"name":"schema","inputSchema":"x"}"#,
        r#"{"name":"keys","x":{"y":1,"y":2}}"#,
        r#"{"name":"twice"}"#,
        r#"{"name":"twice","title":"Odd"}"#,
    ];
    chaos.raw_script("a", &with(&elements.join(","), 1));
    wait_until("the listing is compared", || {
        broker.source_details("/a")["left_out_count"] == 5
    });
    all_are_served(&chaos, &broker, "odd");
    let left_out = broker.source_details("/a")["left_out"].take();
    let parts = left_out.as_array().into_iter().flatten();
    let mut parts: Vec<_> = parts
        .map(|part| {
            assert_eq!(part["kind"], "tool", "{part}");
            (
                part["name"].as_str(),
                part["code"].as_str().unwrap_or_default(),
            )
        })
        .collect();
    parts.sort_unstable();
    assert_eq!(
        parts,
        [
            (None, "name_invalid"),
            (Some("keys"), "json_invalid"),
            (Some("schema"), "member_invalid"),
            (Some("text"), "member_invalid"),
            (Some("twice"), "defined_twice"),
        ]
    );
    wait_until("the log names it", || {
        broker.stderr().contains("left out of the listing")
    });
}

#[test]
fn reviewed_tool_that_became_odd_is_withdrawn_alone() {
    let chaos = Chaos::new();
    let broker = broker(&chaos);
    for (generation, (tool, rule)) in (1..).zip([
        (json!({"name": "echo", "description": 7}), "tool-unusable"),
        (json!({"name": "echo", "inputSchema": []}), "tool-unusable"),
    ]) {
        let tools = Chaos::tools_with("echo", |echo| *echo = tool);
        chaos.script("a", &json!({"tools": tools, "generation": 2 * generation}));
        wait_until("the tool is withdrawn", || {
            broker.source("/a")["withdrawn"] == 1
        });
        let details = refusal(&echo(&broker), 409, "tool_withdrawn")["details"].clone();
        assert_eq!(
            (&details["class"], &details["rules"]),
            (&json!("unknown"), &json!([rule]))
        );
        broker.result("/a/add", json!({"a": 2, "b": 3}));
        chaos.script("a", &json!({"generation": 2 * generation + 1}));
        wait_until("it is served again", || echo(&broker).status == 200);
    }
    assert_eq!(chaos.pids("a").len(), 1);
}

#[test]
fn reviewed_tool_that_is_defined_twice_is_withdrawn_alone() {
    let chaos = Chaos::new();
    let broker = broker(&chaos);
    chaos.raw_script("a", &with(r#"{"name":"echo","description":"Another"}"#, 1));
    wait_until("the tool is withdrawn", || {
        broker.source("/a")["withdrawn"] == 1
    });
    let details = refusal(&echo(&broker), 409, "tool_withdrawn")["details"].clone();
    assert_eq!(
        (&details["class"], &details["rules"]),
        (&json!("unknown"), &json!(["tool-defined-twice"]))
    );
    broker.result("/a/add", json!({"a": 2, "b": 3}));
    chaos.script("a", &json!({"generation": 2}));
    wait_until("it is served again", || echo(&broker).status == 200);
    assert_eq!(chaos.pids("a").len(), 1);
}

#[test]
fn cursor_that_does_not_advance_ends_the_list_of_a_running_server() {
    let chaos = Chaos::new();
    let broker = broker(&chaos);
    chaos.script("a", &json!({"list_loop": true, "generation": 1}));
    wait_until("the warning is shown", || {
        broker.source_details("/a")["warnings"][0].is_string()
    });
    let warning = broker.source_details("/a")["warnings"][0].clone();
    contains(
        warning.as_str().expect("a text"),
        &["a cursor that was seen before: `again`"],
    );
    all_are_served(&chaos, &broker, "cursor");
}

#[test]
fn list_that_cannot_be_read_refuses_calls_and_ends_no_process() {
    let chaos = Chaos::new();
    let broker = broker(&chaos);
    chaos.script(
        "a",
        &json!({"on_method": {"tools/list": {"result": {}}}, "generation": 1}),
    );
    wait_until("calls are refused", || {
        broker.source("/a")["cause"] == "list_invalid"
    });
    refusal(&echo(&broker), 503, "source_unavailable");
    chaos.script("a", &json!({"generation": 2}));
    wait_until("it is served again", || echo(&broker).status == 200);
    assert_eq!(chaos.pids("a").len(), 1, "the process goes on");
}

#[test]
fn server_without_the_capability_is_asked_and_used_with_a_warning() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"capabilities": {}}));
    let broker = broker(&chaos);
    all_are_served(&chaos, &broker, "capability");
    let warning = broker.source_details("/a")["warnings"][0].clone();
    contains(
        warning.as_str().expect("a text"),
        &["does not declare the capability `tools`"],
    );
}

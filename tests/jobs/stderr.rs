//! Lines of stderr in the events of a job.

use serde_json::{Value, json};

use crate::stage::{Caller, serve};
use crate::task_stage::{Over, TaskStage, events};

/// A source whose tools `research` and `quick` write to stderr and answer after a second.
fn stage(members: Value) -> TaskStage {
    let mut all = json!({"extensions": [], "env": {"SETTING": "a-plain-value", "SHORT": "q7", "MARK": "%", "EMPTY": ""}});
    for (name, value) in members.as_object().into_iter().flatten() {
        all[name] = value.clone();
    }
    let stage = TaskStage::new("modern", Over::Stdio, &json!({}), all, json!({}));
    let mut script: Value = serde_json::from_str(&stage.bench.read("a.json")).expect("JSON");
    script["tasks"] = json!({});
    let mut lines = vec![
        "reads a-plain-value as q7: 5%".to_owned(),
        "x".repeat(5_000),
    ];
    lines.extend((0..80).map(|n| format!("line {n}")));
    script["on_call"] = json!({
        "research": {"stderr": lines, "then": {"delay_ms": 1_500, "then": {"stderr": ["the end"], "then": {"delay_ms": 500}}}},
        "quick": {"delay_ms": 1_000},
    });
    stage.bench.script("a", &script);
    stage
}

/// Returns the lines of stderr that a job has.
fn lines_of(text: &str) -> Vec<Value> {
    let mut lines = text.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if line == "event: stderr" {
            let data = lines.next().and_then(|line| line.strip_prefix("data: "));
            found.push(serde_json::from_str(data.expect("data")).expect("JSON"));
        }
    }
    found
}

#[test]
fn stderr_of_a_process_reaches_only_the_job_that_has_it_alone() {
    let stage = stage(json!({"stderr_to_callers": true}));
    let broker = serve(&stage.bench);
    let caller = Caller::of(&broker);
    let id = caller.make("research", json!({"n": 1}));
    caller.end(&id);
    let text = events(&broker, &id);
    let lines = lines_of(&text);
    assert_eq!(lines[0]["text"], "reads •••• as ••••: 5••••", "{text}");
    let long = lines[1]["text"].as_str().expect("text");
    assert!(long.len() <= 4 << 10, "{}", long.len());
    let last = lines.last().expect("lines");
    assert_eq!(last["text"], "the end", "{text}");
    assert!(last["dropped"].as_u64() >= Some(30), "{last}");
    for value in ["a-plain-value", "q7", "%"] {
        assert!(!text.contains(value), "{value}: {text}");
    }

    // Another call of the process at the same time.
    let first = caller.make("quick", json!({"n": 2}));
    stage.await_events("call", 2);
    let second = caller.make("research", json!({"n": 3}));
    caller.end(&first);
    caller.end(&second);
    assert!(lines_of(&events(&broker, &second)).is_empty());
}

#[test]
fn stderr_reaches_no_job_without_the_key() {
    let stage = stage(json!({}));
    let broker = serve(&stage.bench);
    let caller = Caller::of(&broker);
    let id = caller.make("research", json!({"n": 1}));
    caller.end(&id);
    assert!(lines_of(&events(&broker, &id)).is_empty());
}

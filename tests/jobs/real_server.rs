//! The reference server of MCP, whose tool `simulate-research-query` is called as a task only.

use std::path::Path;

use harness::{Bench, contains};
use serde_json::json;

use crate::stage::{Caller, serve};
use crate::task_stage::{TASKS, events};

#[test]
fn reference_server_executes_its_research_as_a_task() {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real-broker/servers");
    let program =
        packages.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    assert!(
        program.exists(),
        "the reference server is not installed; run tests/real-broker/install"
    );
    let bench = Bench::new();
    let source = json!({"command": ["node", program, "stdio"], "extensions": [TASKS]});
    let config = json!({"tree": [{"path": "/a", "source": source}], "jobs": {}});
    bench.write("c.json", &config.to_string());
    bench.lock();
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    let args = json!({"topic": "bees"});
    let answer = caller.call("simulate-research-query", json!({"args": args}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    contains(&answer.text(), &["Research Report: bees"]);
    assert!(!answer.text().contains("related-task"), "{}", answer.text());

    let id = caller.make("simulate-research-query", args);
    assert_eq!(caller.end(&id)["status"], "succeeded");
    // A stage of the server takes as long as the time between two looks at its task, so that one may be missed.
    let events = events(&broker, &id);
    let stages = [
        "Gathering sources",
        "Analyzing content",
        "Synthesizing findings",
        "Generating report",
    ];
    let seen = stages.iter().filter(|stage| events.contains(**stage));
    assert!(seen.count() >= 2, "{events}");
}

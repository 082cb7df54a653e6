//! Tasks with the official SDKs: of revision 2025-11-25 with the first generation, of the extension with the second one.

use std::path::PathBuf;

use harness::{Run, contains, official_clients, official_python};
use serde_json::{Value, json};

use crate::front::Front;
use crate::stage::serve;
use crate::tasks_modern::tasks_bench;

#[test]
fn official_clients_end_a_task_in_the_form_of_their_generation() {
    let bench = tasks_bench(&json!({}));
    let broker = serve(&bench);
    let url = format!("http://{}/mcp/direct", broker.address());
    for (n, program, script) in [
        (1, PathBuf::from("node"), "tasks_v1.mjs"),
        (2, official_python("v1"), "tasks_v1.py"),
        (3, official_python("v2"), "tasks_v2.py"),
    ] {
        let arguments = json!({"n": n}).to_string();
        let output = Run::new(&program)
            .args([official_clients().join(script)])
            .args(["a-later", &arguments, &url])
            .output();
        assert_eq!(
            output.code,
            Some(0),
            "{script}: {}{}",
            output.stdout,
            output.stderr
        );
        let seen: Value = serde_json::from_str(&output.stdout).expect("JSON");
        assert_eq!(seen["status"], "completed", "{script}: {seen}");
        contains(
            &seen["result"]["content"][0]["text"].to_string(),
            &["n", &n.to_string()],
        );
        let id = seen["task"].as_str().expect("an id");
        assert_eq!(
            Front::of(&broker).get(id)["status"],
            "completed",
            "{script}"
        );
    }
    assert_eq!(crate::stage::executed(&bench, "later"), [1, 2, 3]);
}

//! A call whose server dies: sent once more if the config and the reviewed tool allow it, and never
//! otherwise.

use std::fs;
use std::path::Path;
use std::thread;

use harness::{Broker, Run, binary, children_of, refusal, wait_until};
use serde_json::{Value, json};

/// The smoke broker, with `retry_idempotent` for `/util` as given.
fn start(folder: &Path, retry: bool) -> Broker {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/smoke_config.json"));
    let mut config: Value = serde_json::from_str(&text.expect("it is there")).expect("JSON");
    config["tree"][1]["source"]["retry_idempotent"] = json!(retry);
    let file = folder.join("config.json");
    fs::write(&file, config.to_string()).expect("the folder can be written to");
    let name = file.to_str().expect("UTF-8");
    Broker::start_ready(Run::new(&binary("mcp-broker")).args(["127.0.0.1:0", name]))
}

fn counters(broker: &Broker) -> Value {
    broker.get("/sources").json()["sources"][1]["counters"].clone()
}

/// Calls a slow tool that only reads, and kills its server with it.
fn killed(broker: &Broker) -> harness::Response {
    let before = counters(broker)["calls"].as_u64().expect("a number");
    thread::scope(|scope| {
        let call = scope.spawn(|| {
            let args = json!({"text": "late", "milliseconds": 1000});
            broker.call("/util/slow_echo", args)
        });
        wait_until("the call is on its way", || {
            counters(broker)["calls"].as_u64() > Some(before)
        });
        for pid in children_of(broker.pid()) {
            let kill = Run::new(Path::new("/bin/sh")).args(["-c", &format!("kill -9 {pid}")]);
            assert_eq!(kill.output().code, Some(0));
        }
        call.join().expect("it ended")
    })
}

#[test]
fn call_is_retried_only_where_config_and_tool_allow_it() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let cautious = start(folder.path(), false);
    refusal(&killed(&cautious), 502, "source_exited");
    assert_eq!(counters(&cautious)["calls"], 1);
    drop(cautious);
    let broker = start(folder.path(), true);
    let response = killed(&broker);
    assert_eq!(response.status, 200, "{}", response.text());
    let counters = counters(&broker);
    assert_eq!(
        (
            &counters["calls"],
            &counters["failures"],
            &counters["restarts"]
        ),
        (&json!(2), &json!(1), &json!(1))
    );
}

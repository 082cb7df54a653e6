//! A broker whose source dies at its start: it is tried once more in the era of the lock before the start is refused.

use harness::figure::Watch;
use harness::{Broker, Chaos, HttpSources, Run, access, binary, contains, http_script, wait_until};
use serde_json::json;

/// A server that crashes at its first starts; `crashes` has their number.
const START: &str = "echo start >> starts
if [ \"$(wc -l < starts)\" -le \"$(cat crashes)\" ]; then echo 'registry timed out' >&2; exit 7; fi
exec \"$CHAOS_MCP\" --script a.json --journal a.log
";

/// A folder with such a source, which is locked in this era and whose next starts crash.
fn crashing(era: &str, crashes: usize) -> Chaos {
    let chaos = Chaos::new();
    chaos.file("start.sh", START);
    chaos.script("a", &json!({ "era": era }));
    let source = json!({
        "command": ["sh", "start.sh"], "cwd": ".", "env": {"CHAOS_MCP": "${CHAOS_MCP}"},
    });
    let mut config = json!({"on_unreachable": "refuse", "tree": [{"path": "/a", "type": "node", "source": source}]});
    access::add(&mut config);
    chaos.file("c.json", &config.to_string());
    chaos.file("crashes", "0");
    let locked = run(&chaos, "lock", &[]).output();
    assert_eq!(locked.code, Some(0), "{}", locked.stderr);
    for file in ["starts", "a.log"] {
        chaos.file(file, "");
    }
    chaos.file("crashes", &crashes.to_string());
    chaos
}

fn run(chaos: &Chaos, verb: &str, args: &[&str]) -> Run {
    Run::new(&binary("broker-gen"))
        .folder(chaos.path())
        .env("CHAOS_MCP", binary("chaos-mcp"))
        .args([verb, "--config", "c.json"])
        .args(args)
}

fn starts(chaos: &Chaos) -> usize {
    let starts = std::fs::read_to_string(chaos.path().join("starts"));
    starts.expect("the file is there").lines().count()
}

#[test]
fn source_that_dies_at_its_first_start_is_served_after_the_second() {
    for (era, other) in [("legacy", "discover"), ("modern", "initialize")] {
        let chaos = crashing(era, 1);
        let broker = Broker::start_ready(run(&chaos, "serve", &["127.0.0.1:0"]));
        broker.result("/a/add", json!({"a": 1, "b": 2}));
        assert_eq!(starts(&chaos), 2, "{era}");
        assert!(chaos.events("a", other).is_empty(), "{era}");
    }
}

#[test]
fn source_that_always_dies_refuses_the_start_with_its_last_line() {
    for era in ["legacy", "modern"] {
        let chaos = crashing(era, 9);
        let ended = run(&chaos, "serve", &["127.0.0.1:0"]).output();
        assert_eq!(ended.code, Some(4), "{era}: {}", ended.stderr);
        contains(&ended.stderr, &["exited with code 7", "registry timed out"]);
        assert!(!ended.stderr.contains("-32601"), "{era}: {}", ended.stderr);
        assert_eq!(starts(&chaos), 2, "{era}");
    }
}

#[test]
fn stop_in_the_pause_before_the_second_try_ends_it_at_once() {
    let sources = HttpSources::with(&http_script("legacy", &json!({})), |config| {
        for node in config["tree"].as_array_mut().expect("a list") {
            node["source"]["startup_timeout"] = json!(600);
        }
    });
    sources.lock();
    let opening = json!({"rpc_method": "initialize"});
    let before = sources.chaos.requests("a", &opening).len();
    let fault = json!({"status": 503, "headers": {"Retry-After": "300"}});
    let rules = json!([{"on": {"method": "initialize"}, "do": fault}]);
    sources
        .chaos
        .script("a", &http_script("legacy", &json!({ "rules": rules })));
    let broker = Broker::start(sources.verb("serve", &["127.0.0.1:0"]));
    sources.chaos.await_requests("a", &opening, before + 1);
    wait_until("the other source is there", || {
        broker.source("/b")["state"] == "ready"
    });
    assert_eq!(broker.source("/a")["state"], "starting");
    let watch = Watch::start();
    broker.terminate();
    assert!(watch.passed().as_secs() < 10, "{:?}", watch.passed());
    assert_eq!(sources.chaos.requests("a", &opening).len(), before + 1);
}

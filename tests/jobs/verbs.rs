//! `mcp-broker jobs`: the jobs of a running broker for people.

use harness::{Broker, Output, Run, binary, contains};
use serde_json::{Value, json};

use crate::stage::{Caller, KEYS, bench, kill, serve};

fn jobs(broker: &Broker, args: &[&str]) -> Output {
    Run::new(&binary("mcp-broker"))
        .args(["jobs"])
        .args(args)
        .args(["--url", broker.address()])
        .env("MCP_BROKER_SECRET", KEYS[0].1)
        .output()
}

fn identities() -> Value {
    let (name, _, digest) = KEYS[0];
    json!({
        "identities": {"keys": [{"name": name, "sha256": digest, "groups": []}]},
    })
}

#[test]
fn wait_shows_progress_and_its_exit_is_the_end_of_the_job() {
    let bench = bench(&json!({"store": "jobs.sqlite"}), &identities());
    let broker = serve(&bench);
    let caller = Caller {
        broker: &broker,
        key: Some(KEYS[0].1),
    };
    let id = caller.make("steps", json!({"n": 1}));
    let waited = jobs(&broker, &["wait", &id]);
    assert_eq!(waited.code, Some(0), "{}", waited.stderr);
    contains(&waited.stdout, &[&id, "status: succeeded"]);
    contains(&waited.stderr, &["[########################] 3 of 3"]);
    // On a terminal the bar of progress is rewritten in its line.
    let again = caller.make("steps", json!({"n": 4}));
    let (code, screen) = Run::new(&binary("mcp-broker"))
        .args(["jobs", "wait", &again, "--url", broker.address()])
        .env("MCP_BROKER_SECRET", KEYS[0].1)
        .on_terminal();
    assert_eq!(code, Some(0), "{screen}");
    contains(
        &screen,
        &["\r\u{1b}[K[########################] 3 of 3", "\njob_id: "],
    );
    let shown = jobs(&broker, &["show", &id, "--format", "json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    assert_eq!(shown, caller.job(&id));

    let long = caller.make("long", json!({"n": 2}));
    caller.wait(&long, &["running"]);
    let listed = jobs(&broker, &["list", "--status", "running"]);
    contains(&listed.stdout, &[&long, "running", "/a/long"]);
    assert!(!listed.stdout.contains(&id), "{}", listed.stdout);
    assert_eq!(jobs(&broker, &["cancel", &long]).code, Some(0));
    assert_eq!(jobs(&broker, &["wait", &long]).code, Some(15));
    let again = jobs(&broker, &["cancel", &long]);
    assert_eq!(again.code, Some(1));
    contains(&again.stderr, &["answered 409", "the job has ended"]);
    assert_eq!(jobs(&broker, &["show", "j_abc"]).code, Some(1));

    let sent = caller.make("long", json!({"n": 3}));
    caller.wait(&sent, &["running"]);
    harness::wait_until("the server has the call", || {
        crate::stage::executed(&bench, "long").contains(&3)
    });
    kill(broker);
    let broker = serve(&bench);
    assert_eq!(jobs(&broker, &["wait", &sent]).code, Some(14));
}

#[test]
fn check_reads_a_store_that_is_not_in_use() {
    let bench = bench(&json!({"store": "jobs.sqlite"}), &json!({}));
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    let id = caller.make("quick", json!({"n": 1}));
    caller.end(&id);
    let check = || {
        Run::new(&binary("mcp-broker"))
            .args(["jobs", "check"])
            .args([bench.path("jobs.sqlite")])
            .output()
    };
    let used = check();
    assert_eq!(used.code, Some(2));
    contains(&used.stderr, &["is used by"]);
    broker.terminate();
    let fine = check();
    assert_eq!(
        (fine.code, fine.stdout.as_str()),
        (Some(0), "the store has no fault\n"),
        "{}",
        fine.stderr
    );
}

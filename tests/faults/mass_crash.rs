//! Fifty-five servers that die at one moment: all of them are restarted, a few at a time.

use std::collections::BTreeSet;
use std::path::Path;

use harness::figure::{Watch, figure, shown};
use harness::{Broker, ResourceUsage, Run, binary, children_of, wait_until};

const SERVERS: usize = 55;
/// The maximum number of sources that restart at one time.
const AT_ONE_TIME: usize = 4;

/// The sources in this state. They are read one after the other, so they may never have been in it at
/// one moment.
fn states(broker: &Broker, state: &str) -> BTreeSet<String> {
    let sources = broker.get("/readyz").json()["sources"].clone();
    let sources = sources.as_array().expect("a list").iter();
    let there = sources.filter(|source| source["state"] == state);
    there.map(|source| source["path"].to_string()).collect()
}

#[test]
fn servers_that_crash_together_restart_a_few_at_a_time() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus-broker"));
    let run = Run::new(&binary("corpus-broker")).folder(folder);
    let broker = Broker::start_ready(run.args(["127.0.0.1:0", "config.json"]));
    wait_until("all are up", || states(&broker, "ready").len() == SERVERS);
    let before = ResourceUsage::measure(broker.pid());
    let servers: Vec<String> = children_of(broker.pid())
        .into_iter()
        .filter(|pid| name(*pid) == "chaos-mcp")
        .map(|pid| pid.to_string())
        .collect();
    assert_eq!(servers.len(), SERVERS);
    let kill = Run::new(Path::new("/bin/sh"))
        .args(["-c", &format!("kill -9 {}", servers.join(" "))])
        .output();
    assert_eq!(kill.code, Some(0), "{}", kill.stderr);
    let watch = Watch::start();
    let (mut most, mut before_that) = (0, BTreeSet::new());
    wait_until("every one was started again", || {
        // Each is started once, so a source that is starting in two samples was starting between them.
        let starting = states(&broker, "starting");
        most = most.max(starting.intersection(&before_that).count());
        before_that = starting;
        let sources = broker.get("/sources").json()["sources"].clone();
        let sources = sources.as_array().expect("a list");
        sources
            .iter()
            .all(|source| source["state"] == "ready" && source["counters"]["restarts"] == 1)
    });
    assert!(most <= AT_ONE_TIME, "{most} at one time");
    figure(
        "F-28",
        &format!(
            "{SERVERS} servers back after {}, at most {most} starting at one time",
            shown(watch.passed())
        ),
    );
    before.await_again(broker.pid());
    assert!(!broker.stderr().contains("panic"), "{}", broker.stderr());
}

fn name(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim().to_owned()
}

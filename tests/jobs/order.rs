//! The order of the syncs of the store and of the bytes to a server, as the kernel gets them from the whole broker.

use std::fs;
use std::path::Path;

use harness::{Broker, Run};
use serde_json::json;

use crate::stage::{Caller, bench, run};

/// The jobs that run one after the other.
const JOBS: i64 = 5;
/// The changes of a job that are synced before its call is sent: it is made, claimed and marked as sent.
const SYNCS: usize = 3;

/// Whether there is `strace`, and the kernel lets it trace. With `MCP_BROKER_STRACE=1` it must be so.
fn has_strace() -> bool {
    let found = Run::new(Path::new("sh")).args(["-c", "strace -o /dev/null true"]);
    let has_it = found.output().code == Some(0);
    let is_needed = std::env::var("MCP_BROKER_STRACE").is_ok_and(|value| value == "1");
    assert!(has_it || !is_needed, "install strace");
    has_it
}

#[test]
fn job_is_synced_as_sent_before_the_first_byte_to_its_server() {
    if !has_strace() {
        return;
    }
    let bench = bench(&json!({"store": "jobs.sqlite"}), &json!({}));
    let trace = bench.path("trace");
    let output = trace.to_string_lossy();
    let calls = "trace=write,writev,pwrite64,pwritev,sendto,sendmsg,read,recvfrom,fsync,fdatasync";
    // The tracer is a process beside the broker, not its parent.
    let options = ["-D", "-f", "-y", "-s", "4096", "-e", calls, "-o", &output];
    let run = run(&bench).through("strace", &options);
    let broker = Broker::start_ready(run.folder(&bench.path("")));
    let caller = Caller::of(&broker);
    for n in 0..JOBS {
        let id = caller.make("quick", json!({"n": n}));
        assert_eq!(caller.end(&id)["status"], "succeeded");
    }
    let (status, log) = broker.terminate();
    assert!(status.success(), "{log}");
    let trace = fs::read_to_string(trace).expect("the trace");
    let (mut unsynced, mut syncs, mut sent) = (0, 0, 0);
    let mut syncing = None;
    for line in trace.lines() {
        let thread = line.split(' ').next();
        let is_log = line.contains("jobs.sqlite-wal>");
        let is_resumed = line.contains("sync resumed>") && syncing == thread;
        let is_whole = is_log && line.contains("sync(") && !line.contains("<unfinished");
        if is_log && line.contains("write") {
            unsynced += 1;
        } else if is_whole || is_resumed {
            (unsynced, syncs, syncing) = (0, syncs + 1, None);
        } else if is_log && line.contains("sync(") {
            syncing = thread;
        } else if line.contains("POST /meta_call") {
            // The request that makes the next job.
            syncs = 0;
        } else if line.contains("\\\"method\\\":\\\"tools/call") && line.contains("write") {
            assert_eq!(unsynced, 0, "the call was sent before the sync: {line}");
            assert!(syncs >= SYNCS, "{syncs} syncs before: {line}");
            sent += 1;
        }
    }
    assert_eq!(sent, JOBS, "the trace has each call");
}

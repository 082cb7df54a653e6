//! A source leaks nothing when its server crashes again and again. The test runs in a separate
//! process, whose files, threads and memory are counted.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use broker_mcp::{
    CallFailure, DriftCheck, Instance, ServerCall, SourceSpec, State, Timing, Verdict,
};
use broker_model::Snapshot;
use tokio_util::task::TaskTracker;

use super::shell;

/// The longest that anything may take.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);
/// Crashes before the first count, and how many more or fewer files and threads do not count as a leak.
const FIRST: usize = 10;
const TOLERANCE: usize = 3;

/// A legacy server that ends in the middle of a call, in one of four ways. In one of them it leaves
/// behind a process in its own session.
const SERVER: &str = r#"
ok() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  case $line in
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
    *'"initialize"'*) ok '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh"}}';;
    *'"tools/list"'*) ok '{"tools":[{"name":"crash","inputSchema":{"type":"object"}}]}';;
    *'"way":0'*) exit 9;;
    *'"way":1'*) kill -9 $$;;
    *'"way":2'*) printf '{"jsonrpc":"2.0",'; exit 0;;
    *'"way":3'*) setsid sleep 1000 & echo 'last words' >&2; exit 1;;
  esac
done
"#;

struct Accepts;

impl DriftCheck for Accepts {
    fn check(&self, _: &Snapshot) -> Verdict {
        Verdict::Serve
    }
}

fn launch() -> SourceSpec {
    let timing = Timing {
        backoff: Duration::from_millis(1),
        backoff_cap: Duration::from_millis(5),
        ..Timing::default()
    };
    shell::launch(SERVER, &[], WAIT_TIMEOUT, timing)
}

/// The resources that this process holds.
#[derive(Clone, Copy, Debug)]
struct Holdings {
    files: usize,
    threads: usize,
    children: usize,
    zombies: usize,
    resident_kib: u64,
}

impl Holdings {
    fn count() -> Self {
        let entries = |folder: &str| fs::read_dir(folder).map_or(0, Iterator::count);
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        let states = child_states();
        Self {
            files: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            children: states.len(),
            zombies: states.iter().filter(|state| *state == "Z").count(),
            resident_kib: resident.expect("the kernel says so"),
        }
    }

    fn is_as(&self, before: &Self) -> bool {
        self.files <= before.files + TOLERANCE
            && self.threads <= before.threads + TOLERANCE
            && (self.children, self.zombies) == (1, 0)
    }
}

/// The states of all children of this process.
fn child_states() -> Vec<String> {
    let us = std::process::id().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let states = processes.filter_map(|process| {
        let stat = fs::read_to_string(process.path().join("stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?.to_owned();
        (fields.next()? == us).then_some(state)
    });
    states.collect()
}

/// Waits until the source is ready and nothing of the crashes is left but what `before` has.
async fn at_rest(source: &Instance, before: Option<&Holdings>) -> Holdings {
    let mut status = source.status();
    let ready = status.wait_for(|status| status.state == State::Ready);
    let ready = tokio::time::timeout(WAIT_TIMEOUT, ready).await;
    drop(ready.expect("in time").expect("the source is there"));
    let mut now = Holdings::count();
    let rests = async {
        while !now.is_as(before.unwrap_or(&now)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            now = Holdings::count();
        }
    };
    let rests = tokio::time::timeout(WAIT_TIMEOUT, rests).await;
    assert!(rests.is_ok(), "before: {before:?}\nnow: {now:?}");
    now
}

/// MCP_BROKER_CRASHES sets the number of crashes; 1000 take minutes.
#[test]
fn source_after_many_crashes_leaks_nothing() {
    let name = "source_after_many_crashes_leaks_nothing";
    harness::alone(module_path!(), name, || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(crash_often());
    });
}

#[expect(
    clippy::print_stdout,
    reason = "a long run by hand reports its figures"
)]
async fn crash_often() {
    let crashes = std::env::var("MCP_BROKER_CRASHES");
    let crashes = crashes.map_or(60, |count| count.parse().expect("a number"));
    let first = FIRST.max(crashes / 10);
    let source = Instance::start(launch(), None, Arc::new(Accepts), &TaskTracker::new());
    let mut before = None;
    for crash in 0..crashes {
        if crash == first {
            before = Some(at_rest(&source, None).await);
        }
        let arguments = format!("{{\"way\":{}}}", crash % 4);
        let failed = source
            .call(ServerCall::new("crash", arguments.as_bytes()), WAIT_TIMEOUT)
            .await;
        assert!(
            matches!(failed, Err(CallFailure::Exited { .. })),
            "{crash}: {failed:?}"
        );
    }
    let before = before.expect("there were more crashes than come before the first count");
    let after = at_rest(&source, Some(&before)).await;
    let status = source.status();
    assert_eq!(status.borrow().restarts, crashes as u64);
    let more = after.resident_kib.saturating_sub(before.resident_kib);
    assert!(more < 8 << 10, "{before:?}\n{after:?}");
    source.stop().await;
    assert_eq!(child_states(), [""; 0]);
    if std::env::var_os("MCP_BROKER_CRASHES").is_some() {
        println!("after {first} crashes: {before:?}\nafter {crashes}: {after:?}");
    }
}

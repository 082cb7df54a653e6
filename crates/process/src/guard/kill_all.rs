//! Kills all descendants of a broker at once.

use std::collections::BTreeSet;
use std::io;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Pid;
use tokio::time::Instant;

use crate::cgroup;
use crate::children::{self, MAX_DESCENDANTS};
use crate::cookie::broker_cookie;
use crate::pinned_process::PinnedProcess;
use crate::proc_table::{self, ProcessEntry};

/// The pause after a round that found no new process: a killed process takes a moment to end.
const END_INTERVAL: Duration = Duration::from_millis(1);
/// The number of rounds that must find no process. The kernel's list of children may lack one that starts while it is
/// read.
const EMPTY_ROUNDS: u32 = 5;
/// The maximum time for all rounds, even if a process does not end after SIGKILL.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(2);

/// Kills all living descendants of `root` (this process), and all processes with the cookie, in rounds until several
/// rounds find no process. `meanwhile` reaps children, and returns the children that must be spared.
///
/// Descendants are found by parentage. Orphans among them become children of this process, so a process
/// that one round missed because its parent ended is a child in the next round. A process that forks and ends at once
/// may have ended before each round signals it: a round that sees a new process, dead or alive, is not an empty one.
pub(super) fn end_all(root: Pid, meanwhile: &mut dyn FnMut() -> Vec<i32>) {
    let by = Instant::now() + SWEEP_TIMEOUT;
    // Control groups, if they exist, are killed first: no fork can escape that.
    cgroup::kill_all();
    let (mut empty, mut before, mut seen) = (0, BTreeSet::new(), BTreeSet::new());
    while empty < EMPTY_ROUNDS && Instant::now() < by {
        let spared = meanwhile();
        let known = seen.len();
        let mut found = end_descendants(&spared, &mut seen);
        if found.as_ref().is_ok_and(BTreeSet::is_empty) {
            found = Ok(end_holders(root));
        }
        match found {
            Ok(found) if found.is_empty() && seen.len() == known => empty += 1,
            Ok(found) if found.is_empty() => empty = 0,
            // A process that forks and ends has a new number in each round, and is not waited for.
            Ok(found) if !found.is_subset(&before) => (empty, before) = (0, found),
            Ok(_) | Err(_) => {
                empty = 0;
                sleep(END_INTERVAL);
            }
        }
    }
    cgroup::end_all(by.saturating_duration_since(Instant::now()));
}

/// Stops every descendant from the top down, so that no descendant starts another process, then kills them. Returns the
/// numbers of the descendants that could be signalled, and adds all numbers to `seen`.
fn end_descendants(spared: &[i32], seen: &mut BTreeSet<i32>) -> io::Result<BTreeSet<i32>> {
    let mut found = Vec::new();
    let mut signalled = BTreeSet::new();
    let mut stop = |process: PinnedProcess, found: &mut Vec<PinnedProcess>| {
        if process.stop() {
            signalled.insert(process.pid());
        }
        found.push(process);
    };
    for pid in children::own()? {
        if !spared.contains(&pid) {
            seen.insert(pid);
            if let Some(child) = PinnedProcess::pin_child(pid) {
                stop(child, &mut found);
            }
        }
        if found.len() >= MAX_DESCENDANTS {
            break;
        }
    }
    let mut at = 0;
    while at < found.len() && found.len() < MAX_DESCENDANTS {
        let parent = found[at].pid();
        let children = children::list(parent)
            .into_iter()
            .filter_map(ProcessEntry::read);
        for child in children.filter(|child| child.is_child_of(parent)) {
            seen.insert(child.pid());
            if let Some(child) = child.pin() {
                stop(child, &mut found);
            }
        }
        at += 1;
    }
    for process in &found {
        process.kill_group();
        process.kill();
    }
    Ok(signalled)
}

/// Kills processes that have the cookie and are not descendants, such as orphans that another process
/// adopted.
fn end_holders(root: Pid) -> BTreeSet<i32> {
    let holders = proc_table::holders(broker_cookie());
    let holders = holders
        .iter()
        .filter(|holder| Pid::from_raw(holder.pid()) != Some(root));
    let held = holders.filter_map(ProcessEntry::pin);
    held.filter(PinnedProcess::kill)
        .map(|holder| holder.pid())
        .collect()
}

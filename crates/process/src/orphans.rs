//! Orphans of servers that become children of this process, if it is a broker with a guard: a thread
//! reaps them, but not the children that tasks wait for.

use std::collections::BTreeSet;
#[cfg(target_os = "linux")]
use std::io;
#[cfg(target_os = "linux")]
use std::sync::Condvar;
use std::sync::{Mutex, MutexGuard, PoisonError};
#[cfg(target_os = "linux")]
use std::thread;
#[cfg(target_os = "linux")]
use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::io::Errno;
#[cfg(target_os = "linux")]
use rustix::process::{Pid, WaitId, WaitIdOptions, getpid, set_child_subreaper, waitid};
use tokio::process::Child;

#[cfg(target_os = "linux")]
use super::unix::await_ended_child;

/// Maximum time for a task to reap its child before the children are checked again.
#[cfg(target_os = "linux")]
const REAP_INTERVAL: Duration = Duration::from_millis(5);
/// Maximum time that a start in progress may delay the shutdown.
#[cfg(target_os = "linux")]
const START_TIMEOUT: Duration = Duration::from_millis(200);
/// The time between looks at the claims of other starts.
#[cfg(target_os = "linux")]
const CLAIM_INTERVAL: Duration = Duration::from_millis(1);

struct Claims {
    /// The children that tasks wait for.
    pids: BTreeSet<i32>,
    /// The number of children that were started.
    #[cfg(target_os = "linux")]
    starts: u64,
}

/// The claimed children. Also locked while a child is started: until its number is registered, no
/// thread may reap it.
static CLAIMS: Mutex<Claims> = Mutex::new(Claims {
    pids: BTreeSet::new(),
    #[cfg(target_os = "linux")]
    starts: 0,
});

/// Wakes the reaper after a child was started.
#[cfg(target_os = "linux")]
static STARTED: Condvar = Condvar::new();

/// A child that a task reaps, until this is dropped.
#[derive(Debug)]
pub(super) struct Claim(i32);

impl Drop for Claim {
    fn drop(&mut self) {
        lock().pids.remove(&self.0);
    }
}

/// Starts a child that only the caller reaps.
pub(super) fn claim<E>(start: impl FnOnce() -> Result<Child, E>) -> Result<(Child, Claim), E> {
    let mut claims = lock();
    let child = start()?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    let claim = Claim(pid.unwrap_or_default());
    claims.pids.insert(claim.0);
    #[cfg(target_os = "linux")]
    {
        claims.starts += 1;
        STARTED.notify_all();
    }
    Ok((child, claim))
}

/// Makes this process the new parent of its orphaned descendants, and reaps them.
#[cfg(target_os = "linux")]
pub(crate) fn adopt() -> io::Result<()> {
    thread::Builder::new()
        .name("mcp-orphans".to_owned())
        .spawn(reap_all)?;
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Returns when no start is in progress. Later starts check whether starts are forbidden.
#[cfg(target_os = "linux")]
pub(crate) fn await_start() {
    let by = tokio::time::Instant::now() + START_TIMEOUT;
    while matches!(CLAIMS.try_lock(), Err(std::sync::TryLockError::WouldBlock))
        && tokio::time::Instant::now() < by
    {
        thread::sleep(CLAIM_INTERVAL);
    }
}

#[cfg(target_os = "linux")]
fn reap_all() {
    loop {
        let starts = lock().starts;
        match await_ended_child() {
            Ok(pid) if reap(pid) => {}
            Ok(_) => thread::sleep(REAP_INTERVAL),
            Err(Errno::CHILD) => {
                // A process without children has no descendants, and so no orphans.
                let again = STARTED.wait_while(lock(), |claims| claims.starts == starts);
                drop(again.unwrap_or_else(PoisonError::into_inner));
            }
            Err(_) => {}
        }
    }
}

/// Reaps a child that ended, unless a task waits for that child. Returns whether it reaped one.
#[cfg(target_os = "linux")]
fn reap(pid: Pid) -> bool {
    let claims = lock();
    if claims.pids.contains(&pid.as_raw_nonzero().get()) {
        return false;
    }
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    waitid(WaitId::Pid(pid), ended).is_ok()
}

fn lock() -> MutexGuard<'static, Claims> {
    CLAIMS.lock().unwrap_or_else(PoisonError::into_inner)
}

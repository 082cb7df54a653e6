//! Finds processes that a child started outside its group, by the cookie in their inherited environment. Only Linux
//! shows the environments of other processes; other systems find no processes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cookie::broker_cookie;
#[cfg(target_os = "linux")]
use crate::cookie::{VARIABLE, has_variable};
use crate::pinned_process::PinnedProcess;

/// The value that marks the descendants of one child.
#[derive(Clone, Debug)]
pub(super) struct Cookie {
    value: String,
    number: u64,
}

impl Cookie {
    /// Makes a cookie for one child. It begins with the random cookie of this process: with only the number, the end of
    /// a child would also end children of other processes that have the same number.
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            value: format!("{}-{number}", broker_cookie()),
            number,
        }
    }

    /// Returns the variable's value.
    pub(super) fn value(&self) -> &str {
        &self.value
    }

    /// Returns the number of the child among the children of this process.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Returns every living process that has the cookie, and every process of `descendants` that still lives.
    #[cfg(target_os = "linux")]
    pub(super) fn holders(&self, descendants: &ProcessList) -> Vec<PinnedProcess> {
        let entry = format!("{VARIABLE}={}", self.value);
        let has_entry = |pid| has_variable(pid, |variable| variable == entry.as_bytes());
        super::proc_table::numbers()
            .filter(|pid| has_entry(*pid))
            .filter_map(|pid| {
                PinnedProcess::pin(rustix::process::Pid::from_raw(pid)?, || has_entry(pid))
            })
            .chain(
                descendants
                    .iter()
                    .filter_map(super::proc_table::ProcessEntry::pin),
            )
            .collect()
    }

    /// Returns an empty list: processes with the cookie cannot be found on this system.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn holders(&self, _below: &ProcessList) -> Vec<PinnedProcess> {
        Vec::new()
    }
}

/// A list of descendants of a child.
#[cfg(target_os = "linux")]
pub(super) type ProcessList = Vec<super::proc_table::ProcessEntry>;
#[cfg(not(target_os = "linux"))]
pub(super) type ProcessList = Vec<()>;

/// The descendants that a child had when its end began. They cannot be found once the child has ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Descendants(Arc<Mutex<ProcessList>>);

impl Descendants {
    /// Adds processes to the list.
    pub(super) fn add(&self, seen: ProcessList) {
        self.lock().extend(seen);
    }

    /// Removes and returns all processes.
    pub(super) fn take(&self) -> ProcessList {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, ProcessList> {
        // The list is valid after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the living descendants of a child, regardless of their group, session and environment.
#[cfg(target_os = "linux")]
pub(super) fn descendants_of(child: u32) -> ProcessList {
    i32::try_from(child).map_or_else(|_| Vec::new(), super::children::descendants_of)
}

/// Returns an empty list: this system does not list the descendants of a child.
#[cfg(not(target_os = "linux"))]
pub(super) fn descendants_of(_child: u32) -> ProcessList {
    Vec::new()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn cookie_is_unique_and_found_by_its_whole_value() {
        let cookies = [Cookie::new(), Cookie::new()];
        assert_ne!(cookies[0].value(), cookies[1].value());
        assert!(cookies[0].value().starts_with(broker_cookie()));
        #[expect(
            clippy::disallowed_methods,
            reason = "this test needs a process that the spawner did not start"
        )]
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .env(VARIABLE, cookies[0].value())
            .spawn()
            .unwrap();
        let longer = Cookie {
            value: format!("{}0", cookies[0].value()),
            number: 0,
        };
        let deadline = std::time::Duration::from_secs(60);
        let started = tokio::time::Instant::now();
        // Between fork and exec it still has the environment of this process.
        while cookies[0].holders(&Vec::new()).is_empty() {
            assert!(started.elapsed() < deadline);
            std::thread::yield_now();
        }
        assert!(
            cookies[1].holders(&Vec::new()).is_empty() && longer.holders(&Vec::new()).is_empty()
        );
        cookies[0]
            .holders(&Vec::new())
            .iter()
            .for_each(|process| process.signal(true));
        assert!(!child.wait().unwrap().success());
        assert!(cookies[0].holders(&Vec::new()).is_empty());
    }
}

//! Finds what a child started outside of its group, by the cookie that is handed down in the
//! environment. Only Linux shows other processes' environments; elsewhere nothing is found.

use std::sync::atomic::{AtomicU64, Ordering};

/// The variable that holds the cookie.
pub(crate) const VARIABLE: &str = "MCP_BROKER_COOKIE";

/// What tells the descendants of one child from all other processes.
#[derive(Clone, Debug)]
pub(super) struct Cookie(String);

impl Cookie {
    /// A cookie for one child; `process` is what all children of this process have in common.
    pub(super) fn new(process: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(format!(
            "{process}-{}",
            NEXT.fetch_add(1, Ordering::Relaxed)
        ))
    }

    /// The variable's value.
    pub(super) fn value(&self) -> &str {
        &self.0
    }

    /// Every living process that has the cookie.
    #[cfg(target_os = "linux")]
    pub(super) fn holders(&self) -> Vec<Stray> {
        let entry = format!("{VARIABLE}={}", self.0);
        let has_entry = |pid| has_variable(pid, |variable| variable == entry.as_bytes());
        super::census::numbers()
            .filter(|pid| has_entry(*pid))
            .filter_map(|pid| Stray::hold(rustix::process::Pid::from_raw(pid)?, || has_entry(pid)))
            .collect()
    }

    /// Every living process that has the cookie, as far as it can be known.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn holders(&self) -> Vec<Stray> {
        Vec::new()
    }
}

/// Whether the process was started with such a `NAME=value`.
#[cfg(target_os = "linux")]
pub(super) fn has_variable(pid: i32, is_it: impl Fn(&[u8]) -> bool) -> bool {
    // Unreadable: another user's, or gone. Empty: a zombie, or the kernel's.
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(is_it))
}

/// A process outside of its group, held so that its number cannot come to mean another.
#[derive(Debug)]
pub(super) struct Stray {
    #[cfg(target_os = "linux")]
    pid: rustix::process::Pid,
    /// Absent where the system has no such handles.
    #[cfg(target_os = "linux")]
    handle: Option<std::os::fd::OwnedFd>,
}

#[cfg(target_os = "linux")]
impl Stray {
    /// The process of this number, if it is the one that is meant.
    pub(super) fn hold(pid: rustix::process::Pid, is_it: impl Fn() -> bool) -> Option<Self> {
        use rustix::process::{PidfdFlags, pidfd_open};
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => Some(handle),
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => None,
            Err(_) => return None,
        };
        // Only what is held is sure to be what is looked at.
        is_it().then_some(Self { pid, handle })
    }

    /// Asks it to leave, or ends it.
    pub(super) fn signal(&self, kill: bool) {
        use rustix::process::{Signal, kill_process, pidfd_send_signal};
        let signal = if kill { Signal::KILL } else { Signal::TERM };
        let sent = match &self.handle {
            Some(handle) => pidfd_send_signal(handle, signal),
            None => kill_process(self.pid, signal),
        };
        if let Err(error) = sent {
            tracing::trace!(%error, "a stray process is gone already");
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Stray {
    /// Nothing is ever found.
    pub(super) fn signal(&self, _kill: bool) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn cookies_differ_and_are_found_by_their_whole_value() {
        let cookies = [Cookie::new("test"), Cookie::new("test")];
        assert_ne!(cookies[0].value(), cookies[1].value());
        #[expect(
            clippy::disallowed_methods,
            reason = "a stray is a process that the spawner does not know"
        )]
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .env(VARIABLE, cookies[0].value())
            .spawn()
            .unwrap();
        let longer = Cookie(format!("{}0", cookies[0].value()));
        let deadline = std::time::Duration::from_secs(60);
        let started = tokio::time::Instant::now();
        // Between fork and exec it still has our environment.
        while cookies[0].holders().is_empty() {
            assert!(started.elapsed() < deadline);
            std::thread::yield_now();
        }
        assert!(cookies[1].holders().is_empty() && longer.holders().is_empty());
        cookies[0]
            .holders()
            .iter()
            .for_each(|stray| stray.signal(true));
        assert!(!child.wait().unwrap().success());
        assert!(cookies[0].holders().is_empty());
    }
}

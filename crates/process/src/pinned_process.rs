//! A process that is pinned by a handle of the kernel.

/// A process, pinned by a handle so that its id cannot be reused.
#[derive(Debug)]
pub(crate) struct PinnedProcess {
    #[cfg(target_os = "linux")]
    pid: rustix::process::Pid,
    /// `None` if the system has no such handles.
    #[cfg(target_os = "linux")]
    handle: Option<std::os::fd::OwnedFd>,
}

#[cfg(target_os = "linux")]
impl PinnedProcess {
    /// Pins the process with this id if `is_it` confirms it.
    pub(super) fn pin(pid: rustix::process::Pid, is_it: impl Fn() -> bool) -> Option<Self> {
        use rustix::process::{PidfdFlags, pidfd_open};
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => Some(handle),
            Err(rustix::io::Errno::SRCH) => return None,
            // The system has no process handles, or this process may open no more files.
            Err(_) => None,
        };
        // Checked after pinning, when the id cannot change its meaning.
        is_it().then_some(Self { pid, handle })
    }

    /// Pins a child of this process, if it is alive. No file is read, so this is quick.
    pub(crate) fn pin_child(pid: i32) -> Option<Self> {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let child = Self::pin(Pid::from_raw(pid)?, || true)?;
        let id = match &child.handle {
            Some(handle) => WaitId::PidFd(std::os::fd::AsFd::as_fd(handle)),
            None => WaitId::Pid(child.pid),
        };
        let ended = match waitid(id, look) {
            // The system has such handles but cannot wait for them.
            Err(rustix::io::Errno::INVAL) => waitid(WaitId::Pid(child.pid), look),
            ended => ended,
        };
        matches!(ended, Ok(None)).then_some(child)
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Sends SIGKILL or SIGTERM.
    pub(super) fn signal(&self, kill: bool) {
        use rustix::process::Signal;
        self.send(if kill { Signal::KILL } else { Signal::TERM });
    }

    /// Stops the process with SIGSTOP, so that it starts no other. Returns whether it may be signalled.
    pub(crate) fn stop(&self) -> bool {
        self.send(rustix::process::Signal::STOP)
    }

    /// Kills the process. Returns whether it may be signalled.
    pub(crate) fn kill(&self) -> bool {
        self.send(rustix::process::Signal::KILL)
    }

    fn send(&self, signal: rustix::process::Signal) -> bool {
        use rustix::process::{kill_process, pidfd_send_signal};
        let sent = match &self.handle {
            Some(handle) => pidfd_send_signal(handle, signal),
            None => kill_process(self.pid, signal),
        };
        sent.is_ok()
    }

    /// Kills the process group that the process leads, if any: no fork can escape that.
    pub(crate) fn kill_group(&self) {
        use rustix::process::{Signal, getpgid, kill_process_group};
        if getpgid(Some(self.pid)) == Ok(self.pid) {
            // It may have ended meanwhile.
            let _: rustix::io::Result<()> = kill_process_group(self.pid, Signal::KILL);
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl PinnedProcess {
    /// Has no effect: no process is found on this system.
    pub(super) fn signal(&self, _kill: bool) {}
}

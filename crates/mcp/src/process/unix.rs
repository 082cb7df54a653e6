//! What only the operating system can do: process groups and the parent-death signal.
//! The one place with `unsafe`.

use rustix::process::{Pid, Signal};
use tokio::process::Command;

/// Puts the child into a group of its own and, on Linux, has the kernel kill it with the thread
/// that spawns it.
pub(super) fn isolate(command: &mut Command) {
    command.process_group(0);
    #[cfg(target_os = "linux")]
    die_with_parent(command);
}

#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "a hook between fork and exec is unsafe to register"
)]
fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    let hook = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the line above; then nobody would send the signal.
        if rustix::process::getppid() != Some(parent) {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    };
    // SAFETY: between fork and exec the hook makes two system calls and nothing else: it allocates
    // no memory, takes no lock, and touches no state of the parent.
    unsafe {
        command.pre_exec(hook);
    }
}

/// A process group, named by its leader.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group(Pid);

impl Group {
    /// The group that a child of [`isolate`] leads.
    pub(super) fn of_leader(pid: u32) -> Option<Self> {
        Pid::from_raw(i32::try_from(pid).ok()?).map(Self)
    }

    /// Asks every member to leave. Whether there was one.
    pub(super) fn terminate(self) -> bool {
        rustix::process::kill_process_group(self.0, Signal::TERM).is_ok()
    }

    /// Ends every member. Whether there was one.
    pub(super) fn kill(self) -> bool {
        rustix::process::kill_process_group(self.0, Signal::KILL).is_ok()
    }

    /// Whether a member is left.
    pub(super) fn has_members(self) -> bool {
        rustix::process::test_kill_process_group(self.0).is_ok()
    }
}

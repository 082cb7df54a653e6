//! The second process of a broker on Linux: if one of the two dies, the other ends every descendant and itself. The
//! broker runs without a guard on macOS and in a program that contains it as a library.

mod deadline;
#[cfg(target_os = "linux")]
mod guarded;
#[cfg(target_os = "linux")]
mod kill_all;
#[cfg(target_os = "linux")]
mod run;
mod signals;

use std::io;

pub use deadline::Deadline;
pub use signals::{EndTimeout, ReloadSignals, Signals, await_end_without_guard, fail_large_writes};

/// Contains the process id of the guard and the cookie of the descendants; servers do not inherit it.
pub const VARIABLE: &str = "MCP_BROKER_GUARD";

/// Settings of the C library's allocator, unless the environment sets them. With one heap or more for each thread, a
/// soak of a million calls held a third more memory, and the memory kept growing. The minimum size of a block that is
/// mapped from the system and returned to it is fixed, since the library otherwise raises that size over time. It is
/// above the size of usual results: with 128 KiB, a call with a result of 100 KiB took a fifth more CPU, since its pages
/// were mapped again. Free memory at the end of a heap stays for the next calls, and is returned later
/// ([`trim_heap`](crate::trim_heap)). Servers do not inherit these settings.
pub const ALLOCATOR: [(&str, &str); 3] = [
    ("MALLOC_ARENA_MAX", "2"),
    ("MALLOC_MMAP_THRESHOLD_", "1048576"),
    ("MALLOC_TRIM_THRESHOLD_", "4194304"),
];

/// Whether the broker reads standard input. This decides its process group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Standard input is read.
    Standard,
    /// Standard input is not read.
    None,
}

/// The role of this process.
#[derive(Debug)]
pub enum ProcessRole {
    /// It was the guard, and the broker has ended: the code to exit with.
    Guard(u8),
    /// It is the broker, with its signals.
    Broker(Signals, ReloadSignals),
}

/// Prevents other processes of the same user from reading the environment, memory and open files of
/// this one, and core dumps. A program that it executes is not affected, so guard and broker each do
/// this first.
pub fn deny_inspection() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // An error is ignored: the other protections remain, and the log is not open yet.
        let _: rustix::io::Result<()> = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Starts the broker as a child of this process and guards it, or returns in that child. Must be called
/// before any thread is started, since signals are blocked for all threads.
pub fn enter(input: Input) -> io::Result<ProcessRole> {
    #[cfg(target_os = "linux")]
    {
        if let Some(guard) = guarded::find_guard() {
            let (signals, hangups) = signals::listen(Some(guard))?;
            // When this process dies, its descendants become children of the guard.
            crate::orphans::adopt()?;
            crate::cgroup::enable();
            return Ok(ProcessRole::Broker(signals, hangups));
        }
        let error = match run::run(input) {
            Ok(code) => return Ok(ProcessRole::Guard(code)),
            Err(error) => error,
        };
        let (signals, hangups) = signals::listen(None)?;
        tracing::warn!(%error, "the broker runs without a guard");
        Ok(ProcessRole::Broker(signals, hangups))
    }
    // Only a guard uses it.
    #[cfg(not(target_os = "linux"))]
    {
        let _ = input;
        let (signals, hangups) = signals::listen(None)?;
        Ok(ProcessRole::Broker(signals, hangups))
    }
}

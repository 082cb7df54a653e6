//! The second process of a broker on Linux: whichever of the two dies, the other ends every
//! descendant and goes. A library that is part of another program has no guard, nor has macOS.

mod deadline;
#[cfg(target_os = "linux")]
mod guarded;
#[cfg(target_os = "linux")]
mod kill_all;
#[cfg(target_os = "linux")]
mod run;
mod signals;

use std::io;
use std::sync::OnceLock;

use crate::random_u64;

pub use deadline::Deadline;
pub use signals::{ReloadSignals, Signals, fail_large_writes};

/// Tells the broker who guards it, and by what its descendants are known; no server gets it.
pub const VARIABLE: &str = "MCP_BROKER_GUARD";

/// Settings of the C library's allocator, unless the environment has its own. With one heap or more for
/// each thread, a soak of a million calls held a third more memory, which kept growing. The size from
/// which a block is mapped from the system and returned to it is fixed, since the library otherwise
/// raises that size over time. Servers do not inherit these settings.
pub const ALLOCATOR: [(&str, &str); 2] = [
    ("MALLOC_ARENA_MAX", "2"),
    ("MALLOC_MMAP_THRESHOLD_", "131072"),
];

/// Where the broker reads from, which decides about its place at a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Standard input is read all the time.
    Standard,
    /// Standard input is not needed.
    None,
}

/// What this process is from here on.
#[derive(Debug)]
pub enum ProcessRole {
    /// It was the guard, and everything is over: the code to exit with.
    Guard(u8),
    /// It is the broker, which takes its orders from signals.
    Broker(Signals, ReloadSignals),
}

/// Keeps other processes of the same user from looking into this one: its environment, memory and
/// open files are for root alone, and it leaves no core dump. A program that it executes is not
/// affected, so guard and broker do this each by itself, before anything else.
pub fn deny_inspection() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // An error is ignored: the other protections still hold, and there is no log yet.
        let _: rustix::io::Result<()> = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Starts the broker as a child of this process and guards it, or, in that child, goes on. Comes
/// before any thread is started, since signals are taken from all of them.
pub fn enter(input: Input) -> io::Result<ProcessRole> {
    #[cfg(target_os = "linux")]
    {
        if let Some(guard) = guarded::find_guard() {
            let (signals, hangups) = signals::listen(Some(guard))?;
            // When this process dies, all of its descendants come to the guard.
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
    // Only a guard has a choice.
    #[cfg(not(target_os = "linux"))]
    {
        let _ = input;
        let (signals, hangups) = signals::listen(None)?;
        Ok(ProcessRole::Broker(signals, hangups))
    }
}

/// A value of this broker alone, in the environment of every server and of whatever it starts.
pub fn cookie() -> &'static str {
    COOKIE.get_or_init(|| format!("{:016x}{:016x}", random_u64(), random_u64()))
}

static COOKIE: OnceLock<String> = OnceLock::new();

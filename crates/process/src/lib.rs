//! Child processes: how they are started, how they and their descendants are ended, and the guard that
//! ends them if the broker dies. Independent of MCP, of sources and of the protocol on the pipes.

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("the broker runs on Linux and macOS only");

#[cfg(target_os = "linux")]
mod cgroup;
mod child;
#[cfg(target_os = "linux")]
mod children;
mod containers;
mod cookie;
mod descendants;
mod error;
mod executable;
mod file_limit;
pub mod guard;
mod lookup;
mod orphans;
mod pinned_process;
#[cfg(target_os = "linux")]
mod proc_table;
pub mod program;
mod random;
mod reaper;
mod spawner;
mod spec;
mod stderr;
mod stderr_log;
mod stderr_tap;
mod stop_deadline;
mod unix;

pub use child::{Ending, Process, ProcessHandle, StopStage};
pub use error::{ExitReport, SpawnError};
pub use file_limit::raise_file_limit;
pub use lookup::search_folders;
pub use random::random_u64;
pub use reaper::all_ended;
pub use spec::{ContainerSpec, ProcessSpec, StopGrace};
pub use stderr::StderrTail;
pub use stderr_tap::{StderrTap, TappedLine};
pub use stop_deadline::StopDeadline;
pub use unix::trim_heap;

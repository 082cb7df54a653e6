//! The broker's MCP client over stdio: processes, framing, protocol eras, sessions and supervision.
//!
//! Knows nothing of trees, paths of tools, or surfaces: a tool is an upstream name here, arguments
//! and results are raw JSON bytes. The data path never parses what it only forwards.

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("the broker runs on Linux and macOS only");

mod batch;
mod buffer;
mod connection;
mod envelope;
mod environment;
mod examine;
mod executable;
mod failure;
mod framing;
#[doc(hidden)]
pub mod fuzzing;
pub mod guard;
mod handshake;
mod launch;
mod list;
mod lookup;
mod memory;
mod process;
mod repair;
mod request;
mod rpc_error;
mod scan;
mod session;
mod source;
mod startup;
mod status;
mod subscription;
mod turns;

pub use buffer::reserve;
pub use connection::RawResult;
pub use environment::Environment;
pub use examine::Examination;
pub use failure::{CallFailure, ExitReport, SourceFailure};
pub use launch::{Launch, Timing, resolve};
pub use memory::{Account, Charge, MemoryBudget, NoRoom, SMALL_BYTES, Size, UNCHARGED_BYTES};
#[cfg(any(test, feature = "scripted"))]
#[doc(hidden)]
pub use process::scripted;
pub use process::{StderrTail, all_ended, trim_heap};
pub use session::Session;
pub use source::{Judge, SessionHandle, Settings, Source, Verdict};
pub use status::{Counters, State, Status};
pub use turns::Turns;

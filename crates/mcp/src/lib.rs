//! The broker's MCP client: links to servers, framing, protocol eras, sessions and supervision.
//!
//! Knows nothing of trees, paths of tools, or surfaces: a tool is an upstream name here, arguments
//! and results are raw JSON bytes. The data path never parses what it only forwards.

mod batch;
mod buffer;
mod concurrency;
mod connection;
mod envelope;
mod environment;
mod examine;
mod failure;
mod framing;
#[doc(hidden)]
pub mod fuzzing;
mod handshake;
mod link;
mod list;
mod memory;
mod repair;
mod request;
mod rpc_error;
mod scan;
#[cfg(any(test, feature = "scripted"))]
#[doc(hidden)]
pub mod scripted;
mod session;
mod source;
mod spec;
mod startup;
mod status;
mod subscription;

pub use buffer::reserve;
pub use concurrency::ConcurrencyLimits;
pub use connection::RawResult;
pub use environment::Environment;
pub use examine::Examination;
pub use failure::{CallFailure, SourceFailure};
pub use memory::{Account, Charge, MemoryBudget, NoRoom, SMALL_BYTES, Size, UNCHARGED_BYTES};
pub use session::Session;
pub use source::{Judge, SessionHandle, Settings, Source, Verdict};
pub use spec::{Endpoint, SourceSpec, Timing, resolve};
pub use status::{Counters, State, Status};

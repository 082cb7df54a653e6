//! The broker's MCP client: links to servers, handshake, sessions and supervision.
//!
//! Independent of trees, paths of tools, and surfaces: a tool is an upstream name here, arguments and
//! results are raw JSON bytes. The data path never parses bytes that it only forwards.

mod concurrency;
mod connection;
mod environment;
mod event_text;
mod events;
mod examine;
mod failure;
#[doc(hidden)]
pub mod fuzzing;
mod handshake;
mod instance;
mod link;
mod list;
mod log_level;
mod request;
mod rpc_error;
#[cfg(any(test, feature = "scripted"))]
#[doc(hidden)]
pub mod scripted;
mod session;
mod spec;
mod startup;
mod status;
mod subscription;
#[cfg(test)]
mod test_spec;

pub use concurrency::ConcurrencyLimits;
pub use connection::RawResult;
pub use environment::Environment;
pub use events::{CallEvent, CallEvents, LogMessage, Progress, WantedEvents};
pub use examine::ServerExam;
pub use failure::{CallFailure, SourceFailure};
pub use instance::{DriftCheck, Instance, SessionHandle, SourceSettings, Verdict};
pub use log_level::AskedLogLevel;
pub use session::{CallTime, Session, ToolCall};
pub use spec::{Endpoint, SourceSpec, Timing, resolve};
pub use status::{Counters, State, Status};

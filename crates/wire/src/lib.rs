//! JSON-RPC and MCP as bytes, for both sides of the broker: framing, messages in and out, ids, protocol
//! revisions. Pure: no IO, no async.

mod batch;
mod envelope;
pub mod era;
mod error;
mod framer;
#[doc(hidden)]
pub mod fuzzing;
pub mod header_value;
mod id;
mod lenient;
mod log_level;
mod members;
mod message;
pub mod protocol;
mod raw;
mod repair;
mod scan;
mod server_line;
mod sse;
mod strict;
pub mod write;

pub use batch::Batch;
pub use error::RpcError;
pub use framer::{Frame, Framer, LineLimit};
pub use id::{Id, MAX_ID_BYTES};
pub use log_level::LogLevel;
pub use members::{JsonMembers, valid_string};
pub use message::{Incoming, Problem, cancel_reason, cancelled_request};
pub use protocol::Era;
pub use raw::Raw;
pub use scan::Peer;
pub use server_line::{Messages, ServerLine, read_server_line};
pub use sse::{SseDecoder, SseError, SseEvent};
pub use strict::{ClientLine, read_client_line};

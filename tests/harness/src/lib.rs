//! What whole-binary tests share: running programs, a small HTTP client, a direct MCP client.
//!
//! Shares no code with the broker, so that both sides cannot be wrong in the same way.

mod broker;
mod chaos;
mod http;
mod mcp;
mod program;
mod refusal;

pub use broker::Broker;
pub use chaos::Chaos;
pub use http::{Response, get, post, post_bytes, raw, read, request, send};
pub use mcp::DirectServer;
pub use program::{Output, Run, binary, children_of, guarded_by, is_alive, wait_until};
pub use refusal::{named, refusal};

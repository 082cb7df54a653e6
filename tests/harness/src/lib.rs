//! What whole-binary tests share: running programs, a small HTTP client, a direct MCP client.
//!
//! Shares no code with the broker, so that both sides cannot be wrong in the same way.

mod broker;
mod http;
mod mcp;
mod program;

pub use broker::Broker;
pub use http::{Response, get, post, raw, request};
pub use mcp::DirectServer;
pub use program::{Output, Run, binary, children_of, is_alive, wait_until};

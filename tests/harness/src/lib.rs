//! Helpers of tests of whole binaries: running programs, a small HTTP client, a direct MCP client.
//!
//! Shares no code with the broker, so that both sides cannot be wrong in the same way.

mod alone;
mod bench;
mod broker;
pub mod callers;
mod chaos;
mod expected;
pub mod faults;
pub mod figure;
mod flood;
mod http;
mod keep_alive;
mod load;
mod mcp;
pub mod mcp_http;
mod program;
mod refusal;
mod resources;
mod tally;
mod terminal;
mod unread;

pub use alone::{again, alone};
pub use bench::{Bench, contains, node};
pub use broker::Broker;
pub use chaos::Chaos;
pub use expected::assert_expected;
pub use flood::{FLOOD, assert_inert, flooded, flooded_places};
pub use http::{Response, get, post, post_bytes, raw, read, request, send};
pub use keep_alive::KeepAlive;
pub use load::{WholeMachine, whole_machine};
pub use mcp::DirectServer;
pub use program::{
    Daemon, Output, Run, binary, children_of, guarded_by, is_alive, wait_until, wait_within,
};
pub use refusal::{named, refusal};
pub use resources::{ResourceUsage, processor_time, thread_names};
pub use tally::{CallOutcome, Tally, nonce};
pub use terminal::on_terminal;
pub use unread::UnreadPipe;

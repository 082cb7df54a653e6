//! Helpers of tests of whole binaries: running programs, a small HTTP client, a direct MCP client.
//!
//! Shares no code with the broker, so that both sides cannot be wrong in the same way.

pub mod access;
mod alone;
mod bench;
mod binaries;
mod broker;
pub mod callers;
mod chaos;
mod chaos_http;
mod docker;
mod expected;
pub mod faults;
pub mod figure;
mod flood;
mod http;
mod http_stage;
mod keep_alive;
mod listening;
mod load;
mod mcp;
mod mcp_direct;
pub mod mcp_http;
mod namespace;
mod official;
pub mod otlp;
mod program;
mod proxy;
mod refusal;
mod resources;
mod tally;
mod tap;
mod terminal;
mod tls;
mod turn;
mod unread;
pub mod websocket;

pub use alone::{again, alone};
pub use bench::{Bench, contains, node};
pub use binaries::{binary, cargo, fixture_config};
pub use broker::Broker;
pub use chaos::Chaos;
pub use chaos_http::{ChaosServer, http_script, on_echo};
pub use docker::StandInDocker;
pub use expected::{assert_expected, text_difference};
pub use flood::{FLOOD, assert_inert, assert_no_commands, flooded, flooded_places};
pub use http::{Response, get, post, post_bytes, raw, read, request, send};
pub use http_stage::{HttpSources, HttpStage};
pub use keep_alive::KeepAlive;
pub use listening::ListeningServer;
pub use load::{WholeMachine, whole_machine};
pub use mcp::{DirectServer, json_text, tree_paths};
pub use mcp_direct::DirectHttpServer;
pub use namespace::{
    as_process_1, has_mount_namespaces, has_process_namespaces, in_mount_namespace,
};
pub use official::{official_clients, official_python, private_node};
pub use program::{
    Daemon, Output, Run, children_of, copy_program, guarded_by, is_alive, wait_until, wait_within,
};
pub use proxy::Proxy;
pub use refusal::{named, refusal};
pub use resources::{ResourceUsage, processor_time, raise_file_limit, thread_names};
pub use tally::{CallOutcome, Tally, nonce};
pub use tap::{Tap, statuses};
pub use terminal::on_terminal;
pub use tls::{TlsFront, certificate};
pub use turn::changed_meanwhile;
pub use unread::UnreadPipe;

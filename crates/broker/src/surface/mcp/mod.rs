//! The broker as an MCP server, in both eras. [`protocol`] has the methods, [`exposure`] what a client
//! sees in its mode; the transports `stdio` and `http` carry the messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use broker_model::config::McpMode;
use broker_wire::LogLevel;

mod call;
mod call_task;
mod connection;
mod cut_note;
mod error_text;
mod exposure;
pub(crate) mod http;
mod in_flight;
mod listing_text;
mod notifications;
mod protocol;
mod reply;
mod request_meta;
mod result;
mod schema_text;
mod server_error;
pub(crate) mod stdio;
mod subscription;
mod tools;

use super::request_id::RequestIds;
use crate::core::{Core, Identity};

/// A client: who it is, and what it sees. A legacy session and a connection over stdio have one for their
/// whole life, a modern request over HTTP has its own.
#[derive(Debug)]
struct Client {
    core: Core,
    identity: Identity,
    mode: McpMode,
    ids: Arc<RequestIds>,
    log_level: Arc<SharedLogLevel>,
}

impl Client {
    fn new(core: Core, identity: Identity, mode: McpMode, ids: Arc<RequestIds>) -> Self {
        Self {
            core,
            identity,
            mode,
            ids,
            log_level: Arc::default(),
        }
    }

    /// The same client, for a request of a session that was sent with another credential of the same caller.
    fn with_identity(self: &Arc<Self>, identity: &Identity) -> Arc<Self> {
        let client = Self::new(
            self.core.clone(),
            identity.seeing_as(&self.identity),
            self.mode,
            Arc::clone(&self.ids),
        );
        Arc::new(Self {
            log_level: Arc::clone(&self.log_level),
            ..client
        })
    }

    /// Sets the level of the log messages that the client gets.
    fn set_log_level(&self, level: LogLevel) {
        self.log_level.set(level);
        self.core.ask_for_logs(level);
    }
}

/// The level that `logging/setLevel` sets. A call uses the level of its begin.
#[derive(Debug, Default)]
struct SharedLogLevel(AtomicU8);

impl SharedLogLevel {
    /// The level; `None` before it is set.
    fn get(&self) -> Option<LogLevel> {
        let index = usize::from(self.0.load(Ordering::Relaxed)).checked_sub(1)?;
        LogLevel::ALL.get(index).copied()
    }

    fn set(&self, level: LogLevel) {
        let index = LogLevel::ALL.iter().position(|known| *known == level);
        let stored = index.map_or(0, |index| index as u8 + 1);
        self.0.store(stored, Ordering::Relaxed);
    }
}

//! The parts that all surfaces share. A surface authenticates callers, checks requests, and translates answers into its
//! protocol; it reaches servers only through the trait `Broker`. The surface for HTTP is in `broker-surface-http`, the
//! protocol of MCP and the surface over stdio in `broker-surface-mcp`.

use std::io;
use std::sync::Arc;

use broker_metrics::ScrapedState;
use tokio_util::sync::CancellationToken;

mod caller_share;
mod contain;
pub mod idempotency_key;
pub mod job_json;
pub mod meta;
mod request_id;
mod stream_state;
mod trace;

pub use caller_share::CallerShare;
pub use contain::{CaughtPanic, contain};
pub use request_id::RequestIds;
pub use stream_state::StreamState;
pub use trace::{ClientPlace, trace_of, trace_of_rpc};

/// A surface. The app starts, reloads and stops it. It belongs to a core, whose drain decides when to refuse calls and
/// when to end.
pub trait Surface: Send + Sync + 'static {
    /// The name of the surface, for messages.
    const NAME: &'static str;

    /// Whether the surface has one client. That client gets the reason of a refused start until it leaves.
    const EXPLAINS_REFUSAL: bool = false;

    /// The source of connections; `()` if it uses the pipes of the process.
    type Listener: Send;

    /// The part of a config for the surface; a reload may replace it.
    type Settings;

    /// Applies other settings to later requests.
    fn apply(&self, settings: Self::Settings);

    /// Ends the rights of callers that these settings do not have, before the settings are applied.
    fn end_rights(&self, _settings: &Self::Settings) {}

    /// Serves until the drain is finished, then until the last replies are sent.
    fn serve(
        self: Arc<Self>,
        listener: Self::Listener,
    ) -> impl Future<Output = io::Result<()>> + Send;

    /// Returns the state that metrics show, with what only the surface knows; `None` if it knows nothing of it.
    fn scraped_state(&self) -> Option<ScrapedState> {
        None
    }

    /// Cancelled once the only client has left. This ends the broker. Never cancelled by a surface with several
    /// clients.
    fn ended(&self) -> CancellationToken {
        CancellationToken::new()
    }

    /// Cancelled once the only client has left and all of its requests are answered.
    fn idle(&self) -> CancellationToken {
        CancellationToken::new()
    }
}

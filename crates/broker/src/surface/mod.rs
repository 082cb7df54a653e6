//! The ways in. A surface decides who calls, checks what arrives, and turns core's answers into its
//! own protocol; it never talks to a server except through `core`. No surface imports another: the
//! meta-tools, which both offer, are in `meta`.

use std::io;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

pub(crate) mod http;
pub(crate) mod mcp;
mod meta;
mod request_id;

/// The part of a config that surfaces follow; a reload may bring another.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Which `Host` and `Origin` may be named; without effect where requests have none.
    pub(crate) hosts: http::HostPolicy,
    /// `limits.body_bytes`
    pub(crate) body_bytes: usize,
}

/// A way in, which the app starts, reloads and stops. A surface is made over a core, whose drain tells
/// it when to refuse calls and when to end.
pub(crate) trait Surface: Send + Sync + 'static {
    /// What is served, for messages.
    const NAME: &'static str;

    /// The source of connections; nothing where the pipes of the process are the only one.
    type Listener: Send;

    /// Puts other settings into force, for requests that come later.
    fn apply(&self, settings: Settings);

    /// Serves until the drain is finished, then until the last replies are sent.
    fn serve(
        self: Arc<Self>,
        listener: Self::Listener,
    ) -> impl Future<Output = io::Result<()>> + Send;

    /// Cancelled once the only client has left, which ends the broker. Never cancelled where clients
    /// come and go.
    fn ended(&self) -> CancellationToken {
        CancellationToken::new()
    }

    /// Cancelled once the only client has left and all of its requests are answered.
    fn idle(&self) -> CancellationToken {
        CancellationToken::new()
    }
}

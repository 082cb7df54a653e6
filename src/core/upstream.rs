//! The seam to the servers: a supervised source, or in tests a stand-in with a script.

use std::time::Duration;

use broker_mcp::{CallFailure, Source, State, Status};
use bytes::Bytes;
use tokio::sync::watch;

/// A source and what it last said of itself.
pub(super) struct Link {
    pub(super) upstream: Upstream,
    status: watch::Receiver<Status>,
}

impl Link {
    pub(super) fn new(upstream: Upstream) -> Self {
        let status = upstream.status();
        Self { upstream, status }
    }

    /// Whether it takes calls right now: started, listed and judged.
    pub(super) fn is_ready(&self) -> bool {
        self.status.borrow().state == State::Ready
    }
}

/// Where calls go. Cheap to clone.
#[derive(Clone)]
pub(super) enum Upstream {
    /// A real server.
    Server(Source),
    /// A stand-in.
    #[cfg(test)]
    Fake(std::sync::Arc<super::fake::Fake>),
}

impl Upstream {
    /// Calls a tool by its upstream name.
    pub(super) async fn call(
        &self,
        tool: &str,
        args: &[u8],
        timeout: Duration,
    ) -> Result<Bytes, CallFailure> {
        match self {
            Self::Server(source) => source.call(tool, args, timeout).await,
            #[cfg(test)]
            Self::Fake(fake) => fake.call(tool, args, timeout).await,
        }
    }

    /// Its status, now and whenever it changes.
    pub(super) fn status(&self) -> watch::Receiver<Status> {
        match self {
            Self::Server(source) => source.status(),
            #[cfg(test)]
            Self::Fake(fake) => fake.status(),
        }
    }

    /// Stops it; calls in flight fail.
    pub(super) async fn stop(&self) {
        match self {
            Self::Server(source) => source.stop().await,
            #[cfg(test)]
            Self::Fake(fake) => fake.stop().await,
        }
    }
}

//! The seam to the servers: a supervised source, or in tests a stand-in with a script.

use std::sync::Arc;
use std::time::Duration;

use broker_mcp::{CallFailure, Judge, Launch, RawResult, SessionHandle, Source, Status};
use broker_model::mcp::Era;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

/// Where calls go. Cheap to clone.
#[derive(Clone)]
pub(super) enum Upstream {
    /// A real server.
    Server(Source),
    /// A stand-in.
    #[cfg(test)]
    Fake(Arc<super::fake::Fake>),
}

/// What takes one call: a session whose verdict was taken in before it was handed out.
pub(super) enum Session {
    /// A real server's.
    Server(SessionHandle),
    /// A stand-in's.
    #[cfg(test)]
    Fake(Arc<super::fake::Fake>),
}

impl Upstream {
    /// The session that takes calls right now, if there is one.
    pub(super) fn ready(&self) -> Option<Session> {
        match self {
            Self::Server(source) => source.ready().map(Session::Server),
            #[cfg(test)]
            Self::Fake(fake) => fake.is_ready().then(|| Session::Fake(fake.clone())),
        }
    }

    /// The same, waited for and asked for.
    pub(super) async fn session(&self, time: Duration) -> Result<Session, CallFailure> {
        match self {
            Self::Server(source) => source.session(time).await.map(Session::Server),
            #[cfg(test)]
            Self::Fake(fake) => {
                fake.started().await;
                Ok(Session::Fake(fake.clone()))
            }
        }
    }

    /// Starts one that may take its place; see [`Source::start_beside`].
    pub(super) fn start_beside(
        &self,
        launch: Launch,
        era: Option<Era>,
        judge: Arc<dyn Judge>,
        tasks: &TaskTracker,
    ) -> Self {
        Self::Server(match self {
            Self::Server(source) => source.start_beside(launch, era, judge, tasks),
            #[cfg(test)]
            Self::Fake(_) => Source::start(launch, era, judge, tasks),
        })
    }

    /// How long it may take at its next start.
    pub(super) fn set_startup_timeout(&self, time: Duration) {
        match self {
            Self::Server(source) => source.set_startup_timeout(time),
            #[cfg(test)]
            Self::Fake(_) => {}
        }
    }

    /// Whether both are the same one.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Server(source), Self::Server(other)) => source.is(other),
            #[cfg(test)]
            (Self::Fake(fake), Self::Fake(other)) => Arc::ptr_eq(fake, other),
            #[cfg(test)]
            _ => false,
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

    /// Stops it, within about `time`; calls in flight fail.
    pub(super) async fn stop_within(&self, time: Duration) {
        match self {
            Self::Server(source) => source.stop_within(time).await,
            #[cfg(test)]
            Self::Fake(fake) => fake.stop().await,
        }
    }
}

impl Session {
    /// Calls a tool by its upstream name.
    pub(super) async fn call(
        &self,
        tool: &str,
        args: &[u8],
        timeout: Duration,
    ) -> Result<RawResult, CallFailure> {
        match self {
            Self::Server(session) => session.call(tool, args, timeout).await,
            #[cfg(test)]
            Self::Fake(fake) => fake.call(tool, args, timeout).await,
        }
    }
}

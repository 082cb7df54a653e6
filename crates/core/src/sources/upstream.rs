//! The interface to the servers: a supervised source, or in tests a scripted one.

use std::sync::Arc;
use std::time::Duration;

#[cfg(test)]
use broker_mcp::SourceFailure;
use broker_mcp::{
    CallFailure, CallTime, DriftCheck, Instance, RawResult, RemoteTask, ServerCall, SessionHandle,
    SourceSettings, SourceSpec, State, Status,
};
#[cfg(test)]
use broker_model::SourceCause;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

/// The receiver of calls. Cheap to clone.
#[derive(Clone)]
pub(crate) enum Upstream {
    /// A real server, as one process or several.
    Server(Arc<[Instance]>),
    /// A scripted source.
    #[cfg(test)]
    Fake(Arc<super::fake::Fake>),
}

/// A session that takes one call. Its verdict was applied before the session was returned.
pub(crate) enum Session {
    /// The session of a server.
    Server(SessionHandle),
    /// The session of a fake.
    #[cfg(test)]
    Fake(Arc<super::fake::Fake>),
}

impl Upstream {
    /// Starts the number of processes in `spec`; `locked` is the revision of the lock, and `drift_check` makes the check of each. They share the counters of the
    /// source in `beside` and may replace it.
    pub(crate) fn start(
        spec: &SourceSpec,
        locked: Option<&'static str>,
        drift_check: impl Fn(usize) -> Arc<dyn DriftCheck>,
        tasks: &TaskTracker,
        beside: Option<&Self>,
    ) -> Self {
        let mut all: Vec<Instance> = Vec::with_capacity(spec.instances);
        for instance in 0..spec.instances {
            let drift_check = drift_check(instance);
            let before = beside.and_then(|other| other.instance(instance));
            let (first, spec) = (all.first(), spec.clone());
            all.push(match (before, first) {
                (Some(before), _) => before.start_beside(spec, locked, drift_check, tasks, true),
                (None, Some(first)) => first.start_beside(spec, locked, drift_check, tasks, false),
                (None, None) => Instance::start(spec, locked, drift_check, tasks),
            });
        }
        Self::Server(all.into())
    }

    fn instance(&self, instance: usize) -> Option<&Instance> {
        match self {
            Self::Server(all) => all.get(instance),
            #[cfg(test)]
            Self::Fake(_) => None,
        }
    }

    /// Returns the least busy session that takes calls now, if there is one.
    #[inline]
    pub(crate) fn ready(&self) -> Option<Session> {
        match self {
            Self::Server(all) => SessionHandle::least_busy(all).map(Session::Server),
            #[cfg(test)]
            Self::Fake(fake) => fake.is_ready().then(|| Session::Fake(fake.clone())),
        }
    }

    /// Records that a server of the source answered a call at this time.
    #[inline]
    pub(crate) fn note_answer(&self, at: Instant) {
        match self {
            // They share the time.
            Self::Server(all) => all[0].note_answer(at),
            #[cfg(test)]
            Self::Fake(_) => {}
        }
    }

    /// Whether a process takes calls now, and asks for no pause.
    pub(crate) fn is_usable(&self) -> bool {
        match self {
            Self::Server(all) => all.iter().any(Instance::is_usable),
            #[cfg(test)]
            Self::Fake(fake) => fake.is_ready(),
        }
    }

    /// Waits for a session, and wakes a source that is down.
    pub(crate) async fn session(&self, time: Duration) -> Result<Session, CallFailure> {
        match self {
            Self::Server(all) => {
                // Prefers a source that is already starting, then one that can be woken. A process that
                // has not yet sent an announced listing cannot be woken.
                let rank = |one: &&Instance| match &*one.status().borrow() {
                    status if status.is_recheck_pending() => 2,
                    status if status.state == State::Starting => 0,
                    _ => 1,
                };
                let one = all.iter().min_by_key(rank).unwrap_or(&all[0]);
                one.session(time).await.map(Session::Server)
            }
            #[cfg(test)]
            Self::Fake(fake) => {
                let started = tokio::time::timeout(time, fake.started()).await;
                started.map_err(|_| CallFailure::Unavailable {
                    failure: SourceFailure::new(SourceCause::StartupTimeout, "it is starting"),
                    retry_after: Some(time),
                })?;
                Ok(Session::Fake(fake.clone()))
            }
        }
    }

    /// Replaces the settings of every instance of the source.
    pub(crate) fn set(&self, settings: SourceSettings) {
        match self {
            Self::Server(all) => all.iter().for_each(|one| one.set(settings)),
            #[cfg(test)]
            Self::Fake(_) => {}
        }
    }

    /// Whether both are handles of one source.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Server(all), Self::Server(other)) => Arc::ptr_eq(all, other),
            #[cfg(test)]
            (Self::Fake(fake), Self::Fake(other)) => Arc::ptr_eq(fake, other),
            #[cfg(test)]
            _ => false,
        }
    }

    /// Returns the status of each of its processes, now and whenever it changes.
    pub(crate) fn statuses(&self) -> Vec<watch::Receiver<Status>> {
        match self {
            Self::Server(all) => all.iter().map(Instance::status).collect(),
            #[cfg(test)]
            Self::Fake(fake) => vec![fake.status()],
        }
    }

    /// Returns the last stderr lines of each of its processes.
    pub(crate) fn last_lines(&self) -> Vec<Vec<String>> {
        match self {
            Self::Server(all) => all.iter().map(Instance::last_lines).collect(),
            #[cfg(test)]
            Self::Fake(_) => Vec::new(),
        }
    }

    /// Returns the number of calls that wait for a place at its processes.
    pub(crate) fn waiting(&self) -> usize {
        match self {
            Self::Server(all) => all.iter().map(Instance::waiting).sum(),
            #[cfg(test)]
            Self::Fake(_) => 0,
        }
    }

    /// Stops the source within about `time`; calls in flight fail.
    pub(crate) async fn stop_within(&self, time: Duration) {
        match self {
            Self::Server(all) => {
                let stops = all.iter().map(|one| {
                    let one = one.clone();
                    async move { one.stop_within(time).await }
                });
                stops.collect::<JoinSet<()>>().join_all().await;
            }
            #[cfg(test)]
            Self::Fake(fake) => fake.stop().await,
        }
    }
}

impl Session {
    /// Returns the revision of MCP that its server and the broker use.
    pub(crate) fn revision(&self) -> &'static str {
        match self {
            Self::Server(session) => session.revision(),
            #[cfg(test)]
            Self::Fake(_) => broker_wire::protocol::MODERN,
        }
    }

    /// Calls a tool.
    #[inline]
    pub(crate) async fn call(
        &self,
        call: ServerCall<'_>,
        time: CallTime,
    ) -> Result<RawResult, CallFailure> {
        match self {
            Self::Server(session) => session.call(call, time).await,
            #[cfg(test)]
            Self::Fake(fake) => fake.call(call, time).await,
        }
    }

    /// Waits for the result of a task that the server made of a call.
    pub(crate) async fn follow(
        &self,
        task: &RemoteTask,
        call: ServerCall<'_>,
        time: CallTime,
    ) -> Result<RawResult, CallFailure> {
        match self {
            Self::Server(session) => session.follow(task, call.events, time).await,
            #[cfg(test)]
            Self::Fake(fake) => fake.call(call, time).await,
        }
    }
}

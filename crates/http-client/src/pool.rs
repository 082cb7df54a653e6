//! Connections that wait for their next request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use crate::connection::Connection;

/// Maximum time that an unused connection stays open. A call that is sent while the server closes its connection fails
/// and may have been executed; common servers close their connections after 5 seconds or more.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// Pause between two looks for connections that have expired, or that the server has closed.
const SWEEP_PAUSE: Duration = Duration::from_secs(1);

/// The unused connections to one origin.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Ordered by the start of their unused time.
    idle: Vec<Idle>,
    /// Whether a task closes those that expire.
    is_swept: bool,
}

#[derive(Debug)]
struct Idle {
    connection: Box<Connection>,
    since: Instant,
}

impl Idle {
    fn is_usable(&mut self, now: Instant) -> bool {
        now.duration_since(self.since) < IDLE_TIMEOUT && self.connection.is_idle()
    }
}

impl Pool {
    /// Takes the connection that was used last.
    pub(crate) fn take(&self) -> Option<Box<Connection>> {
        let mut now = None;
        loop {
            let mut last = self.state().idle.pop()?;
            if last.is_usable(*now.get_or_insert_with(Instant::now)) {
                return Some(last.connection);
            }
        }
    }

    /// Keeps a connection whose answer has been read, if it can take another request.
    pub(crate) fn put(self: &Arc<Self>, mut connection: Box<Connection>) {
        // Without a runtime no connection can be used again.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if !connection.is_idle() {
            return;
        }
        let mut state = self.state();
        let since = Instant::now();
        state.idle.push(Idle { connection, since });
        if !std::mem::replace(&mut state.is_swept, true) {
            runtime.spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Closes unused connections; returns whether some are left.
    fn close_unusable(&self) -> bool {
        let now = Instant::now();
        let mut state = self.state();
        let closed: Vec<_> = (state.idle)
            .extract_if(.., |idle| !idle.is_usable(now))
            .collect();
        state.is_swept = !state.idle.is_empty();
        let is_swept = state.is_swept;
        drop(state);
        drop(closed);
        is_swept
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes unused connections as long as there are some.
async fn sweep(pool: Weak<Pool>) {
    loop {
        sleep(SWEEP_PAUSE).await;
        if !pool.upgrade().is_some_and(|pool| pool.close_unusable()) {
            return;
        }
    }
}

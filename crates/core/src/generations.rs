//! The catalog that a core serves, and its replacement by another one while calls run. A replaced catalog is kept until
//! its last call has ended; its sources stop after that.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use broker_model::Diagnostic;
use broker_model::redact::Redactor;
use tokio::task::JoinSet;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::CallPath;
use crate::builder::SharedParts;
use crate::sources::fleet::STOP_TIMEOUT;
use crate::{Core, CoreBuilder, StartOutcome};

/// The maximum number of replaced catalogs whose calls are still running; no other catalog replaces one before.
const MAX_REPLACED: usize = 8;

/// The catalog in force, and those before it that still have calls.
pub(crate) struct Generations {
    current: ArcSwap<CallPath>,
    pub(crate) shared: SharedParts,
    replaced: Mutex<Vec<Arc<CallPath>>>,
    /// The grace of [`Core::shorten_stop`].
    stop_grace: OnceLock<Duration>,
    /// Held while a catalog is replaced.
    replacing: tokio::sync::Mutex<()>,
}

/// A catalog that was replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The digest of the catalog that is served now.
    pub catalog_digest: &'static str,
    /// The digest of the one before.
    pub before: &'static str,
}

/// The reason why a catalog was not replaced. The old catalog is still in use.
#[derive(Debug)]
pub enum ReplaceError {
    /// The new catalog and its config cannot be used.
    Unusable(Vec<Diagnostic>),
    /// A start with the new catalog would be refused.
    Refused(Box<StartOutcome>),
    /// Calls of earlier catalogs are still running.
    Busy,
    /// The broker is shutting down.
    NotRunning,
}

impl Generations {
    pub(crate) fn new(call_path: CallPath) -> Self {
        Self {
            shared: call_path.fleet.shared.clone(),
            current: ArcSwap::from_pointee(call_path),
            replaced: Mutex::default(),
            stop_grace: OnceLock::new(),
            replacing: tokio::sync::Mutex::new(()),
        }
    }

    pub(crate) fn current(&self) -> Arc<CallPath> {
        self.current.load_full()
    }

    /// Returns the catalog for one call. It is kept until the token is dropped.
    pub(crate) fn enter(&self) -> (Arc<CallPath>, TaskTrackerToken) {
        loop {
            let call_path = self.current();
            let token = call_path.active.token();
            // Counted before a replacement looks at the count, or the next catalog is used.
            if Arc::ptr_eq(&call_path, &self.current.load()) {
                return (call_path, token);
            }
        }
    }

    pub(crate) fn shorten_stop(&self, grace: Duration) {
        let _ = self.stop_grace.set(grace);
        self.current().fleet.shorten_stop(grace);
    }

    /// Stops all sources of every catalog within about `time`; pending calls fail at once.
    pub(crate) async fn stop_sources(&self, time: Duration) {
        let replaced = self.replaced().clone();
        let mut stops = JoinSet::new();
        for old in replaced {
            stops.spawn(async move { old.fleet.stop_upstreams(time).await });
        }
        self.current().fleet.stop_sources(time).await;
        while stops.join_next().await.is_some() {}
    }

    fn replaced(&self) -> MutexGuard<'_, Vec<Arc<CallPath>>> {
        self.replaced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the sources of a replaced catalog after its last call.
    fn retire(self: &Arc<Self>, old: Arc<CallPath>) {
        self.replaced().push(old.clone());
        let generations = self.clone();
        self.shared.tasks.spawn(async move {
            old.active.close();
            tokio::select! {
                () = old.active.wait() => {}
                () = generations.shared.drain.drained() => {}
            }
            old.fleet.stop_upstreams(STOP_TIMEOUT).await;
            generations
                .replaced()
                .retain(|known| !Arc::ptr_eq(known, &old));
        });
    }
}

impl Core {
    /// Replaces the catalog and the config, completely or not at all. The sources of the new catalog are started next
    /// to the running ones and compared with their lock; then new requests use the new catalog. Calls in progress end
    /// with the old one; its sources stop after them. `mask` gets the secrets of the new sources before one is started.
    pub async fn replace(
        &self,
        builder: CoreBuilder<'_>,
        mask: &dyn Fn(&Redactor),
    ) -> Result<Replacement, ReplaceError> {
        let generations = self.0.generations();
        let _turn = generations.replacing.lock().await;
        if generations.replaced().len() >= MAX_REPLACED {
            return Err(ReplaceError::Busy);
        }
        let old = generations.current();
        let reloading = old.fleet.reloading.lock().await;
        let builder = CoreBuilder {
            shared: Some(generations.shared.clone()),
            filters: old.fleet.filters.clone(),
            ..builder
        };
        let (memory_bytes, drain_time) = {
            let config = builder.read_config().map_err(ReplaceError::Unusable)?;
            (config.limits.memory_bytes, config.drain_time())
        };
        let new = Arc::new(crate::sources::setup::build(builder).map_err(ReplaceError::Unusable)?);
        if let Some(grace) = generations.stop_grace.get() {
            new.fleet.shorten_stop(*grace);
        }
        mask(&new.fleet.drift_state.redactor());
        new.fleet.start_sources();
        let draining = generations.shared.drain.draining();
        let outcome = tokio::select! {
            outcome = new.fleet.drift_state.gate.outcome() => Ok(outcome),
            () = draining.cancelled() => Err(ReplaceError::NotRunning),
        };
        let outcome = outcome.and_then(|outcome| match outcome.refuse {
            None => Ok(()),
            Some(_) => Err(ReplaceError::Refused(Box::new(outcome))),
        });
        if let Err(error) = outcome {
            new.fleet.stop_upstreams(STOP_TIMEOUT).await;
            return Err(error);
        }
        let replacement = Replacement {
            catalog_digest: new.catalog.catalog_digest,
            before: old.catalog.catalog_digest,
        };
        generations.shared.memory.set_limit(memory_bytes);
        generations.shared.drain.set_time(drain_time);
        generations.current.store(new.clone());
        new.fleet.drift_state.count_tool_change();
        drop(reloading);
        generations.retire(old);
        Ok(replacement)
    }
}

impl fmt::Debug for Generations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generations").finish_non_exhaustive()
    }
}

//! The keys of one issuer over time: one fetch at a time, not too often, and the last good set for a day.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use broker_config::identities::{Issuer, SignatureAlgorithm};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::fetch::{FetchError, Fetched, fetch};
use super::set::{KeyId, KeySet, NoKey, PublicKey};
use super::waits::KeyWaits;
use crate::clock::Clock;
use crate::error::{AuthError, TokenFault};
use crate::jwt::cache::TokenCache;

/// Minimum time between two fetches that tokens cause.
const MIN_FETCH_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum time of using a set after its fetch.
const SET_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// Time between two fetches in the background, if the issuer does not name an interval.
const REFRESH_INTERVAL: Duration = Duration::from_secs(3600);
/// Bounds of the time that the issuer names. The upper one leaves an hour for other attempts before the set is too old.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_secs(300);
const MAX_REFRESH_INTERVAL: Duration = Duration::from_secs(23 * 3600);
/// Time after a failed fetch in the background.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// Minimum time between two warnings.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// The keys of an issuer.
pub(crate) struct KeySource {
    issuer: Issuer,
    clock: Arc<dyn Clock>,
    /// Its tokens have this source, so that the source must not own it.
    cache: Weak<TokenCache>,
    tasks: TaskTracker,
    stop: CancellationToken,
    state: Mutex<SourceState>,
    /// The requests that wait for a fetch.
    waits: KeyWaits,
}

#[derive(Default)]
struct SourceState {
    /// The last good set, and the time of its fetch.
    set: Option<(Arc<KeySet>, Duration)>,
    /// The start time of the last fetch.
    begun_at: Option<Duration>,
    /// Closed when the current fetch ends.
    flight: Option<watch::Receiver<()>>,
    warned_at: Option<Duration>,
    next_refresh: Duration,
}

impl KeySource {
    /// Starts fetching the keys of an issuer, until `stop` is cancelled.
    pub(crate) fn start(
        issuer: &Issuer,
        clock: Arc<dyn Clock>,
        cache: &Arc<TokenCache>,
        tasks: &TaskTracker,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let source = Arc::new(Self {
            issuer: issuer.clone(),
            clock,
            cache: Arc::downgrade(cache),
            tasks: tasks.clone(),
            stop,
            state: Mutex::default(),
            waits: KeyWaits::default(),
        });
        tasks.spawn(source.clone().refresh_until_stopped());
        source
    }

    /// Whether another issuer of the config has its keys from the same place.
    pub(crate) fn is_of(&self, issuer: &Issuer) -> bool {
        self.issuer.issuer == issuer.issuer && self.issuer.jwks == issuer.jwks
    }

    /// Ends its fetches.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Returns the key of a token from this address. An unknown one is fetched, unless there was a fetch a short time
    /// ago.
    pub(crate) async fn key(
        self: &Arc<Self>,
        kid: Option<&str>,
        algorithm: SignatureAlgorithm,
        peer: IpAddr,
    ) -> Result<Arc<PublicKey>, AuthError> {
        if let Some(found) = self.find(kid, algorithm) {
            match found {
                Ok(key) => return Ok(key),
                Err(NoKey::Ambiguous) => return Err(AuthError::TokenInvalid(TokenFault::Key)),
                Err(NoKey::Unknown) => {}
            }
        }
        self.fetch_if_due(peer).await?;
        match self.find(kid, algorithm) {
            Some(found) => found.map_err(|_| AuthError::TokenInvalid(TokenFault::Key)),
            None => Err(AuthError::Unavailable),
        }
    }

    /// Finds the key in the set; `None` without a set that may be used.
    fn find(
        &self,
        kid: Option<&str>,
        algorithm: SignatureAlgorithm,
    ) -> Option<Result<Arc<PublicKey>, NoKey>> {
        Some(self.usable_set()?.find(kid, algorithm))
    }

    fn usable_set(&self) -> Option<Arc<KeySet>> {
        let now = self.clock.elapsed();
        let state = self.state();
        let (set, at) = state.set.as_ref()?;
        (now.saturating_sub(*at) < SET_LIFETIME).then(|| set.clone())
    }

    /// Whether there is a set that may be used.
    pub(crate) fn is_usable(&self) -> bool {
        self.usable_set().is_some()
    }

    /// Whether the last good set has this key.
    pub(crate) fn has(&self, id: &KeyId) -> bool {
        let state = self.state();
        state.set.as_ref().is_some_and(|(set, _)| set.has(id))
    }

    /// Waits for the current fetch, or for one that begins now if the last one is long enough ago. Fails at once if too
    /// many requests wait.
    async fn fetch_if_due(self: &Arc<Self>, peer: IpAddr) -> Result<(), AuthError> {
        let flight = {
            let mut state = self.state();
            let now = self.clock.elapsed();
            let is_due = state
                .begun_at
                .is_none_or(|at| now.saturating_sub(at) >= MIN_FETCH_INTERVAL);
            match &state.flight {
                Some(flight) => Some(flight.clone()),
                None if is_due => Some(self.begin(&mut state)),
                None => None,
            }
        };
        if flight.is_some() {
            let _wait = self.waits.enter(peer).ok_or(AuthError::Unavailable)?;
            wait(flight).await;
        }
        Ok(())
    }

    async fn refresh_until_stopped(self: Arc<Self>) {
        loop {
            let flight = {
                let mut state = self.state();
                let flight = state.flight.clone();
                flight.unwrap_or_else(|| self.begin(&mut state))
            };
            wait(Some(flight)).await;
            let next = self.state().next_refresh;
            tokio::select! {
                () = sleep(next) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Begins a fetch as a task, so that a caller that leaves does not stop it for the others.
    fn begin(self: &Arc<Self>, state: &mut SourceState) -> watch::Receiver<()> {
        let (ends, flight) = watch::channel(());
        state.begun_at = Some(self.clock.elapsed());
        state.flight = Some(flight.clone());
        let source = self.clone();
        self.tasks.spawn(async move {
            // Dropped at the end, also by a panic.
            let _ends = EndOfFlight(&source, ends);
            if let Some(outcome) = source.stop.run_until_cancelled(fetch(&source.issuer)).await {
                source.finish(outcome);
            }
        });
        flight
    }

    fn finish(&self, outcome: Result<Fetched, FetchError>) {
        let now = self.clock.elapsed();
        match outcome {
            Ok(fetched) => {
                let read = fetched.read;
                if read.beyond > 0 || read.set.keys.is_empty() {
                    self.warn(&format!(
                        "it has {} usable keys, {} unusable ones, and {} after the first {}, which are ignored",
                        read.set.keys.len(),
                        read.unusable,
                        read.beyond,
                        super::parse::MAX_KEYS
                    ));
                }
                let mut state = self.state();
                state.next_refresh = refresh_interval(fetched.max_age);
                state.set = Some((Arc::new(read.set), now));
                drop(state);
                // After the set was replaced: tokens that are verified now look there as well.
                if let Some(cache) = self.cache.upgrade() {
                    cache.remove_lost_keys(self);
                }
            }
            Err(error) => {
                self.state().next_refresh = RETRY_INTERVAL;
                self.warn(&error.to_string());
            }
        }
    }

    /// Logs a problem, unless there was a warning a short time ago.
    fn warn(&self, reason: &str) {
        let now = self.clock.elapsed();
        let mut state = self.state();
        let is_due = state
            .warned_at
            .is_none_or(|at| now.saturating_sub(at) >= WARNING_INTERVAL);
        if is_due {
            state.warned_at = Some(now);
            tracing::warn!(issuer = %self.issuer.url, "the key set of an issuer: {reason}");
        }
    }

    fn state(&self) -> MutexGuard<'_, SourceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks the end of a fetch, and wakes those that wait for it.
struct EndOfFlight<'a>(
    &'a KeySource,
    #[expect(dead_code, reason = "its drop wakes")] watch::Sender<()>,
);

impl Drop for EndOfFlight<'_> {
    fn drop(&mut self) {
        self.0.state().flight = None;
    }
}

/// Returns the time to the next fetch in the background.
fn refresh_interval(max_age: Option<Duration>) -> Duration {
    let wanted = max_age.unwrap_or(REFRESH_INTERVAL);
    wanted.clamp(MIN_REFRESH_INTERVAL, MAX_REFRESH_INTERVAL)
}

async fn wait(flight: Option<watch::Receiver<()>>) {
    if let Some(mut flight) = flight {
        // No value is ever sent: an error is the end.
        while flight.changed().await.is_ok() {}
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySource")
            .field("issuer", &self.issuer.issuer)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_is_refreshed_as_its_issuer_says_within_bounds() {
        for (max_age, seconds) in [
            (None, 3600),
            (Some(0), 300),
            (Some(299), 300),
            (Some(7200), 7200),
            (Some(u64::MAX), 23 * 3600),
        ] {
            let interval = refresh_interval(max_age.map(Duration::from_secs));
            assert_eq!(interval.as_secs(), seconds);
        }
        assert!(MAX_REFRESH_INTERVAL + RETRY_INTERVAL < SET_LIFETIME);
    }
}

//! The authenticator: finds the caller of a credential, and ends rights when the settings change or a key expires.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::error::AuthError;
use crate::key;
use crate::keys::KeyTable;
use crate::offload::Offload;
use crate::principal::Principal;
use crate::settings::Settings;

/// Maximum time between two checks for expired keys: the time of day may be set, and a machine may sleep.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// Finds the caller of a credential. Its tasks end when it is dropped.
pub struct Authenticator {
    shared: Arc<Shared>,
    tasks: TaskTracker,
    _stop: DropGuard,
}

struct Shared {
    clock: Arc<dyn Clock>,
    keys: ArcSwap<KeyTable>,
    /// Held while settings are replaced.
    replacing: Mutex<()>,
    /// The expiries of keys have changed.
    keys_changed: Notify,
}

impl Authenticator {
    /// An authenticator with these settings.
    ///
    /// # Panics
    ///
    /// Panics outside a runtime.
    pub fn new(settings: &Settings, clock: Arc<dyn Clock>) -> Self {
        let shared = Arc::new(Shared {
            clock,
            keys: ArcSwap::default(),
            replacing: Mutex::new(()),
            keys_changed: Notify::new(),
        });
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let watch = end_expired_keys(Arc::downgrade(&shared), stop.clone());
        tasks.spawn(watch);
        let authenticator = Self {
            shared,
            tasks,
            _stop: stop.drop_guard(),
        };
        authenticator.replace(settings);
        authenticator
    }

    /// Takes other settings. Rights that they do not convey end at once; other ones are not touched.
    pub fn replace(&self, settings: &Settings) {
        let shared = &self.shared;
        let _replacing = shared
            .replacing
            .lock()
            .unwrap_or_else(|held| held.into_inner());
        let before = shared.keys.load_full();
        let keys = Arc::new(KeyTable::new(&settings.keys, &before));
        shared.keys.store(keys.clone());
        before.end_all_except(&keys);
        shared.keys_changed.notify_one();
    }

    /// The caller of a credential, which came from the address `peer`. Signatures are verified on `pool`.
    ///
    /// # Errors
    ///
    /// Any [`AuthError`]. [`AuthError::Unknown`] also means every text that is neither a key nor a token.
    pub async fn authenticate(
        &self,
        credential: &str,
        peer: IpAddr,
        pool: &impl Offload,
    ) -> Result<Arc<Principal>, AuthError> {
        let _ = (peer, pool);
        if key::has_prefix(credential) {
            let keys = self.shared.keys.load();
            return keys.find(credential, self.shared.clock.now());
        }
        Err(AuthError::Unknown)
    }
}

/// Ends the right of each key at its expiry.
async fn end_expired_keys(shared: Weak<Shared>, stop: CancellationToken) {
    loop {
        let Some(strong) = shared.upgrade() else {
            return;
        };
        let next = strong.keys.load().end_expired(strong.clock.now());
        let wait = next.map_or(CHECK_INTERVAL, |next| next.min(CHECK_INTERVAL));
        tokio::select! {
            () = sleep(wait) => {}
            () = strong.keys_changed.notified() => {}
            () = stop.cancelled() => return,
        }
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator")
            .field("tasks", &self.tasks.len())
            .finish_non_exhaustive()
    }
}

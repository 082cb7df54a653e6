//! The authenticator: finds the caller of a credential, and ends rights when the settings change or a key expires.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use broker_config::identities::Issuer;
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::error::{AuthError, TokenFault};
use crate::jwks::source::KeySource;
use crate::jwt::MAX_TOKEN_BYTES;
use crate::jwt::cache::{TokenCache, TokenDigest, Verified};
use crate::jwt::checks::{AcceptedIssuer, check};
use crate::jwt::parts::{TokenParts, refusal_of_long};
use crate::jwt::provider;
use crate::jwt::verify::Verification;
use crate::key;
use crate::keys::KeyTable;
use crate::offload::Offload;
use crate::peers::Peers;
use crate::principal::Principal;
use crate::settings::Settings;

/// Maximum time between two checks for expired keys: the time of day may be set, and a machine may sleep.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// Attempts for a token while the settings change.
const MAX_ATTEMPTS: usize = 3;

/// Finds the caller of a credential. Its tasks end when it is dropped.
pub struct Authenticator {
    shared: Arc<Shared>,
    tasks: TaskTracker,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
}

struct Shared {
    clock: Arc<dyn Clock>,
    accepted: ArcSwap<Accepted>,
    cache: Arc<TokenCache>,
    peers: Peers,
    /// Held while settings are replaced.
    replacing: Mutex<()>,
    /// The expiries of keys have changed.
    keys_changed: Notify,
}

/// The keys and issuers of the current settings.
#[derive(Debug, Default)]
struct Accepted {
    keys: KeyTable,
    issuers: Vec<Arc<AcceptedIssuer>>,
}

impl Authenticator {
    /// Makes an authenticator with these settings. The key sets of their issuers are fetched from now on.
    ///
    /// # Panics
    ///
    /// Panics outside a runtime.
    pub fn new(settings: &Settings, clock: Arc<dyn Clock>) -> Self {
        provider::install();
        let shared = Arc::new(Shared {
            clock,
            accepted: ArcSwap::default(),
            cache: Arc::default(),
            peers: Peers::default(),
            replacing: Mutex::new(()),
            keys_changed: Notify::new(),
        });
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        tasks.spawn(end_expired_keys(shared.clone(), stop.clone()));
        let authenticator = Self {
            shared,
            tasks,
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
        };
        authenticator.replace(settings);
        authenticator
    }

    /// Takes other settings. Rights that they do not convey end at once; other ones are not touched.
    pub fn replace(&self, settings: &Settings) {
        let shared = &self.shared;
        let replacing = shared.replacing.lock();
        let _replacing = replacing.unwrap_or_else(PoisonError::into_inner);
        let before = shared.accepted.load_full();
        let accepted = Arc::new(Accepted {
            keys: KeyTable::new(&settings.keys, &before.keys),
            issuers: self.issuers(&settings.issuers, &before.issuers),
        });
        shared.accepted.store(accepted.clone());
        before.keys.end_all_except(&accepted.keys);
        shared.keys_changed.notify_one();
        // After the settings were stored: a token that is verified now is compared with them.
        shared.cache.revise(&accepted.issuers, shared.clock.now());
        for old in &before.issuers {
            let mut kept = accepted.issuers.iter();
            if !kept.any(|new| Arc::ptr_eq(&new.keys, &old.keys)) {
                old.keys.stop();
            }
        }
    }

    /// Returns when the next of the keys in force expires; `None` if no key does.
    pub fn next_key_expiry(&self) -> Option<SystemTime> {
        let accepted = self.shared.accepted.load();
        accepted.keys.next_expiry(self.shared.clock.now())
    }

    /// Returns the caller of the key in force with this name; `None` if there is none or it has expired.
    pub fn key(&self, name: &str) -> Option<Arc<Principal>> {
        let accepted = self.shared.accepted.load();
        accepted.keys.by_name(name, self.shared.clock.now())
    }

    /// Returns the issuers with their keys. One that has its keys from the same place as before keeps its key set.
    fn issuers(
        &self,
        issuers: &[Issuer],
        before: &[Arc<AcceptedIssuer>],
    ) -> Vec<Arc<AcceptedIssuer>> {
        let shared = &self.shared;
        let accepted = |config: &Issuer| {
            let same = before.iter().find(|old| old.keys.is_of(config));
            let keys = match same {
                Some(same) => same.keys.clone(),
                None => KeySource::start(
                    config,
                    shared.clock.clone(),
                    &shared.cache,
                    &self.tasks,
                    self.stop.child_token(),
                ),
            };
            let config = config.clone();
            Arc::new(AcceptedIssuer { config, keys })
        };
        issuers.iter().map(accepted).collect()
    }

    /// Identifies the caller of a credential from the address `peer`. Signatures are verified on `pool`.
    ///
    /// # Errors
    ///
    /// Any [`AuthError`]. [`AuthError::Unknown`] also means every text that is neither a key nor a token, and any token
    /// if no issuer is accepted.
    pub async fn authenticate(
        &self,
        credential: &str,
        peer: IpAddr,
        pool: &impl Offload,
    ) -> Result<Arc<Principal>, AuthError> {
        let accepted = self.shared.accepted.load();
        if key::has_prefix(credential) {
            return accepted.keys.find(credential, self.shared.clock.now());
        }
        if accepted.issuers.is_empty() {
            return Err(AuthError::Unknown);
        }
        drop(accepted);
        self.token(credential, peer, pool).await
    }

    async fn token(
        &self,
        text: &str,
        peer: IpAddr,
        pool: &impl Offload,
    ) -> Result<Arc<Principal>, AuthError> {
        if text.len() > MAX_TOKEN_BYTES {
            return Err(refusal_of_long(text));
        }
        let digest = Sha256::digest(text).into();
        for _ in 0..MAX_ATTEMPTS {
            if let Some(found) = self.cached(&digest) {
                return found;
            }
            if let Some(verified) = self.verified(text, digest, peer, pool).await? {
                return Ok(verified);
            }
        }
        Err(AuthError::Overloaded)
    }

    fn cached(&self, digest: &TokenDigest) -> Option<Result<Arc<Principal>, AuthError>> {
        let shared = &self.shared;
        let hit = shared.cache.find(digest, shared.clock.now())?;
        // A set that is too old is no longer valid for its keys.
        Some(match hit.keys.is_usable() {
            true => Ok(hit.principal),
            false => Err(AuthError::Unavailable),
        })
    }

    /// Returns the caller of a token that is not in the cache; `None` if the settings or the keys changed meanwhile.
    async fn verified(
        &self,
        text: &str,
        digest: TokenDigest,
        peer: IpAddr,
        pool: &impl Offload,
    ) -> Result<Option<Arc<Principal>>, AuthError> {
        let shared = &self.shared;
        let parts = TokenParts::read(text)?;
        let accepted = shared.accepted.load_full();
        let now = shared.clock.now();
        let checked = check(&parts.header, &parts.claims, &accepted.issuers, now);
        let checked = checked.map_err(AuthError::TokenInvalid)?;
        let (kid, issuer) = (parts.header.kid.as_deref(), checked.issuer.clone());
        let key = issuer.keys.key(kid, checked.algorithm, peer).await?;
        let id = key.id;
        let permit = shared.peers.admit(peer).await?;
        // Another request may have verified the same token while this one waited.
        if let Some(found) = self.cached(&digest) {
            return found.map(Some);
        }
        let verification = Verification {
            token: text.to_owned(),
            key,
            algorithm: checked.algorithm,
            issuer,
        };
        let recorded = shared.clone();
        // A caller that leaves neither makes room for another job nor hides the outcome of this one.
        let job = move || {
            let is_valid = verification.run();
            recorded.peers.record(peer, is_valid);
            drop(permit);
            is_valid
        };
        let is_valid = pool.run(job).await.ok_or(AuthError::Overloaded)?;
        if !is_valid {
            return Err(AuthError::TokenInvalid(TokenFault::Signature));
        }
        let verified = Verified {
            digest,
            checked,
            key: id,
            header: parts.header,
            payload: parts.payload,
        };
        let is_current = || Arc::ptr_eq(&shared.accepted.load(), &accepted);
        let now = shared.clock.now();
        Ok(shared.cache.insert(verified, now, is_current))
    }
}

/// Ends the right of each key at its expiry.
async fn end_expired_keys(shared: Arc<Shared>, stop: CancellationToken) {
    loop {
        let next = shared.accepted.load().keys.end_expired(shared.clock.now());
        let wait = next.map_or(CHECK_INTERVAL, |next| next.min(CHECK_INTERVAL));
        tokio::select! {
            () = sleep(wait) => {}
            () = shared.keys_changed.notified() => {}
            () = stop.cancelled() => return,
        }
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator")
            .field("accepted", &self.shared.accepted.load())
            .finish_non_exhaustive()
    }
}

//! The table of API keys, by their digests.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use broker_config::identities::{ApiKey, KeyDigest};

use crate::error::AuthError;
use crate::key;
use crate::principal::{Grant, Principal, PrincipalSubject};

/// Every key with its caller.
#[derive(Debug, Default)]
pub(crate) struct KeyTable(HashMap<KeyDigest, Arc<Principal>>);

impl KeyTable {
    /// Makes the table of these keys. A key that has the name and groups of before keeps its grant.
    pub(crate) fn new(keys: &[ApiKey], before: &Self) -> Self {
        let entry = |key: &ApiKey| {
            let expires = key.not_after.map(|time| time.to_system_time());
            let subject = PrincipalSubject::Key {
                name: key.name.clone(),
            };
            let mut groups = key.groups.clone();
            groups.sort();
            groups.dedup();
            let old = before.0.get(&key.sha256);
            let old = old.filter(|old| old.subject == subject && old.groups == groups);
            // A grant that its key's expiry ended is not used again if the expiry is moved.
            let old = old.filter(|old| !old.grant.has_ended());
            let grant = old.map_or_else(|| Arc::new(Grant::default()), |old| old.grant.clone());
            let principal = Principal {
                subject,
                groups,
                claims: BTreeMap::new(),
                expires,
                client: key.client,
                grant,
            };
            (key.sha256, Arc::new(principal))
        };
        Self(keys.iter().map(entry).collect())
    }

    /// Ends the right of each key that another table does not have with the same grant.
    pub(crate) fn end_all_except(&self, kept: &Self) {
        for (digest, principal) in &self.0 {
            let same = kept.0.get(digest);
            if !same.is_some_and(|same| Arc::ptr_eq(&same.grant, &principal.grant)) {
                principal.grant.end();
            }
        }
    }

    /// Finds the caller with this key.
    pub(crate) fn find(&self, text: &str, now: SystemTime) -> Result<Arc<Principal>, AuthError> {
        if text.len() > key::KEY_LENGTH {
            return Err(AuthError::Unknown);
        }
        let principal = self.0.get(&key::digest(text)).ok_or(AuthError::Unknown)?;
        if is_expired(principal, now) {
            principal.grant.end();
            return Err(AuthError::KeyExpired);
        }
        Ok(principal.clone())
    }

    /// Finds the caller of the key with this name; `None` if there is none or it has expired.
    pub(crate) fn by_name(&self, name: &str, now: SystemTime) -> Option<Arc<Principal>> {
        let named = |principal: &&Arc<Principal>| matches!(&principal.subject, PrincipalSubject::Key { name: known } if known == name);
        let found = self.0.values().find(named)?;
        let is_valid = !is_expired(found, now) && !found.grant.has_ended();
        is_valid.then(|| found.clone())
    }

    /// Ends the right of every expired key. Returns the time to the next expiry.
    pub(crate) fn end_expired(&self, now: SystemTime) -> Option<Duration> {
        let mut next = None;
        for principal in self.0.values() {
            let Some(expires) = principal.expires else {
                continue;
            };
            match expires.duration_since(now) {
                Ok(left) if !left.is_zero() => {
                    next = Some(next.map_or(left, |next: Duration| next.min(left)));
                }
                _ => principal.grant.end(),
            }
        }
        next
    }

    /// Returns when the next of the keys expires that are valid at `now`.
    pub(crate) fn next_expiry(&self, now: SystemTime) -> Option<SystemTime> {
        let expiries = self.0.values().filter_map(|principal| principal.expires);
        expiries.filter(|expires| *expires > now).min()
    }
}

fn is_expired(principal: &Principal, now: SystemTime) -> bool {
    principal.expires.is_some_and(|expires| now >= expires)
}

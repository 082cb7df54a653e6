//! Verified tokens by their SHA-256, until they expire. The cache is also the place where a right ends early: an entry
//! that is removed before its token expires ends the right of its token.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::checks::{AcceptedIssuer, Checked, check};
use super::parts::{Header, claims_of};
use crate::jwks::set::KeyId;
use crate::jwks::source::KeySource;
use crate::principal::{Grant, Principal};

/// Maximum number of tokens.
pub(crate) const MAX_TOKENS: usize = 4096;

/// The SHA-256 of a token.
pub(crate) type TokenDigest = [u8; 32];

/// Verified tokens.
#[derive(Debug, Default)]
pub(crate) struct TokenCache(Mutex<Tokens>);

#[derive(Debug, Default)]
struct Tokens {
    entries: HashMap<TokenDigest, Entry>,
    /// The same by their end.
    by_end: BTreeSet<(SystemTime, TokenDigest)>,
}

/// A verified token, without its signature.
#[derive(Debug)]
struct Entry {
    principal: Arc<Principal>,
    expires: SystemTime,
    keys: Arc<KeySource>,
    key: KeyId,
    header: Header,
    payload: Box<str>,
}

/// A token that was verified.
#[derive(Debug)]
pub(crate) struct Verified {
    pub(crate) digest: TokenDigest,
    pub(crate) checked: Checked,
    pub(crate) key: KeyId,
    pub(crate) header: Header,
    pub(crate) payload: Box<str>,
}

/// A token in the cache.
#[derive(Debug)]
pub(crate) struct Hit {
    pub(crate) principal: Arc<Principal>,
    pub(crate) keys: Arc<KeySource>,
}

impl TokenCache {
    /// Finds the caller of a token, if it was verified and has not expired.
    pub(crate) fn find(&self, digest: &TokenDigest, now: SystemTime) -> Option<Hit> {
        let tokens = self.tokens();
        let entry = tokens.entries.get(digest)?;
        (now < entry.expires).then(|| Hit {
            principal: entry.principal.clone(),
            keys: entry.keys.clone(),
        })
    }

    /// Adds a token and returns its caller. Does not add it if `is_current` says that the settings have changed, or if
    /// the issuer no longer has the key. No other entry is added or removed while `is_current` is asked.
    pub(crate) fn insert(
        &self,
        token: Verified,
        now: SystemTime,
        is_current: impl FnOnce() -> bool,
    ) -> Option<Arc<Principal>> {
        let mut tokens = self.tokens();
        let keys = &token.checked.issuer.keys;
        if !is_current() || !keys.has(&token.key) {
            return None;
        }
        if let Some(same) = tokens.entries.get(&token.digest)
            && now < same.expires
        {
            return Some(same.principal.clone());
        }
        tokens.make_room(now);
        let keys = keys.clone();
        let expires = token.checked.expires;
        let principal = principal(token.checked, Arc::default());
        let entry = Entry {
            principal: principal.clone(),
            expires,
            keys,
            key: token.key,
            header: token.header,
            payload: token.payload,
        };
        tokens.by_end.insert((expires, token.digest));
        tokens.entries.insert(token.digest, entry);
        Some(principal)
    }

    /// Removes the tokens whose key the source no longer has.
    pub(crate) fn remove_lost_keys(&self, source: &KeySource) {
        let mut tokens = self.tokens();
        tokens.remove_if(|entry| {
            std::ptr::eq(Arc::as_ptr(&entry.keys), source) && !source.has(&entry.key)
        });
    }

    /// Compares every token with other issuers. One that has the same caller, groups and claims keeps its right.
    pub(crate) fn revise(&self, issuers: &[Arc<AcceptedIssuer>], now: SystemTime) {
        let mut tokens = self.tokens();
        tokens.remove_expired(now);
        tokens.remove_if(|entry| !entry.is_same_under(issuers, now));
        // The leeway may have changed.
        let by_end = tokens.entries.iter();
        tokens.by_end = by_end
            .map(|(digest, entry)| (entry.expires, *digest))
            .collect();
    }

    fn tokens(&self) -> MutexGuard<'_, Tokens> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn principal(checked: Checked, grant: Arc<Grant>) -> Arc<Principal> {
    Arc::new(Principal {
        subject: checked.subject,
        groups: checked.groups,
        claims: checked.claims,
        expires: Some(checked.expires),
        client: None,
        grant,
    })
}

impl Entry {
    /// Whether the token is accepted with the same caller by these issuers. Takes over a changed end.
    fn is_same_under(&mut self, issuers: &[Arc<AcceptedIssuer>], now: SystemTime) -> bool {
        let claims = claims_of(&self.payload);
        let checked = claims.and_then(|claims| check(&self.header, &claims, issuers, now).ok());
        let Some(checked) = checked else {
            return false;
        };
        let old = &self.principal;
        let is_same = Arc::ptr_eq(&checked.issuer.keys, &self.keys)
            && checked.subject == old.subject
            && checked.groups == old.groups
            && checked.claims == old.claims;
        if is_same && checked.expires != self.expires {
            self.expires = checked.expires;
            self.principal = principal(checked, self.principal.grant.clone());
        }
        is_same
    }

    /// Whether something besides the cache has the right of the token: a request, a session or a stream.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.principal) > 1 || Arc::strong_count(&self.principal.grant) > 1
    }
}

impl Tokens {
    /// Removes entries with their rights.
    fn remove_if(&mut self, mut is_lost: impl FnMut(&mut Entry) -> bool) {
        let by_end = &mut self.by_end;
        self.entries.retain(|digest, entry| {
            let end = entry.expires;
            let lost = is_lost(entry);
            if lost {
                entry.principal.grant.end();
                by_end.remove(&(end, *digest));
            }
            !lost
        });
    }

    /// Removes expired entries. Their rights are not ended here: the end was known from the beginning.
    fn remove_expired(&mut self, now: SystemTime) {
        while let Some((end, digest)) = self.by_end.first().copied()
            && end <= now
        {
            self.by_end.remove(&(end, digest));
            self.entries.remove(&digest);
        }
    }

    /// Makes room for one entry: removes the unused entry that expires first, else the entry that expires first. The
    /// right of a used entry ends with it, because it could not be ended later.
    fn make_room(&mut self, now: SystemTime) {
        self.remove_expired(now);
        if self.entries.len() < MAX_TOKENS {
            return;
        }
        let is_unused = |(_, digest): &&(SystemTime, TokenDigest)| {
            self.entries
                .get(digest)
                .is_some_and(|entry| !entry.is_in_use())
        };
        let unused = self.by_end.iter().find(is_unused);
        let Some(place) = unused.or(self.by_end.first()).copied() else {
            return;
        };
        self.by_end.remove(&place);
        if let Some(entry) = self.entries.remove(&place.1)
            && entry.is_in_use()
        {
            entry.principal.grant.end();
        }
    }
}

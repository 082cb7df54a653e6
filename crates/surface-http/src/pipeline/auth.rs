//! Authenticates callers: by the secret (compared in a time that does not depend on it), by API keys and by tokens.
//! Refuses credentials in the query, since proxies and logs store the query.

use std::iter::repeat;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use broker_identity::{
    AuthError, Authenticator, FailureCounts, Offload, Principal, PrincipalSubject, SystemClock,
};
use broker_model::CallCode;
use broker_model::redact::{Secret, is_secret_name};
use percent_encoding::percent_decode_str;
use subtle::{Choice, ConstantTimeEq};
use tokio::time::Instant;

use super::respond::Refusal;
use super::settings::CallerSettings;
use broker_core::{CoreError, Identity, Revocation, Services};

/// Invalid attempts are logged at most this often.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
pub(crate) static API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The authentication of callers.
pub(crate) struct Auth {
    secret: Option<Secret>,
    /// A configured header for the secret.
    key_header: Option<HeaderName>,
    authenticator: Authenticator,
    /// Whether a config since the start had identities: then the broker stays closed without them.
    had_identities: AtomicBool,
    refused: Mutex<FailedAttempts>,
    failures: FailureCounts,
}

/// Invalid attempts since they were last logged.
#[derive(Debug, Default)]
struct FailedAttempts {
    count: u64,
    logged: Option<Instant>,
}

/// The credential of a request, not yet checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Credential<'h> {
    Missing,
    Given(&'h [u8]),
    /// A header in an unknown form.
    Unreadable,
    /// Two that differ.
    Several,
}

impl Auth {
    /// Must be called within a runtime.
    pub(crate) fn new(
        secret: Option<Secret>,
        key_header: Option<HeaderName>,
        callers: &CallerSettings,
    ) -> Self {
        Self {
            secret,
            key_header,
            authenticator: Authenticator::new(
                &callers.identities,
                Arc::new(SystemClock::default()),
            ),
            had_identities: AtomicBool::new(callers.has_identities),
            refused: Mutex::default(),
            failures: FailureCounts::default(),
        }
    }

    /// Takes other keys and issuers.
    pub(crate) fn apply(&self, callers: &CallerSettings) {
        self.had_identities
            .fetch_or(callers.has_identities, Ordering::Relaxed);
        self.authenticator.replace(&callers.identities);
    }

    /// Returns when the next of the keys in force expires; `None` if no key does.
    pub(crate) fn next_key_expiry(&self) -> Option<SystemTime> {
        self.authenticator.next_key_expiry()
    }

    /// Returns the identity of the key in force with this name.
    pub(crate) fn key_identity(&self, name: &str, callers: &CallerSettings) -> Option<Identity> {
        let principal = self.authenticator.key(name)?;
        Some(identity_of(principal, callers.cancels_calls))
    }

    /// The configured header for the secret.
    pub(crate) const fn key_header(&self) -> Option<&HeaderName> {
        self.key_header.as_ref()
    }

    /// Whether callers must send a credential.
    #[inline]
    pub(crate) fn is_required(&self) -> bool {
        self.secret.is_some() || self.had_identities.load(Ordering::Relaxed)
    }

    /// Whether the request has a credential, valid or not.
    #[inline]
    pub(crate) fn is_given(&self, headers: &HeaderMap) -> bool {
        self.presented(headers) != Credential::Missing
    }

    #[inline]
    fn presented<'h>(&self, headers: &'h HeaderMap) -> Credential<'h> {
        let mut candidates = bearers(headers)
            .chain(headers.get_all(&API_KEY).iter().map(HeaderValue::as_bytes))
            .chain(
                self.key_header
                    .iter()
                    .flat_map(|name| headers.get_all(name))
                    .map(HeaderValue::as_bytes),
            );
        match candidates.next() {
            Some(first) if candidates.all(|other| other == first) => Credential::Given(first),
            Some(_) => Credential::Several,
            // A scheme other than Bearer is an invalid credential, not a missing one.
            None if headers.contains_key(header::AUTHORIZATION) => Credential::Unreadable,
            None => Credential::Missing,
        }
    }

    /// Returns the identity of the caller at `address`; a trusted proxy may have named the address. An invalid
    /// credential is refused, even where callers without one have rights.
    #[inline]
    pub(crate) async fn identify(
        &self,
        headers: &HeaderMap,
        address: IpAddr,
        services: &Services,
        callers: &CallerSettings,
    ) -> Result<Identity, Refusal> {
        let identity = self.check(headers, address, services, callers).await;
        identity.map_err(|refusal| match bearers(headers).next() {
            Some(_) => refusal.for_bearer(),
            None => refusal,
        })
    }

    #[inline]
    async fn check(
        &self,
        headers: &HeaderMap,
        address: IpAddr,
        services: &Services,
        callers: &CallerSettings,
    ) -> Result<Identity, Refusal> {
        // A broker without authentication has no use for a credential.
        let is_open = !self.is_required() && !services.has_access_rules();
        let given = match self.presented(headers) {
            Credential::Given(given) => given,
            Credential::Missing
                if !self.is_required() || services.anonymous_has_groups() == Some(true) =>
            {
                return Ok(Identity::anonymous());
            }
            Credential::Missing => {
                let message = match callers.identities.is_empty() {
                    true => "the secret is missing",
                    false => "the request has no key, token or secret",
                };
                return Err(Refusal::new(CallCode::Unauthorized, message));
            }
            Credential::Unreadable | Credential::Several if is_open => {
                return Ok(Identity::anonymous());
            }
            Credential::Unreadable => return Err(self.wrong(address, callers)),
            Credential::Several => {
                let message = "the request has two credentials that differ";
                return Err(Refusal::new(CallCode::HeaderInvalid, message));
            }
        };
        if let Some(secret) = &self.secret
            && equals(given, secret.expose().as_bytes()).into()
        {
            return Ok(Identity::secret());
        }
        if callers.identities.is_empty() {
            return match is_open {
                true => Ok(Identity::anonymous()),
                false => Err(self.wrong(address, callers)),
            };
        }
        let text = std::str::from_utf8(given).map_err(|_| self.wrong(address, callers))?;
        let pool = ValidationPool(services.clone());
        match self.authenticator.authenticate(text, address, &pool).await {
            Ok(principal) => Ok(identity_of(principal, callers.cancels_calls)),
            Err(error) => Err(self.refused(error, address, callers)),
        }
    }

    fn refused(&self, error: AuthError, address: IpAddr, callers: &CallerSettings) -> Refusal {
        let code = match error {
            AuthError::Unknown => return self.wrong(address, callers),
            // Not counted: the client must learn of it, so that it gets another token. Signatures have another limit.
            AuthError::KeyExpired | AuthError::TokenInvalid(_) => {
                self.log_wrong(address);
                return Refusal::new(CallCode::Unauthorized, error.to_string());
            }
            AuthError::Unavailable => CallCode::IdentityUnavailable,
            AuthError::TooManyFailures | AuthError::Overloaded => CallCode::Overloaded,
        };
        Refusal::new(code, error.to_string()).retryable()
    }

    fn wrong(&self, address: IpAddr, callers: &CallerSettings) -> Refusal {
        let message = match callers.identities.is_empty() {
            true => "the secret is wrong",
            false => "the key, token or secret is wrong",
        };
        self.log_wrong(address);
        match self.failures.record(address) {
            None => Refusal::new(CallCode::Unauthorized, message),
            Some(left) => {
                let message = "too many wrong credentials came from this address";
                let error = CoreError::new(CallCode::Overloaded, message).retry_after(left);
                Refusal::from(Box::new(error))
            }
        }
    }

    fn log_wrong(&self, address: IpAddr) {
        let Ok(mut refused) = self.refused.lock() else {
            return;
        };
        refused.count += 1;
        if refused.logged.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
            let attempts = refused.count;
            tracing::warn!(attempts, last_address = %address, "a wrong credential was presented");
            *refused = FailedAttempts {
                count: 0,
                logged: Some(Instant::now()),
            };
        }
    }
}

/// The threads, for the verification of signatures.
struct ValidationPool(Services);

impl Offload for ValidationPool {
    async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        self.0.verify_long(job).await.ok()
    }
}

fn identity_of(principal: Arc<Principal>, cancels_calls: bool) -> Identity {
    let groups = principal.groups.as_slice();
    let identity = match &principal.subject {
        PrincipalSubject::Key { name } => Identity::key(name, groups).with_vendor(principal.client),
        PrincipalSubject::Token { issuer, subject } => {
            Identity::token(issuer, subject, groups, principal.claims.clone())
        }
    };
    let expires = principal.expires;
    let identity = identity.revoked_by(Revocation {
        revoked: principal.grant.ended().clone(),
        cancels_calls,
        keeps: Some(principal),
    });
    match expires {
        Some(expires) => identity.expiring(expires),
        None => identity,
    }
}

/// `Vary` of replies that depend on the caller.
pub(crate) fn headers_of_callers(key_header: Option<&HeaderName>) -> HeaderValue {
    let names = [&header::AUTHORIZATION, &API_KEY]
        .into_iter()
        .chain(key_header);
    let names: Vec<&str> = names.map(HeaderName::as_str).collect();
    HeaderValue::try_from(names.join(", ")).expect("names of headers are values of headers")
}

/// Refuses a query with a parameter whose name is usual for a secret.
pub(crate) fn check_query(query: Option<&str>) -> Result<(), Refusal> {
    let secret = query.is_some_and(|query| {
        query.split(['&', ';']).any(|pair| {
            let name = pair.split('=').next().unwrap_or_default();
            let name = percent_decode_str(name).decode_utf8_lossy();
            is_secret_name(&name) || name.eq_ignore_ascii_case("bearer")
        })
    });
    if secret {
        return Err(Refusal::new(
            CallCode::HeaderInvalid,
            "the secret must not be in the query, which proxies and logs store",
        ));
    }
    Ok(())
}

/// The credentials of `Authorization` with the scheme `Bearer`.
fn bearers(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let values = headers.get_all(header::AUTHORIZATION).iter();
    values.filter_map(|value| bearer(value.as_bytes()))
}

/// The credential of a `Bearer` header; the scheme's case does not matter.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| rest.trim_ascii())
}

/// Compares in a time that depends on the candidate's length only, eight bytes at once.
#[inline]
fn equals(candidate: &[u8], secret: &[u8]) -> Choice {
    let same_length = (candidate.len() as u64).ct_eq(&(secret.len() as u64));
    let secret = secret.chunks(WORD_BYTES).map(word).chain(repeat(0));
    candidate
        .chunks(WORD_BYTES)
        .map(word)
        .zip(secret)
        .fold(same_length, |same, (a, b)| same & a.ct_eq(&b))
}

const WORD_BYTES: usize = size_of::<u64>();

/// Reads at most eight bytes as a number; zeros stand for those that are missing.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; WORD_BYTES];
    match bytes.first_chunk() {
        Some(whole) => word = *whole,
        None => word[..bytes.len()].copy_from_slice(bytes),
    }
    u64::from_ne_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn credential_of_a_request_is_read_from_three_headers() {
        use Credential::{Given, Missing, Several, Unreadable};
        let key_header = Some(HeaderName::from_static("x-broker-key"));
        let auth = Auth::new(None, key_header, &CallerSettings::default());
        for (headers, expected) in [
            (&[][..], Missing),
            (&[("authorization", "Bearer s3cret")], Given(b"s3cret")),
            (&[("authorization", "bearer  s3cret ")], Given(b"s3cret")),
            (&[("x-api-key", "s3cret")], Given(b"s3cret")),
            (&[("x-broker-key", "s3cret")], Given(b"s3cret")),
            (
                &[("authorization", "Basic eA=="), ("x-api-key", "s3cret")],
                Given(b"s3cret"),
            ),
            (
                &[("authorization", "Bearer a"), ("x-api-key", "a")],
                Given(b"a"),
            ),
            (
                &[("authorization", "Bearer a"), ("x-api-key", "b")],
                Several,
            ),
            (&[("x-api-key", "a"), ("x-api-key", "b")], Several),
            (&[("authorization", "s3cret")], Unreadable),
            (&[("authorization", "Bearer ")], Given(b"")),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, HeaderValue::from_static(value));
            }
            assert_eq!(auth.presented(&map), expected, "{headers:?}");
        }
    }

    #[test]
    fn candidate_equals_the_secret_only_as_a_whole() {
        for (candidate, expected) in [
            ("s3cret", true),
            ("s3cre", false),
            ("s3crets3cret", false),
            ("", false),
            ("ü", false),
        ] {
            let equal: bool = equals(candidate.as_bytes(), b"s3cret").into();
            assert_eq!(equal, expected, "{candidate}");
        }
        // Secrets around the size of a word, and zeros: the comparison uses them for missing bytes.
        let is_equal = |candidate: &[u8], secret: &[u8]| bool::from(equals(candidate, secret));
        let long: Vec<u8> = (1..=25).collect();
        for length in 0..=long.len() {
            let secret = &long[..length];
            assert!(is_equal(secret, secret));
            for other in (0..=long.len()).filter(|other| *other != length) {
                assert!(!is_equal(&long[..other], secret), "{other} of {length}");
            }
            assert!(!is_equal(&[secret, &[0]].concat(), secret));
            assert!(!is_equal(secret, &[secret, &[0]].concat()));
            for at in 0..length {
                let mut wrong = secret.to_vec();
                wrong[at] ^= 0x80;
                assert!(!is_equal(&wrong, secret), "byte {at} of {length}");
            }
        }
    }

    #[test]
    fn secret_in_the_query_is_refused() {
        for query in [
            "token=x",
            "a=1&api_key=x",
            "access_token",
            "SECRET=",
            "to%6ben=x",
            "key=1",
        ] {
            assert_eq!(
                check_query(Some(query)).unwrap_err().code(),
                CallCode::HeaderInvalid,
                "{query}"
            );
        }
        for query in ["", "verbose=1", "monkey=1", "a=token", "%"] {
            assert!(check_query(Some(query)).is_ok(), "{query}");
        }
        assert!(check_query(None).is_ok());
    }
}

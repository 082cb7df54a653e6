//! Authenticates callers: compares the secret of a request in a time that does not depend on it, and
//! refuses secrets in the query, which proxies and logs store.

use std::sync::Mutex;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, header};
use broker_model::CallCode;
use broker_model::redact::{Secret, is_secret_name};
use percent_encoding::percent_decode_str;
use subtle::{Choice, ConstantTimeEq};
use tokio::time::Instant;

use super::respond::Refusal;
use crate::core::Identity;

/// Invalid attempts are logged at most this often.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The authentication of a broker, with its secret, if it has one.
#[derive(Debug)]
pub(super) struct Auth {
    secret: Option<Secret>,
    /// A configured header for the secret.
    key_header: Option<HeaderName>,
    refused: Mutex<FailedAttempts>,
}

/// Invalid attempts since they were last logged.
#[derive(Debug, Default)]
struct FailedAttempts {
    count: u64,
    logged: Option<Instant>,
}

/// The credential of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Credential {
    /// The right secret.
    Valid,
    /// None.
    Missing,
    /// A wrong one.
    Invalid,
}

impl Auth {
    pub(super) fn new(secret: Option<Secret>, key_header: Option<HeaderName>) -> Self {
        Self {
            secret,
            key_header,
            refused: Mutex::default(),
        }
    }

    /// The configured header for the secret.
    pub(super) const fn key_header(&self) -> Option<&HeaderName> {
        self.key_header.as_ref()
    }

    /// Whether callers must send a secret.
    pub(super) fn has_secret(&self) -> bool {
        self.secret.is_some()
    }

    /// Reads the credential from the headers. If the broker has no secret, no credential is valid.
    pub(super) fn presented(&self, headers: &HeaderMap) -> Credential {
        let mut candidates = headers
            .get_all(header::AUTHORIZATION)
            .iter()
            .filter_map(|value| bearer(value.as_bytes()))
            .chain(
                headers
                    .get_all(API_KEY)
                    .iter()
                    .map(|value| value.as_bytes()),
            )
            .chain(
                self.key_header
                    .iter()
                    .flat_map(|name| headers.get_all(name))
                    .map(|value| value.as_bytes()),
            )
            .peekable();
        if candidates.peek().is_none() {
            // A scheme other than Bearer is an invalid secret, not a missing one.
            return if headers.contains_key(header::AUTHORIZATION) {
                Credential::Invalid
            } else {
                Credential::Missing
            };
        }
        let Some(secret) = &self.secret else {
            return Credential::Invalid;
        };
        let right = candidates.fold(Choice::from(0), |right, candidate| {
            right | equals(candidate, secret.expose().as_bytes())
        });
        if right.into() {
            Credential::Valid
        } else {
            Credential::Invalid
        }
    }

    /// The identity of the caller; refuses a request without the secret, if there is one.
    pub(super) fn identify(&self, headers: &HeaderMap) -> Result<Identity, Refusal> {
        if self.secret.is_none() {
            return Ok(Identity::anonymous());
        }
        match self.presented(headers) {
            Credential::Valid => Ok(Identity::secret()),
            Credential::Missing => Err(Refusal::new(
                CallCode::Unauthorized,
                "the secret is missing",
            )),
            Credential::Invalid => {
                self.log_wrong();
                Err(Refusal::new(CallCode::Unauthorized, "the secret is wrong"))
            }
        }
    }

    fn log_wrong(&self) {
        let Ok(mut refused) = self.refused.lock() else {
            return;
        };
        refused.count += 1;
        if refused.logged.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
            tracing::warn!(attempts = refused.count, "a wrong secret was presented");
            *refused = FailedAttempts {
                count: 0,
                logged: Some(Instant::now()),
            };
        }
    }
}

/// Refuses a query with a parameter whose name is usual for a secret.
pub(super) fn check_query(query: Option<&str>) -> Result<(), Refusal> {
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

/// The credential of a `Bearer` header; the scheme's case does not matter.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| rest.trim_ascii())
}

/// Compares in a time that depends on the candidate's length only.
fn equals(candidate: &[u8], secret: &[u8]) -> Choice {
    let same_length = (candidate.len() as u64).ct_eq(&(secret.len() as u64));
    candidate
        .iter()
        .zip(secret.iter().cycle())
        .fold(same_length, |same, (a, b)| same & a.ct_eq(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn presented(secret: Option<&str>, headers: &[(&'static str, &str)]) -> Credential {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        Auth::new(secret.map(Secret::new), None).presented(&map)
    }

    #[test]
    fn secret_in_a_header_is_valid_only_if_equal() {
        use Credential::{Invalid, Missing, Valid};
        for (headers, expected) in [
            (&[][..], Missing),
            (&[("authorization", "Bearer s3cret")], Valid),
            (&[("authorization", "bearer  s3cret ")], Valid),
            (&[("x-api-key", "s3cret")], Valid),
            (
                &[("authorization", "Basic eA=="), ("x-api-key", "s3cret")],
                Valid,
            ),
            (&[("authorization", "Bearer s3cre")], Invalid),
            (&[("authorization", "Bearer s3crets3cret")], Invalid),
            (&[("authorization", "Bearer ")], Invalid),
            (&[("authorization", "s3cret")], Invalid),
            (&[("x-api-key", "")], Invalid),
            (&[("x-api-key", "ü")], Invalid),
        ] {
            assert_eq!(presented(Some("s3cret"), headers), expected, "{headers:?}");
        }
        assert_eq!(presented(None, &[("x-api-key", "")]), Invalid);
    }

    #[test]
    fn secret_missing_or_wrong_is_unauthorized() {
        let auth = Auth::new(Some(Secret::new("s3cret")), None);
        assert_eq!(
            auth.identify(&HeaderMap::new())
                .map(|_| ())
                .unwrap_err()
                .code(),
            CallCode::Unauthorized
        );
        assert!(Auth::new(None, None).identify(&HeaderMap::new()).is_ok());
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

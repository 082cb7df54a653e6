//! The caller that a credential identifies: API keys and tokens of issuers (JWT), and revocation.
//!
//! Knows neither the catalog nor a server for callers. No log line, error or `Debug` contains a key or a token.

#![forbid(unsafe_code)]

mod authenticator;
mod clock;
mod error;
mod failures;
mod jwks;
mod jwt;
pub mod key;
mod keys;
mod offload;
mod peers;
mod principal;
mod settings;
#[cfg(test)]
mod tests;

pub use authenticator::Authenticator;
pub use clock::{Clock, SystemClock};
pub use error::{AuthError, TokenFault};
pub use failures::FailureCounts;
pub use offload::{BlockingThreads, Offload};
pub use principal::{Grant, Principal, PrincipalSubject};
pub use settings::{CredentialChanges, Settings, SettingsError};

//! The caller of a job: the name of its owner, and its identity as text, so that a job runs for the same caller after a
//! restart.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use broker_core::{Broker, Claims, CoreError, Identity, Subject};
use serde::{Deserialize, Serialize};

/// Returns the identity of an API key that exists now, by its name.
pub(crate) type FindKey = dyn Fn(&str) -> Option<Identity> + Send + Sync;

/// Returns the name of the owner of a job; `None` for a caller without a credential, who owns nothing in common with
/// others.
pub(crate) fn owner(identity: &Identity) -> Option<String> {
    match identity.subject() {
        Subject::Anonymous => None,
        Subject::Secret => Some("secret".to_owned()),
        Subject::Local => Some("local".to_owned()),
        Subject::Key { name } => Some(format!("key:{name}")),
        Subject::Token { issuer, subject } => {
            // The length keeps pairs apart whose texts are equal when joined.
            Some(format!("token:{}:{issuer}:{subject}", issuer.len()))
        }
    }
}

/// An identity as the store has it.
#[derive(Debug, Serialize, Deserialize)]
struct StoredCaller {
    subject: StoredSubject,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    #[serde(default, skip_serializing_if = "Claims::is_empty")]
    claims: Claims,
    /// The end of the credential, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
    /// The only part of the tree that the caller sees.
    root: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredSubject {
    Anonymous,
    Secret,
    Local,
    Key { name: String },
    Token { issuer: String, subject: String },
}

/// Returns the text of an identity.
pub(crate) fn to_text(identity: &Identity) -> String {
    let subject = match identity.subject() {
        Subject::Anonymous => StoredSubject::Anonymous,
        Subject::Secret => StoredSubject::Secret,
        Subject::Local => StoredSubject::Local,
        Subject::Key { name } => StoredSubject::Key {
            name: name.to_string(),
        },
        Subject::Token { issuer, subject } => StoredSubject::Token {
            issuer: issuer.to_string(),
            subject: subject.to_string(),
        },
    };
    let stored = StoredCaller {
        subject,
        groups: identity.groups().to_vec(),
        claims: identity.claims().clone(),
        expires: identity.expires().map(|time| {
            let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            since.as_secs()
        }),
        root: identity.root().to_owned(),
    };
    serde_json::to_string(&stored).unwrap_or_default()
}

/// Returns the caller that a text names, without any right: for records.
pub(crate) fn named(text: &str) -> Option<Identity> {
    let stored: StoredCaller = serde_json::from_str(text).ok()?;
    Some(match stored.subject {
        StoredSubject::Anonymous => Identity::anonymous(),
        StoredSubject::Secret => Identity::secret(),
        StoredSubject::Local => Identity::local(),
        StoredSubject::Key { name } => Identity::key(&name, stored.groups),
        StoredSubject::Token { issuer, subject } => {
            Identity::token(&issuer, &subject, stored.groups, Claims::new())
        }
    })
}

/// Why a caller cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoCaller {
    /// The text names no caller.
    Unreadable,
    /// The key was removed, or the token has expired.
    Ended,
}

/// Returns the identity of a text, with the rights that it has now.
pub(crate) fn from_text(
    text: &str,
    broker: &impl Broker,
    find_key: &dyn Fn(&str) -> Option<Identity>,
) -> Result<Identity, NoCaller> {
    let stored: StoredCaller = serde_json::from_str(text).map_err(|_| NoCaller::Unreadable)?;
    let identity = match stored.subject {
        StoredSubject::Anonymous => Identity::anonymous(),
        StoredSubject::Secret => Identity::secret(),
        StoredSubject::Local => Identity::local(),
        // The groups are those that the config gives the key now.
        StoredSubject::Key { name } => find_key(&name).ok_or(NoCaller::Ended)?,
        StoredSubject::Token { issuer, subject } => {
            Identity::token(&issuer, &subject, stored.groups, stored.claims)
        }
    };
    let identity = match stored.expires {
        Some(seconds) => {
            let expires = UNIX_EPOCH + Duration::from_secs(seconds);
            if expires <= SystemTime::now() {
                return Err(NoCaller::Ended);
            }
            identity.expiring(expires)
        }
        None => identity,
    };
    let within = broker.services().within(&identity, &stored.root);
    within.map_err(|_: Box<CoreError>| NoCaller::Ended)
}

//! The caller that a credential identifies, and the right that the credential conveys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use broker_model::model_vendor::ModelVendor;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// A caller.
#[derive(Clone, Debug)]
pub struct Principal {
    /// Who it is. Sessions belong to the subject. Several credentials may have the same subject.
    pub subject: PrincipalSubject,
    /// Its groups, sorted, each once.
    pub groups: Vec<String>,
    /// The claims of its token that access rules may use.
    pub claims: BTreeMap<String, Value>,
    /// Its credential is refused from this time on. Streams that it opened end then.
    pub expires: Option<SystemTime>,
    /// The vendor of its model. The config names it for a key.
    pub client: Option<ModelVendor>,
    /// The right that its credential conveys.
    pub grant: Arc<Grant>,
}

/// The name of a caller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrincipalSubject {
    /// An API key.
    Key {
        /// Its name.
        name: String,
    },
    /// A token.
    Token {
        /// Its issuer.
        issuer: String,
        /// Its subject. It is unique only together with the issuer.
        subject: String,
    },
}

/// The right that one credential conveys. All requests with the credential share it.
#[derive(Debug, Default)]
pub struct Grant {
    ended: CancellationToken,
}

impl Grant {
    /// Fires when the right ends early or changes: the key is removed, expires, or has other groups; the issuer is
    /// removed, or other groups or claims follow from the token. The end of a token by its `exp` does not fire it:
    /// that is [`Principal::expires`].
    pub const fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Whether the right has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    pub(crate) fn end(&self) {
        self.ended.cancel();
    }
}

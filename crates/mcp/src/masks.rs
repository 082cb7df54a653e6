//! Masks the secrets of a source: the config's secrets, and the tokens that the source got at run time.

use broker_model::redact::Redactor;

use crate::http::TokenCache;
use crate::spec::{Endpoint, SourceSpec};

/// The secrets of one source, also those that change. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Masks {
    of_config: Redactor,
    tokens: Option<TokenCache>,
}

impl Masks {
    /// Returns the secrets of the source of `spec`.
    pub(crate) fn new(spec: &SourceSpec) -> Self {
        let tokens = match &spec.endpoint {
            Endpoint::Http(http) => http.auth.as_ref().map(|_| http.shared.tokens.clone()),
            Endpoint::Process(_) | Endpoint::Unavailable(_) => None,
        };
        Self {
            of_config: spec.redactor.clone(),
            tokens,
        }
    }

    /// Returns a redactor that knows the secrets of the config, the current token and the one before it.
    pub(crate) fn now(&self) -> Redactor {
        let tokens = self.tokens.as_ref();
        let redactor = tokens.and_then(TokenCache::redactor);
        redactor.unwrap_or_else(|| self.of_config.clone())
    }
}

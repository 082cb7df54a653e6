//! A set of public keys, and the choice of the key of a token.

use std::fmt;
use std::sync::Arc;

use broker_config::identities::SignatureAlgorithm;
use jsonwebtoken::DecodingKey;

/// The SHA-256 of a key's type and parameters.
pub(crate) type KeyId = [u8; 32];

/// The usable keys of an issuer.
#[derive(Debug, Default)]
pub(crate) struct KeySet {
    pub(crate) keys: Vec<Arc<PublicKey>>,
}

/// A public key.
pub(crate) struct PublicKey {
    pub(crate) id: KeyId,
    /// Its name in headers of tokens.
    pub(crate) kid: Option<String>,
    pub(crate) kind: KeyKind,
    /// The only algorithm that it may be used with.
    pub(crate) algorithm: Option<SignatureAlgorithm>,
    pub(crate) decoding: DecodingKey,
}

/// The type of a key, and its curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

/// Why a set has no key for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoKey {
    /// A newer set may have it.
    Unknown,
    /// The token does not name a key, and several are possible.
    Ambiguous,
}

impl KeyKind {
    const fn verifies(self, algorithm: SignatureAlgorithm) -> bool {
        use SignatureAlgorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
        match algorithm {
            RS256 | RS384 | RS512 | PS256 | PS384 | PS512 => matches!(self, Self::Rsa),
            ES256 => matches!(self, Self::P256),
            ES384 => matches!(self, Self::P384),
            EdDSA => matches!(self, Self::Ed25519),
        }
    }
}

impl PublicKey {
    pub(crate) const fn decoding_key(&self) -> &DecodingKey {
        &self.decoding
    }

    fn verifies(&self, algorithm: SignatureAlgorithm) -> bool {
        self.kind.verifies(algorithm) && self.algorithm.is_none_or(|only| only == algorithm)
    }
}

impl KeySet {
    /// Finds the key for a token with this algorithm and this name of a key.
    pub(crate) fn find(
        &self,
        kid: Option<&str>,
        algorithm: SignatureAlgorithm,
    ) -> Result<Arc<PublicKey>, NoKey> {
        let mut usable = self.keys.iter().filter(|key| key.verifies(algorithm));
        if kid.is_some() {
            let found = usable.find(|key| key.kid.as_deref() == kid);
            return found.cloned().ok_or(NoKey::Unknown);
        }
        match (usable.next(), usable.next()) {
            (Some(key), None) => Ok(key.clone()),
            (None, _) => Err(NoKey::Unknown),
            (Some(_), Some(_)) => Err(NoKey::Ambiguous),
        }
    }

    /// Whether it has a key with these parameters.
    pub(crate) fn has(&self, id: &KeyId) -> bool {
        self.keys.iter().any(|key| key.id == *id)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicKey")
            .field("kid", &self.kid)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

//! Verifies the signature of a token that passed all other checks. This is the costly part: it runs on a pool.

use std::sync::Arc;

use broker_config::identities::SignatureAlgorithm;
use jsonwebtoken::{Algorithm, Validation};
use serde::de::IgnoredAny;

use super::checks::AcceptedIssuer;
use crate::jwks::set::PublicKey;

/// A token to verify. It has no `Debug`: it contains the token.
pub(crate) struct Verification {
    pub(crate) token: String,
    pub(crate) key: Arc<PublicKey>,
    pub(crate) algorithm: SignatureAlgorithm,
    pub(crate) issuer: Arc<AcceptedIssuer>,
}

impl Verification {
    /// Whether the signature is right. The library also compares algorithm, issuer and audience again; the times were
    /// checked by the clock of the authenticator.
    pub(crate) fn run(self) -> bool {
        let mut validation = Validation::new(library_algorithm(self.algorithm));
        validation.validate_exp = false;
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation.set_issuer(&[&self.issuer.config.issuer]);
        validation.set_audience(&self.issuer.config.audience);
        jsonwebtoken::decode::<IgnoredAny>(&self.token, self.key.decoding_key(), &validation)
            .is_ok()
    }
}

const fn library_algorithm(algorithm: SignatureAlgorithm) -> Algorithm {
    match algorithm {
        SignatureAlgorithm::RS256 => Algorithm::RS256,
        SignatureAlgorithm::RS384 => Algorithm::RS384,
        SignatureAlgorithm::RS512 => Algorithm::RS512,
        SignatureAlgorithm::PS256 => Algorithm::PS256,
        SignatureAlgorithm::PS384 => Algorithm::PS384,
        SignatureAlgorithm::PS512 => Algorithm::PS512,
        SignatureAlgorithm::ES256 => Algorithm::ES256,
        SignatureAlgorithm::ES384 => Algorithm::ES384,
        SignatureAlgorithm::EdDSA => Algorithm::EdDSA,
    }
}

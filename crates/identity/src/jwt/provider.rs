//! The cryptography of `jsonwebtoken` by `ring`. TLS uses `ring` as well. The provider verifies and does not sign.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result, new_error};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes it the provider of this process; a process has only one provider. A program that embeds the broker may have
/// chosen another.
pub(crate) fn install() {
    if PROVIDER.install_default().is_err() {
        tracing::trace!("a provider is installed");
    }
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    if algorithm.family() != key.family() {
        return Err(new_error(ErrorKind::InvalidKeyFormat));
    }
    let scheme = match algorithm {
        Algorithm::RS256 => Scheme::Rsa(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Scheme::Rsa(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Scheme::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Scheme::Rsa(&RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Scheme::Rsa(&RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Scheme::Rsa(&RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => Scheme::Point(&ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Scheme::Point(&ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Scheme::Point(&ED25519),
        // Shared secrets, and algorithms of later versions.
        _ => return Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    };
    Ok(Box::new(RingVerifier {
        algorithm: *algorithm,
        scheme,
        key: key.clone(),
    }))
}

/// A way to verify, by the form of its keys.
enum Scheme {
    /// Modulus and exponent.
    Rsa(&'static RsaParameters),
    /// A point of a curve.
    Point(&'static dyn VerificationAlgorithm),
}

struct RingVerifier {
    algorithm: Algorithm,
    scheme: Scheme,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let outcome = match (&self.scheme, self.key.kind()) {
            (Scheme::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Scheme::Point(algorithm), DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(*algorithm, point).verify(message, signature)
            }
            _ => return Err(Error::new()),
        };
        outcome.map_err(|_| Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

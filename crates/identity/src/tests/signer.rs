//! Signs tokens as an issuer does, and makes the public keys of its set.

use data_encoding::{BASE64, BASE64URL_NOPAD};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384,
    RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};
use serde_json::{Value, json};

/// An RSA key of these tests only.
const RSA_PEM: &str = include_str!("data/test_only_rsa_2048.pem");

/// A private key of an issuer.
pub(super) enum Signer {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    pub(super) fn rsa() -> Self {
        let lines = RSA_PEM.lines().filter(|line| !line.starts_with('-'));
        let der = BASE64.decode(lines.collect::<String>().as_bytes()).unwrap();
        Self::Rsa(RsaKeyPair::from_pkcs8(&der).unwrap())
    }

    pub(super) fn p256() -> Self {
        Self::P256(ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING))
    }

    pub(super) fn p384() -> Self {
        Self::P384(ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING))
    }

    pub(super) fn ed25519() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap())
    }

    /// The public key as a set has it.
    pub(super) fn public(&self, kid: &str) -> Value {
        let mut key = match self {
            Self::Rsa(pair) => {
                let parts = PublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                json!({"kty": "RSA", "n": encode(&parts.n), "e": encode(&parts.e)})
            }
            Self::P256(pair) => point("P-256", pair.public_key().as_ref()),
            Self::P384(pair) => point("P-384", pair.public_key().as_ref()),
            Self::Ed25519(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key().as_ref())})
            }
        };
        key["kid"] = kid.into();
        key["use"] = "sig".into();
        key
    }

    /// A token with this header and these claims; `alg` of the header chooses the signature.
    pub(super) fn token(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let signature = self.sign(header["alg"].as_str().unwrap(), message.as_bytes());
        format!("{message}.{}", encode(&signature))
    }

    fn sign(&self, alg: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(pair) => {
                let encoding: &'static dyn RsaEncoding = match alg {
                    "RS256" => &RSA_PKCS1_SHA256,
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    "PS384" => &RSA_PSS_SHA384,
                    "PS512" => &RSA_PSS_SHA512,
                    other => panic!("not an algorithm for RSA: {other}"),
                };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(encoding, &random, message, &mut signature)
                    .unwrap();
                signature
            }
            Self::P256(pair) | Self::P384(pair) => {
                pair.sign(&random, message).unwrap().as_ref().to_vec()
            }
            Self::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }
}

/// A token that is signed with a public key as if it were a shared secret.
pub(super) fn hs256(header: &Value, claims: &Value, secret: &[u8]) -> String {
    let message = message(header, claims);
    let tag = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, secret),
        message.as_bytes(),
    );
    format!("{message}.{}", encode(tag.as_ref()))
}

/// Header and claims as they are signed. A header without a type gets `JWT`, one whose type is null none.
pub(super) fn message(header: &Value, claims: &Value) -> String {
    let mut header = header.clone();
    match header.get("typ") {
        None => header["typ"] = "JWT".into(),
        Some(Value::Null) => drop(header.as_object_mut().unwrap().remove("typ")),
        Some(_) => {}
    }
    let part = |value: &Value| encode(value.to_string().as_bytes());
    format!("{}.{}", part(&header), part(claims))
}

pub(super) fn encode(bytes: &[u8]) -> String {
    BASE64URL_NOPAD.encode(bytes)
}

fn ecdsa(algorithm: &'static EcdsaSigningAlgorithm) -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap()
}

fn point(curve: &str, point: &[u8]) -> Value {
    let (x, y) = point[1..].split_at(point.len() / 2);
    json!({"kty": "EC", "crv": curve, "x": encode(x), "y": encode(y)})
}

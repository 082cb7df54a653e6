//! The key that signs checkpoints, and its public half.

use std::fmt;
use std::path::Path;

use data_encoding::{BASE64, HEXLOWER, HEXLOWER_PERMISSIVE};
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

/// The maximum bytes of a key file.
const MAX_KEY_BYTES: usize = 4096;
/// The beginning of an Ed25519 key in PKCS#8, version 1, before the 32 bytes of the seed.
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// The beginning of an Ed25519 public key (RFC 8410), before its 32 bytes.
const SPKI_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];
/// The label of the key for hashes of arguments, so that it is not the key of signatures.
const HMAC_LABEL: &[u8] = b"mcp-broker audit arguments v1";

/// The reason why a key is unusable.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file was not read.
    #[error("the key file `{file}`: {error}")]
    Read {
        /// The file.
        file: String,
        /// The reason.
        error: broker_files::ReadError,
    },
    /// Not a private key of Ed25519.
    #[error("it is not an Ed25519 key: neither PKCS#8 in PEM nor a seed of 32 bytes")]
    Private,
    /// Not a public key of Ed25519.
    #[error("it is not an Ed25519 public key: neither PEM nor 64 hexadecimal digits")]
    Public,
    /// The system gave no random bytes.
    #[error("the system gave no random bytes")]
    Random,
}

/// The key of a log. It signs checkpoints and hashes arguments.
#[derive(Clone)]
pub struct AuditKey {
    pair: std::sync::Arc<Ed25519KeyPair>,
    hmac: hmac::Key,
    public: PublicKey,
}

/// The public half of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

/// A new key, as the texts of two files.
#[derive(Clone)]
pub struct KeyPair {
    /// The private key: PKCS#8 in PEM.
    pub private_pem: String,
    /// The public key in PEM.
    pub public_pem: String,
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair").finish_non_exhaustive()
    }
}

impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditKey")
            .field("id", &self.public.id())
            .finish_non_exhaustive()
    }
}

impl KeyPair {
    /// Makes a key.
    ///
    /// # Errors
    ///
    /// `Random` of [`KeyError`].
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = [0; 32];
        SystemRandom::new()
            .fill(&mut seed)
            .map_err(|_| KeyError::Random)?;
        let key = AuditKey::from_seed(&seed)?;
        Ok(Self {
            private_pem: pem("PRIVATE KEY", &[&PKCS8_PREFIX, &seed]),
            public_pem: key.public.to_pem(),
        })
    }
}

impl AuditKey {
    /// Reads a key file.
    ///
    /// # Errors
    ///
    /// `Read` and `Private` of [`KeyError`].
    pub fn read(file: &Path) -> Result<Self, KeyError> {
        let bytes = broker_files::read(file, MAX_KEY_BYTES).map_err(|error| KeyError::Read {
            file: file.display().to_string(),
            error,
        })?;
        Self::parse(&bytes)
    }

    /// Makes a key of the bytes of a file: PKCS#8 in PEM, or a seed of 32 bytes.
    ///
    /// # Errors
    ///
    /// `Private` of [`KeyError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, KeyError> {
        if bytes.len() == 32 {
            return Self::from_seed(bytes);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| KeyError::Private)?;
        let der = from_pem("PRIVATE KEY", text).ok_or(KeyError::Private)?;
        Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map_err(|_| KeyError::Private)?;
        // The seed follows the algorithm in both versions of the form.
        let algorithm = &PKCS8_PREFIX[5..];
        let at = der
            .windows(algorithm.len())
            .position(|part| part == algorithm);
        let seed = at.and_then(|at| der.get(at + algorithm.len()..at + algorithm.len() + 32));
        Self::from_seed(seed.ok_or(KeyError::Private)?)
    }

    fn from_seed(seed: &[u8]) -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| KeyError::Private)?;
        let public = pair.public_key().as_ref();
        let public = PublicKey(public.try_into().map_err(|_| KeyError::Private)?);
        let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, seed), HMAC_LABEL);
        Ok(Self {
            pair: std::sync::Arc::new(pair),
            hmac: hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()),
            public,
        })
    }

    /// Returns the public half.
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    /// Signs a message; base64.
    pub(crate) fn sign(&self, message: &[u8]) -> String {
        BASE64.encode(self.pair.sign(message).as_ref())
    }

    /// Returns the keyed hash of arguments, in hexadecimal.
    pub(crate) fn hmac(&self, bytes: &[u8]) -> String {
        HEXLOWER.encode(hmac::sign(&self.hmac, bytes).as_ref())
    }
}

impl PublicKey {
    /// Reads the text of a public key: PEM, or 64 hexadecimal digits.
    ///
    /// # Errors
    ///
    /// `Public` of [`KeyError`].
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let der = from_pem("PUBLIC KEY", text);
        let bytes = match &der {
            Some(der) => der.strip_prefix(&SPKI_PREFIX[..]).map(<[u8]>::to_vec),
            None => HEXLOWER_PERMISSIVE.decode(text.trim().as_bytes()).ok(),
        };
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or(KeyError::Public)
    }

    /// Returns the text of the key in PEM.
    pub fn to_pem(self) -> String {
        pem("PUBLIC KEY", &[&SPKI_PREFIX, &self.0])
    }

    /// Returns the id of the key: the first 16 digits of its SHA-256.
    pub fn id(self) -> String {
        let mut id = HEXLOWER.encode(digest(&SHA256, &self.0).as_ref());
        id.truncate(16);
        id
    }

    /// Whether a signature in base64 is one of this key.
    pub(crate) fn verifies(self, message: &[u8], signature: &str) -> bool {
        let Ok(signature) = BASE64.decode(signature.as_bytes()) else {
            return false;
        };
        let key = UnparsedPublicKey::new(&ED25519, self.0);
        key.verify(message, &signature).is_ok()
    }
}

fn pem(label: &str, parts: &[&[u8]]) -> String {
    let body = BASE64.encode(&parts.concat());
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

fn from_pem(label: &str, text: &str) -> Option<Vec<u8>> {
    let begin = format!("-----BEGIN {label}-----");
    let (_, rest) = text.split_once(&begin)?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let body: String = body.split_ascii_whitespace().collect();
    BASE64.decode(body.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_read_in_each_form_and_signs_the_same() {
        let pair = KeyPair::generate().unwrap();
        let key = AuditKey::parse(pair.private_pem.as_bytes()).unwrap();
        let public = PublicKey::parse(&pair.public_pem).unwrap();
        assert_eq!(public, key.public());
        assert_eq!(
            PublicKey::parse(&HEXLOWER.encode(&public.0)).unwrap(),
            public
        );
        let der = from_pem("PRIVATE KEY", &pair.private_pem).unwrap();
        let raw = AuditKey::parse(&der[16..]).unwrap();
        let signature = raw.sign(b"text");
        assert_eq!(signature, key.sign(b"text"));
        assert!(public.verifies(b"text", &signature));
        assert!(!public.verifies(b"texts", &signature) && !public.verifies(b"text", "AAAA"));
        assert_eq!(raw.hmac(b"{}"), key.hmac(b"{}"));
    }

    #[test]
    fn key_of_the_second_version_of_its_form_is_read() {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let text = pem("PRIVATE KEY", &[pkcs8.as_ref()]);
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        let key = AuditKey::parse(text.as_bytes()).unwrap();
        assert_eq!(key.public().0, pair.public_key().as_ref());
    }

    #[test]
    fn text_that_is_not_a_key_is_refused() {
        for text in [
            "",
            "key",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        ] {
            assert!(matches!(
                AuditKey::parse(text.as_bytes()),
                Err(KeyError::Private)
            ));
            assert!(matches!(PublicKey::parse(text), Err(KeyError::Public)));
        }
    }
}

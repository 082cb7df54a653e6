//! Reads a JSON Web Key Set (RFC 7517). Keys that verify no token are left out and counted.

use std::sync::Arc;

use broker_config::identities::SignatureAlgorithm;
use data_encoding::BASE64URL_NOPAD;
use jsonwebtoken::DecodingKey;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::set::{KeyKind, KeySet, PublicKey};

/// Maximum number of keys that are read.
pub(crate) const MAX_KEYS: usize = 100;
/// Bounds of RSA keys, in bits; `ring` takes no longer ones.
const MIN_RSA_BITS: usize = 2048;
const MAX_RSA_BITS: usize = 8192;
const MAX_KID_BYTES: usize = 256;

/// A key set as it was read.
#[derive(Debug)]
pub(crate) struct ReadSet {
    pub(crate) set: KeySet,
    /// The number of keys that are not usable, such as symmetric ones.
    pub(crate) unusable: usize,
    /// The number of keys after the maximum.
    pub(crate) beyond: usize,
}

/// Reads a set; `None` if the bytes are not an object with a list `keys`.
pub(crate) fn parse(bytes: &[u8]) -> Option<ReadSet> {
    let document: Value = serde_json::from_slice(bytes).ok()?;
    let listed = document.get("keys")?.as_array()?;
    let read = &listed[..listed.len().min(MAX_KEYS)];
    let keys: Vec<_> = read
        .iter()
        .filter_map(|key| public_key(key.as_object()?))
        .map(Arc::new)
        .collect();
    Some(ReadSet {
        unusable: read.len() - keys.len(),
        beyond: listed.len() - read.len(),
        set: KeySet { keys },
    })
}

fn public_key(members: &Map<String, Value>) -> Option<PublicKey> {
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    if !is_for_signatures(members) {
        return None;
    }
    let algorithm = match members.get("alg") {
        None => None,
        // RFC 9864 has a name for EdDSA with this curve.
        Some(name) if name == "Ed25519" => Some(SignatureAlgorithm::EdDSA),
        Some(name) => Some(SignatureAlgorithm::parse(name.as_str()?)?),
    };
    let kid = match members.get("kid") {
        None => None,
        Some(kid) => Some(
            kid.as_str()
                .filter(|kid| kid.len() <= MAX_KID_BYTES)?
                .to_owned(),
        ),
    };
    let (kind, parameters, decoding) = match (text("kty")?, text("crv")) {
        ("RSA", _) => rsa(text("n")?, text("e")?)?,
        ("EC", Some("P-256")) => point(KeyKind::P256, 32, text("x")?, text("y")?)?,
        ("EC", Some("P-384")) => point(KeyKind::P384, 48, text("x")?, text("y")?)?,
        ("OKP", Some("Ed25519")) => {
            let x = bytes_of(text("x")?, 32)?;
            let key = DecodingKey::from_ed_der(&x);
            (KeyKind::Ed25519, x, key)
        }
        _ => return None,
    };
    let mut hash = Sha256::new();
    hash.update([kind as u8]);
    hash.update(&parameters);
    Some(PublicKey {
        id: hash.finalize().into(),
        kid,
        kind,
        algorithm,
        decoding,
    })
}

/// Whether `use` and `key_ops`, if they are present, allow the verification of signatures.
fn is_for_signatures(members: &Map<String, Value>) -> bool {
    let usage = members.get("use");
    let operations = members.get("key_ops");
    usage.is_none_or(|usage| usage == "sig")
        && operations.is_none_or(|list| {
            let list = list.as_array();
            list.is_some_and(|list| list.iter().any(|one| one == "verify"))
        })
}

type Parameters = (KeyKind, Vec<u8>, DecodingKey);

fn rsa(n: &str, e: &str) -> Option<Parameters> {
    let (n, e) = (decode(n)?, decode(e)?);
    // Some issuers write the sign byte of DER.
    let n = without_zeros(&n);
    let e = without_zeros(&e);
    let bits = n.len() * 8 - n.first()?.leading_zeros() as usize;
    if !(MIN_RSA_BITS..=MAX_RSA_BITS).contains(&bits) || e.is_empty() {
        return None;
    }
    let key = DecodingKey::from_rsa_raw_components(n, e);
    Some((KeyKind::Rsa, [n, e].concat(), key))
}

fn without_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros..]
}

/// Returns a point in the form that `ring` reads: 4, x, y.
fn point(kind: KeyKind, size: usize, x: &str, y: &str) -> Option<Parameters> {
    let (x, y) = (bytes_of(x, size)?, bytes_of(y, size)?);
    let point = [&[4][..], &x, &y].concat();
    let key = DecodingKey::from_ec_der(&point);
    Some((kind, point, key))
}

fn bytes_of(text: &str, length: usize) -> Option<Vec<u8>> {
    decode(text).filter(|bytes| bytes.len() == length)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64URL_NOPAD
        .decode(text.trim_end_matches('=').as_bytes())
        .ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn encoded(length: usize) -> String {
        BASE64URL_NOPAD.encode(&vec![0x81; length])
    }

    fn read(keys: &[Value]) -> ReadSet {
        parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
    }

    fn p256() -> Value {
        json!({"kty": "EC", "crv": "P-256", "x": encoded(32), "y": encoded(32)})
    }

    fn rsa_of(bytes: usize) -> Value {
        json!({"kty": "RSA", "n": encoded(bytes), "e": "AQAB"})
    }

    /// Returns a key with another member.
    fn with(mut key: Value, name: &str, value: Value) -> Value {
        key[name] = value;
        key
    }

    #[test]
    fn set_keeps_the_keys_that_verify_signatures() {
        for (key, kind) in [
            (p256(), KeyKind::P256),
            (with(p256(), "use", json!("sig")), KeyKind::P256),
            (with(p256(), "key_ops", json!(["verify"])), KeyKind::P256),
            (with(p256(), "alg", json!("ES256")), KeyKind::P256),
            (
                with(p256(), "x", json!(format!("{}=", encoded(32)))),
                KeyKind::P256,
            ),
            (
                json!({"kty": "EC", "crv": "P-384", "x": encoded(48), "y": encoded(48)}),
                KeyKind::P384,
            ),
            (
                json!({"kty": "OKP", "crv": "Ed25519", "x": encoded(32), "alg": "Ed25519"}),
                KeyKind::Ed25519,
            ),
            (rsa_of(256), KeyKind::Rsa),
            (rsa_of(1024), KeyKind::Rsa),
        ] {
            let read = read(std::slice::from_ref(&key));
            assert_eq!((read.set.keys.len(), read.unusable), (1, 0), "{key}");
            assert_eq!(read.set.keys[0].kind, kind);
        }
        // A sign byte before the modulus does not change the key.
        let long = [&[0][..], &[0x81; 256]].concat();
        let long = with(rsa_of(256), "n", json!(BASE64URL_NOPAD.encode(&long)));
        let id = |key: Value| read(&[key]).set.keys[0].id;
        assert_eq!(id(long), id(rsa_of(256)));
        assert_eq!(id(p256()), id(with(p256(), "kid", json!("k"))));
    }

    #[test]
    fn set_leaves_out_other_keys() {
        for key in [
            json!({"kty": "oct", "k": encoded(32), "alg": "HS256"}),
            with(p256(), "use", json!("enc")),
            with(p256(), "use", json!(1)),
            with(p256(), "key_ops", json!(["sign"])),
            with(p256(), "key_ops", json!("verify")),
            with(p256(), "alg", json!("HS256")),
            with(p256(), "alg", json!("none")),
            with(p256(), "crv", json!("P-521")),
            with(p256(), "crv", json!("secp256k1")),
            with(p256(), "x", json!(encoded(31))),
            with(p256(), "y", json!("/+")),
            with(p256(), "kid", json!(1)),
            with(p256(), "kid", json!("k".repeat(257))),
            with(p256(), "kty", json!("XY")),
            json!({"kty": "OKP", "crv": "Ed448", "x": encoded(57)}),
            json!({"kty": "OKP", "crv": "X25519", "x": encoded(32)}),
            rsa_of(128),
            // 2 047 bits.
            with(
                rsa_of(256),
                "n",
                json!(BASE64URL_NOPAD.encode(&[0x7f; 256])),
            ),
            rsa_of(1025),
            with(rsa_of(256), "e", json!("")),
            with(rsa_of(256), "e", json!("AA")),
            with(rsa_of(256), "n", json!("")),
            json!("key"),
            json!({}),
        ] {
            let read = read(&[key.clone(), p256()]);
            assert_eq!((read.set.keys.len(), read.unusable), (1, 1), "{key}");
        }
    }

    #[test]
    fn set_has_at_most_100_keys() {
        let mut keys = vec![json!({"kty": "oct"}); 50];
        keys.extend((0..60).map(|n| with(p256(), "kid", json!(n.to_string()))));
        let read = read(&keys);
        assert_eq!(
            (read.set.keys.len(), read.unusable, read.beyond),
            (50, 50, 10)
        );
        for text in ["", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":[]} x"#] {
            assert!(parse(text.as_bytes()).is_none(), "{text}");
        }
        assert!(parse(br#"{"keys":[]}"#).unwrap().set.keys.is_empty());
    }
}

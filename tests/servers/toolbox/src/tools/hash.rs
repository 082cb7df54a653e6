//! The `hash_*` tools: SHA-256, HMAC over it, and two checksums that are not secure.

use data_encoding::HEXLOWER;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::schema::{choice, object, string};
use super::{Answer, Arguments, Failure, Tool};

/// The block length of SHA-256, in bytes.
const BLOCK: usize = 64;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool {
            name: "hash_text",
            title: "Hash a text",
            description: "Hashes the UTF-8 bytes of a text with SHA-256, CRC-32 (IEEE) or 64-bit FNV-1a. Only SHA-256 is secure.",
            input: object(
                json!({
                    "text": string("The text to hash"),
                    "algorithm": choice("The hash to use; sha256 when left out", &["sha256", "crc32", "fnv1a"]),
                }),
                &["text"],
            ),
            output: Some(object(
                json!({
                    "algorithm": {"type": "string", "enum": ["sha256", "crc32", "fnv1a"]},
                    "digest": {"type": "string", "pattern": "^[0-9a-f]+$", "description": "Lower-case hexadecimal digits"},
                    "bytes": {"type": "integer", "minimum": 0, "description": "How many bytes were hashed"},
                }),
                &["algorithm", "digest", "bytes"],
            )),
            run: hash,
        },
        Tool {
            name: "hash_hmac",
            title: "Sign a text",
            description: "Works out the HMAC-SHA-256 (RFC 2104) of a text under a key, as lower-case hexadecimal digits. The key is sent to this tool as it is.",
            input: object(
                json!({"text": string("The text to sign"), "key": string("The key, as text")}),
                &["text", "key"],
            ),
            output: None,
            run: sign,
        },
    ]
}

fn hash(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let text = arguments.text("text")?;
    let algorithm = arguments.find("algorithm")?.unwrap_or("sha256");
    let digest = match algorithm {
        "crc32" => format!("{:08x}", crc32(text.as_bytes())),
        "fnv1a" => format!("{:016x}", fnv1a(text.as_bytes())),
        _ => HEXLOWER.encode(&Sha256::digest(text)),
    };
    Ok(Answer::Structured(
        json!({"algorithm": algorithm, "digest": digest, "bytes": text.len()}),
    ))
}

fn sign(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let (text, key) = (arguments.text("text")?, arguments.text("key")?);
    Ok(Answer::Text(
        HEXLOWER.encode(&hmac(key.as_bytes(), text.as_bytes())),
    ))
}

fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; BLOCK];
    if key.len() > BLOCK {
        let digest = Sha256::digest(key);
        block[..digest.len()].copy_from_slice(&digest);
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = Sha256::new()
        .chain_update(block.map(|byte| byte ^ 0x36))
        .chain_update(text)
        .finalize();
    Sha256::new()
        .chain_update(block.map(|byte| byte ^ 0x5c))
        .chain_update(inner)
        .finalize()
        .to_vec()
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            let flip = if sum & 1 == 1 { 0xedb8_8320 } else { 0 };
            sum >> 1 ^ flip
        })
    })
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{structured, text};
    use super::*;

    #[test]
    fn hash_matches_published_vectors() {
        for (algorithm, given, expected) in [
            (
                "sha256",
                "abc",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
            ("crc32", "123456789", "cbf43926"),
            ("crc32", "", "00000000"),
            ("fnv1a", "", "cbf29ce484222325"),
            ("fnv1a", "foobar", "85944171f73967e8"),
        ] {
            assert_eq!(
                structured("hash_text", json!({"text": given, "algorithm": algorithm})),
                json!({"algorithm": algorithm, "digest": expected, "bytes": given.len()})
            );
        }
        let default = structured("hash_text", json!({"text": ""}));
        assert_eq!(default["algorithm"], "sha256");
    }

    #[test]
    fn hmac_matches_rfc_4231_and_hashes_a_long_key_first() {
        assert_eq!(
            text(
                "hash_hmac",
                json!({"key": "Jefe", "text": "what do ya want for nothing?"})
            ),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            HEXLOWER.encode(&hmac(
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First"
            )),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }
}

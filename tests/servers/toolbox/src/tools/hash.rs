//! The tool `hash_text`: SHA-256, and two checksums that are not secure.

use data_encoding::HEXLOWER;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::schema::{choice, object, string};
use super::{Answer, Arguments, Failure, Tool};

pub(super) fn tools() -> Vec<Tool> {
    vec![Tool {
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
    }]
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
    use super::super::tests::structured;
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
}

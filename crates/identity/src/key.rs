//! The text of API keys: `mbk_`, 26 characters with 128 random bits, and 6 characters of checksum.
//!
//! Both parts are base32 (RFC 4648) in lower case without padding. The checksum is the first 30 bits of the SHA-256
//! of the text before it, so that typing errors and programs that search for secrets recognise a key offline. The
//! broker stores the SHA-256 of the whole text; a key is too random to be found from it.

use broker_config::identities::{KEY_PREFIX, KeyDigest};
use broker_model::redact::Secret;
use data_encoding::BASE32_NOPAD;
use sha2::{Digest as _, Sha256};

const RANDOM_BYTES: usize = 16;
const RANDOM_CHARS: usize = 26;
const CHECKSUM_CHARS: usize = 6;
/// Length of every key.
pub const KEY_LENGTH: usize = KEY_PREFIX.len() + RANDOM_CHARS + CHECKSUM_CHARS;

/// The system gives no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no random bytes: {0}")]
pub struct RandomError(getrandom::Error);

/// Generates a new random key.
///
/// # Errors
///
/// [`RandomError`].
pub fn generate() -> Result<Secret, RandomError> {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes).map_err(RandomError)?;
    Ok(encode(bytes))
}

fn encode(bytes: [u8; RANDOM_BYTES]) -> Secret {
    let mut text = format!("{KEY_PREFIX}{}", base32(&bytes));
    let checksum = checksum(&text);
    text.push_str(&checksum);
    Secret::new(text)
}

/// Whether a text is a key without a typing error.
pub fn is_well_formed(text: &str) -> bool {
    if text.len() != KEY_LENGTH || !text.is_ascii() || text.bytes().any(|b| b.is_ascii_uppercase())
    {
        return false;
    }
    let (body, end) = text.split_at(KEY_LENGTH - CHECKSUM_CHARS);
    let Some(random) = body.strip_prefix(KEY_PREFIX) else {
        return false;
    };
    let bytes = BASE32_NOPAD.decode(random.to_ascii_uppercase().as_bytes());
    bytes.is_ok() && end == checksum(body)
}

/// Whether a credential claims to be a key.
pub fn has_prefix(text: &str) -> bool {
    text.starts_with(KEY_PREFIX)
}

/// Computes the SHA-256 of a key: the broker identifies the key by it.
pub fn digest(text: &str) -> KeyDigest {
    KeyDigest::new(Sha256::digest(text).into())
}

fn checksum(body: &str) -> String {
    let mut text = base32(&Sha256::digest(body)[..4]);
    text.truncate(CHECKSUM_CHARS);
    text
}

fn base32(bytes: &[u8]) -> String {
    BASE32_NOPAD.encode(bytes).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_random_and_well_formed() {
        let (one, other) = (generate().unwrap(), generate().unwrap());
        assert_ne!(one, other);
        for key in [&one, &other] {
            assert!(is_well_formed(key.expose()) && key.expose().len() == KEY_LENGTH);
            assert!(has_prefix(key.expose()));
        }
        assert!(!format!("{one:?} {one}").contains(one.expose()));
    }

    #[test]
    fn key_format_never_changes() {
        let key = encode([0xa5; RANDOM_BYTES]);
        assert_eq!(key.expose(), "mbk_uws2ljnfuws2ljnfuws2ljnfuu3xahje");
        let hash = Sha256::digest(key.expose());
        let hash = data_encoding::HEXLOWER.encode(&hash);
        assert_eq!(digest(key.expose()).to_string(), hash);
    }

    #[test]
    fn key_with_any_wrong_character_is_not_well_formed() {
        let key = encode([0xa5; RANDOM_BYTES]);
        let key = key.expose();
        for at in 0..key.len() {
            for other in ["a", "b", "7", "0", "A", "_"] {
                let mut wrong = key.to_owned();
                wrong.replace_range(at..=at, other);
                assert_eq!(is_well_formed(&wrong), wrong == key, "{wrong}");
            }
        }
        for wrong in [
            "",
            "mbk_",
            &key[1..],
            &key[..key.len() - 1],
            &format!("{key}a"),
        ] {
            assert!(!is_well_formed(wrong), "{wrong}");
        }
        let mut wide = key.to_owned();
        wide.replace_range(5..7, "é");
        assert!(!is_well_formed(&wide));
    }
}

//! Ids of legacy sessions: 128 random bits, so that a caller cannot guess them.

use std::fmt;

use axum::http::HeaderValue;
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// The version of the format.
const PREFIX: &str = "s1-";
const BYTES: usize = 16;
/// Bytes of the hash that logs show.
const SHOWN_BYTES: usize = 4;

/// The id of a session. Its `Debug` form is a hash, since logs must not show what a caller needs to use
/// the session.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SessionId([u8; BYTES]);

impl SessionId {
    /// A random id.
    pub(super) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Reads the value of `Mcp-Session-Id`; `None` if it cannot be an id of this broker.
    pub(super) fn parse(value: &HeaderValue) -> Option<Self> {
        let digits = value.as_bytes().strip_prefix(PREFIX.as_bytes())?;
        let bytes = HEXLOWER.decode(digits).ok()?;
        bytes.try_into().ok().map(Self)
    }

    /// The value of `Mcp-Session-Id`.
    pub(super) fn header(self) -> HeaderValue {
        let value = format!("{PREFIX}{}", HEXLOWER.encode(&self.0));
        HeaderValue::try_from(value).expect("hexadecimal digits are valid in a header")
    }
}

impl SessionId {
    /// A name for other programs that does not convey the id. Its beginning is what logs show.
    pub(super) fn hash(self) -> String {
        HEXLOWER.encode(&Sha256::digest(self.0))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {}", &self.hash()[..2 * SHOWN_BYTES])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_id_is_random_and_read_back() {
        let id = SessionId::random().unwrap();
        assert_ne!(id, SessionId::random().unwrap());
        let header = id.header();
        assert_eq!(header.len(), PREFIX.len() + 2 * BYTES);
        assert_eq!(SessionId::parse(&header), Some(id));
        for other in ["", "s1-", "s2-00000000000000000000000000000000", "s1-0g"] {
            let other = HeaderValue::from_str(other).unwrap();
            assert_eq!(SessionId::parse(&other), None, "{other:?}");
        }
    }

    #[test]
    fn session_id_in_a_log_is_a_hash() {
        let id = SessionId::random().unwrap();
        let shown = format!("{id:?}");
        let header = id.header();
        assert!(
            !header
                .to_str()
                .unwrap()
                .contains(shown.split(' ').next_back().unwrap())
        );
    }
}

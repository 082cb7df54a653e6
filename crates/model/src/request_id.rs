//! The name of a request in logs and replies.

use std::fmt;

/// The maximum length of an id, in bytes.
const MAX_BYTES: usize = 31;

/// The id of a request: at most 31 bytes. It is copied with each call, without an allocation.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestId {
    bytes: [u8; MAX_BYTES],
    len: u8,
}

impl RequestId {
    /// Returns the id that consists of these parts. The rest after 31 bytes is left out.
    #[inline]
    pub fn new(parts: &[&str]) -> Self {
        let mut bytes = [0; MAX_BYTES];
        let mut len = 0;
        for part in parts {
            let end = part.floor_char_boundary(MAX_BYTES - len);
            bytes[len..len + end].copy_from_slice(&part.as_bytes()[..end]);
            len += end;
            if end < part.len() {
                break;
            }
        }
        Self {
            bytes,
            len: len as u8,
        }
    }

    /// Returns the id as text.
    #[inline]
    pub fn as_str(&self) -> &str {
        // It consists of whole characters.
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_id_has_the_whole_characters_that_fit() {
        assert_eq!(RequestId::new(&["r-", "1"]).as_str(), "r-1");
        assert_eq!(RequestId::new(&[]).as_str(), "");
        let long = RequestId::new(&[&"a".repeat(30), "é", "b"]);
        assert_eq!(long.as_str(), "a".repeat(30));
        assert_eq!(
            RequestId::new(&[&"a".repeat(31), "b"]).as_str(),
            "a".repeat(31)
        );
    }
}

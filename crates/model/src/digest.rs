//! Digests: `sha256/1:` and the hex of SHA-256 over a domain, a zero byte, and canonical JSON.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::json::{canonical_object, to_canonical};

/// The name of the formula. Another algorithm gets another name, so that it is not mistaken for drift.
pub const HASH_MODEL: &str = "sha256/1";

/// The regular expression of a digest in its written form, for JSON Schemas.
pub const PATTERN: &str = r"^sha256/1:[0-9a-f]{64}$";

/// `sha256/1:` and 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(extend("pattern" = PATTERN))
)]
pub struct Digest(String);

impl Digest {
    /// The digest of `value` in a domain, for example `mcp-broker:tool:1`.
    pub fn of(domain: &str, value: &Value) -> Self {
        Self::of_bytes(domain, &to_canonical(value))
    }

    fn of_bytes(domain: &str, canonical: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(domain.as_bytes());
        hash.update([0]);
        hash.update(canonical);
        Self(format!("{HASH_MODEL}:{}", hex(&hash.finalize())))
    }

    /// The digest of a whole raw tool.
    pub fn of_tool(tool: &Map<String, Value>) -> Self {
        Self::of_bytes("mcp-broker:tool:1", &canonical_object(tool))
    }

    /// The digest of one member, `mcp-broker:<member>:1`.
    pub fn of_member(member: &str, value: &Value) -> Self {
        Self::of(&format!("mcp-broker:{member}:1"), value)
    }

    /// A digest in its written form; `None` if the form is invalid.
    pub fn from_written(text: &str) -> Option<Self> {
        let hex = text.strip_prefix(HASH_MODEL)?.strip_prefix(':')?;
        (hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
            .then(|| Self(text.to_owned()))
    }

    /// The written form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The entity tag of a reply, with quotes: half of the SHA-256 of its bytes, in hex.
pub fn etag(reply: &[u8]) -> String {
    format!("\"{}\"", hex(&Sha256::digest(reply)[..16]))
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

impl TryFrom<String> for Digest {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::from_written(&text).ok_or("not a digest: `sha256/1:` and 64 hexadecimal digits")
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn digest_formula_never_changes() {
        // printf 'mcp-broker:tool:1\0{"inputSchema":{"type":"object"},"name":"t"}' | sha256sum
        let tool = json!({"name": "t", "inputSchema": {"type": "object"}});
        assert_eq!(
            Digest::of_tool(tool.as_object().unwrap()).as_str(),
            "sha256/1:1a5f5aafb736e5ce3d1590cdb2c3bfda05d89fb2f9b349f96e5e7072426f4498"
        );
    }

    #[test]
    fn digest_differs_by_domain() {
        assert_ne!(
            Digest::of_member("title", &json!("x")),
            Digest::of_member("name", &json!("x"))
        );
        assert_eq!(
            Digest::of_member("m", &json!(1.0)),
            Digest::of_member("m", &json!(1))
        );
    }
}

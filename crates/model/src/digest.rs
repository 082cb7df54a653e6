//! Digests: `sha256/1:` and the hex of SHA-256 over a domain, a zero byte, and canonical JSON.
//!
//! The prefix is `sha256/2:` if the JSON has a number that is neither a 64-bit integer nor a double in its
//! shortest form (see [`json`](crate::json)): the formula of `sha256/1:` has no canonical form for it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::json::{canonical_object_with_range, canonical_with_range};

/// The name of the formula. Another algorithm gets another name, so that it is not mistaken for drift.
pub const HASH_MODEL: &str = "sha256/1";

/// The name of the formula for JSON with numbers of the second range.
pub const SECOND_HASH_MODEL: &str = "sha256/2";

/// The regular expression of a digest in its written form, for JSON Schemas.
pub const PATTERN: &str = r"^sha256/[12]:[0-9a-f]{64}$";

/// `sha256/1:` or `sha256/2:` and 64 hexadecimal digits.
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
    pub fn new(domain: &str, value: &Value) -> Self {
        Self::from_canonical(domain, canonical_with_range(value))
    }

    /// The digest of a text that is not read as JSON, in a domain.
    pub fn from_text(domain: &str, text: &str) -> Self {
        Self::from_bytes(HASH_MODEL, domain, text.as_bytes())
    }

    fn from_canonical(domain: &str, (bytes, is_second_range): (Vec<u8>, bool)) -> Self {
        let model = match is_second_range {
            true => SECOND_HASH_MODEL,
            false => HASH_MODEL,
        };
        Self::from_bytes(model, domain, &bytes)
    }

    fn from_bytes(model: &str, domain: &str, canonical: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(domain.as_bytes());
        hash.update([0]);
        hash.update(canonical);
        Self(format!("{model}:{}", hex(&hash.finalize())))
    }

    /// The digest of a whole raw tool.
    pub fn from_tool(tool: &Map<String, Value>) -> Self {
        Self::from_canonical("mcp-broker:tool:1", canonical_object_with_range(tool))
    }

    /// The digest of one member, `mcp-broker:<member>:1`.
    pub fn from_member(member: &str, value: &Value) -> Self {
        Self::new(&format!("mcp-broker:{member}:1"), value)
    }

    /// A digest in its written form; `None` if the form is invalid.
    pub fn from_written(text: &str) -> Option<Self> {
        let model = [HASH_MODEL, SECOND_HASH_MODEL];
        let rest = model.iter().find_map(|model| text.strip_prefix(model))?;
        let hex = rest.strip_prefix(':')?;
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
        Self::from_written(&text)
            .ok_or("not a digest: `sha256/1:` or `sha256/2:` and 64 hexadecimal digits")
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
            Digest::from_tool(tool.as_object().unwrap()).as_str(),
            "sha256/1:1a5f5aafb736e5ce3d1590cdb2c3bfda05d89fb2f9b349f96e5e7072426f4498"
        );
    }

    #[test]
    fn digest_of_an_exact_number_has_the_second_prefix() {
        // printf 'mcp-broker:m:1\0[1e+400]' | sha256sum
        let digest = |text: &str| Digest::from_member("m", &crate::json::parse(text).unwrap());
        let exact = digest("[1e400]");
        assert_eq!(
            exact.as_str(),
            "sha256/2:b39ead159ca0b311a2077a7b0565c0723d23ad8340c662c6c0e0d5a07454a73a"
        );
        assert_eq!(Digest::from_written(exact.as_str()), Some(exact.clone()));
        assert_eq!(digest("[10.0e399]"), exact);
        assert_ne!(digest("[1e401]"), exact);
        assert_ne!(digest(r#"["1e400"]"#), exact);
        assert_ne!(digest(r#"["\ufdd01e400"]"#), exact);
        assert!(digest("[0.1]").as_str().starts_with("sha256/1:"));
    }

    #[test]
    fn digest_differs_by_domain() {
        assert_ne!(
            Digest::from_member("title", &json!("x")),
            Digest::from_member("name", &json!("x"))
        );
        assert_eq!(
            Digest::from_member("m", &json!(1.0)),
            Digest::from_member("m", &json!(1))
        );
    }
}

//! The idempotency key of a call: a second call of the same caller and path with it is the same job.

/// The member of `_meta` that has the key of a call over MCP. The server does not get it.
pub const META_NAME: &str = "dev.mcp-broker/idempotency-key";
/// The maximum bytes of a key.
pub const MAX_BYTES: usize = 255;

/// Whether a text can be a key: 1 to 255 visible ASCII characters.
pub fn is_valid(text: &str) -> bool {
    (1..=MAX_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_has_visible_ascii_characters_within_its_bound() {
        for key in ["a", "order-17", "~!", &"x".repeat(MAX_BYTES)] {
            assert!(is_valid(key), "{key}");
        }
        for other in [
            "",
            "a b",
            "\t",
            "é",
            "a\n",
            "\u{7f}",
            &"x".repeat(MAX_BYTES + 1),
        ] {
            assert!(!is_valid(other), "{other}");
        }
    }
}

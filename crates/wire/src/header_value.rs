//! Values of HTTP headers that repeat parts of a message (revision 2026-07-28, Streamable HTTP). A value that is
//! not plain text is written in base64.

use std::borrow::Cow;

use data_encoding::BASE64;

/// Around a value in base64.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// Returns the value of a header for `text`. Encoded if it has other characters than visible ASCII and blanks, begins
/// or ends with a blank, or looks like an encoded value.
pub fn encode(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim_matches(' ') == text
        && !(text.starts_with(ENCODED.0) && text.ends_with(ENCODED.1));
    if is_plain {
        return Cow::Borrowed(text);
    }
    let (start, end) = ENCODED;
    Cow::Owned(format!("{start}{}{end}", BASE64.encode(text.as_bytes())))
}

/// Returns the text of a value; `None` if it is encoded and its base64 is not valid.
pub fn decode(value: &str) -> Option<Cow<'_, str>> {
    let encoded = value
        .strip_prefix(ENCODED.0)
        .and_then(|rest| rest.strip_suffix(ENCODED.1));
    let Some(encoded) = encoded else {
        return Some(Cow::Borrowed(value));
    };
    let bytes = BASE64.decode(encoded.as_bytes()).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_value_is_encoded_only_if_it_must_be() {
        for (text, value) in [
            ("a b~", "a b~"),
            ("é", "=?base64?w6k=?="),
            (" a", "=?base64?IGE=?="),
            ("a\t", "=?base64?YQk=?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
            ("=?base64?", "=?base64?"),
            ("", ""),
        ] {
            assert_eq!(encode(text), value, "{text}");
            assert_eq!(decode(value).as_deref(), Some(text));
        }
        for value in ["=?base64?w6k?=", "=?base64?!!!?=", "=?base64?/w==?="] {
            assert_eq!(decode(value), None, "{value}");
        }
    }
}

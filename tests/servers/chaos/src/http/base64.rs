//! Header values in base64: `=?base64?…?=` with the standard alphabet and padding, strictly.

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text of a header value; `None` if its base64 is not valid.
pub(crate) fn decode_header(value: &str) -> Option<String> {
    let coded = value
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(SUFFIX));
    match coded {
        None => Some(value.to_owned()),
        Some(coded) => String::from_utf8(decode(coded.as_bytes())?).ok(),
    }
}

fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::new();
    let groups = text.len() / 4;
    for (at, group) in text.chunks(4).enumerate() {
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 2 || (padding > 0 && at + 1 < groups) {
            return None;
        }
        let mut value = 0_u32;
        for byte in &group[..4 - padding] {
            let digit = ALPHABET.iter().position(|known| known == byte)?;
            value = value << 6 | u32::try_from(digit).ok()?;
        }
        value <<= 6 * padding;
        let [_, decoded @ ..] = value.to_be_bytes();
        let (kept, cut) = decoded.split_at(3 - padding);
        // Bits that are not part of a byte are zero in the only valid form.
        if cut.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend(kept);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::decode_header;

    #[test]
    fn header_in_base64_is_decoded_strictly() {
        let decoded = |value: &str| decode_header(value);
        assert_eq!(decoded("plain").as_deref(), Some("plain"));
        assert_eq!(decoded("=?base64?w6TDtg==?=").as_deref(), Some("äö"));
        assert_eq!(decoded("=?base64?IGE=?=").as_deref(), Some(" a"));
        assert_eq!(decoded("=?base64?YWJj?=").as_deref(), Some("abc"));
        for wrong in ["YWJ", "YW=j", "YWJ=YWJj", "YW-j", "IGF=", "====", "/w=="] {
            assert_eq!(decoded(&format!("=?base64?{wrong}?=")), None, "{wrong}");
        }
    }
}

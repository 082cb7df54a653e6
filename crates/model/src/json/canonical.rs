//! Canonical bytes: RFC 8785 (JCS), except that numbers keep all digits.
//!
//! JCS writes every number as an IEEE double and would round integers above 2^53; a lock must distinguish
//! such values. Integers of 64 bits have all their digits. Doubles are written as JCS says, so `1.0` and `1`
//! are equal; `-0` is `0`. An exact number (see [`number`](super::number)) has all its significant digits, in
//! the layout of ECMAScript's `Number::toString` too: digits without exponent from 1e-6 up to below 1e21,
//! otherwise one digit, a point and the others, `e`, a sign and the exponent: `1.5e+400`. So one value has one
//! form. Canonical bytes with a number that is neither a 64-bit integer nor a double in its shortest form are
//! of the *second range*; their digests have the prefix `sha256/2:`.

use serde_json::{Map, Number, Value};

use super::decimal::Decimal;
use super::number::{exact_number, is_in_first_range, unescaped};

/// The canonical bytes of `value`.
pub fn to_canonical(value: &Value) -> Vec<u8> {
    canonical_with_range(value).0
}

/// The canonical bytes of an object with these members.
pub fn canonical_object(members: &Map<String, Value>) -> Vec<u8> {
    canonical_object_with_range(members).0
}

/// The canonical bytes of `value`, and whether they are of the second range.
pub(crate) fn canonical_with_range(value: &Value) -> (Vec<u8>, bool) {
    let mut out = Output::default();
    write_value(value, &mut out);
    (out.bytes, out.is_second_range)
}

/// The canonical bytes of an object with these members, and whether they are of the second range.
pub(crate) fn canonical_object_with_range(members: &Map<String, Value>) -> (Vec<u8>, bool) {
    let mut out = Output::default();
    write_object(members, &mut out);
    (out.bytes, out.is_second_range)
}

struct Output {
    bytes: Vec<u8>,
    is_second_range: bool,
}

impl Default for Output {
    fn default() -> Self {
        Self {
            bytes: Vec::with_capacity(256),
            is_second_range: false,
        }
    }
}

impl Output {
    fn push(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
}

fn write_value(value: &Value, out: &mut Output) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => match exact_number(value) {
            Some(number) => write_exact_number(number, out),
            None => write_string(unescaped(text), out),
        },
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_value(item, out);
            }
            out.push(b']');
        }
        Value::Object(members) => write_object(members, out),
    }
}

fn write_object(members: &Map<String, Value>, out: &mut Output) {
    let mut sorted: Vec<_> = members.iter().collect();
    // JCS sorts by UTF-16 code units. This order differs from byte order above U+FFFF.
    sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    out.push(b'{');
    for (index, (key, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(key, out);
        out.push(b':');
        write_value(value, out);
    }
    out.push(b'}');
}

fn write_number(number: &Number, out: &mut Output) {
    if let Some(integer) = number.as_i64() {
        out.extend_from_slice(integer.to_string().as_bytes());
    } else if let Some(integer) = number.as_u64() {
        out.extend_from_slice(integer.to_string().as_bytes());
    } else if let Some(float) = number.as_f64() {
        // ECMAScript's Number::toString, as JCS requires; a `Number` is always finite.
        out.extend_from_slice(ryu_js::Buffer::new().format_finite(float).as_bytes());
    }
}

fn write_exact_number(text: &str, out: &mut Output) {
    if let Some(value) = Decimal::parse(text) {
        value.write(&mut out.bytes);
        out.is_second_range |= !is_in_first_range(&value, text);
    }
}

fn write_string(text: &str, out: &mut Output) {
    // serde_json's escapes are JCS's: two-character forms if they exist, else lower-case \u00xx, else raw.
    serde_json::to_writer(&mut out.bytes, text).expect("writing a string to memory cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(text: &str) -> String {
        String::from_utf8(to_canonical(&crate::json::parse(text).unwrap())).unwrap()
    }

    #[test]
    fn canonical_json_matches_the_examples_of_rfc_8785() {
        // Section 3.2.2 and 3.2.3 of RFC 8785.
        assert_eq!(
            canonical(
                r#"{"numbers":[333333333.3333333,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#
            ),
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#,
        );
        assert_eq!(
            canonical(
                "{\"\\u20ac\":1,\"\\r\":2,\"\\ufb33\":3,\"1\":4,\"\\ud83d\\ude00\":5,\"\\u0080\":6,\"\\u00f6\":7}"
            ),
            "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}",
        );
    }

    #[test]
    fn canonical_json_has_one_form_for_each_number() {
        assert_eq!(canonical("[1.0,1,10e-1,-0,-0.0,0]"), "[1,1,1,0,0,0]");
        assert_eq!(
            canonical("[18446744073709551615,-9223372036854775808,9007199254740993]"),
            "[18446744073709551615,-9223372036854775808,9007199254740993]"
        );
    }

    #[test]
    fn canonical_json_of_exact_numbers_has_all_digits() {
        assert_eq!(
            canonical(
                "[18446744073709551616,10e399,1e401,-1e-400,333333333.33333329,9007199254740993.0]"
            ),
            "[18446744073709551616,1e+400,1e+401,-1e-400,333333333.33333329,9007199254740993]"
        );
        // A value of the first range has the form of the first range, however it is written.
        let range = |text: &str| canonical_with_range(&crate::json::parse(text).unwrap()).1;
        for (text, expected) in [
            ("[1,0.1,1e300,18446744073709551615]", false),
            ("1000000000000000000000000000000", false),
            ("9.223372036854776e18", false),
            ("18446744073709551616", true),
            (r#"{"a":[1e400]}"#, true),
            (r#""\ufdd01e400""#, false),
        ] {
            assert_eq!(range(text), expected, "{text}");
        }
        assert_eq!(
            canonical("1000000000000000000000000000000"),
            canonical("1e30")
        );
    }

    proptest! {
        #[test]
        fn canonical_json_of_canonical_json_is_unchanged(text in "[ -~]{0,20}", int in any::<i64>(), float in -1e300f64..1e300) {
            let value = serde_json::json!({ text.clone(): [int, float], "b": { "t": text } });
            let once = to_canonical(&value);
            let again = to_canonical(&serde_json::from_slice(&once).unwrap());
            prop_assert_eq!(once, again);
        }
    }
}

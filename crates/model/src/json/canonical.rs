//! Canonical bytes: RFC 8785 (JCS), except that 64-bit integers keep all digits.
//!
//! JCS writes every number as an IEEE double and would round integers above 2^53; a lock must distinguish
//! such values. Floats that are integers of at most 2^53 are written like the integer, so `1.0` and `1`
//! are equal; `-0` is `0`.

use serde_json::{Map, Number, Value};

/// The canonical bytes of `value`.
pub fn to_canonical(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write_value(value, &mut out);
    out
}

/// The canonical bytes of an object with these members.
pub fn canonical_object(members: &Map<String, Value>) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write_object(members, &mut out);
    out
}

fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_string(text, out),
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

fn write_object(members: &Map<String, Value>, out: &mut Vec<u8>) {
    let mut sorted: Vec<_> = members.iter().collect();
    // JCS sorts by UTF-16 code units, which differs from byte order above U+FFFF.
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

fn write_number(number: &Number, out: &mut Vec<u8>) {
    if let Some(integer) = number.as_i64() {
        out.extend_from_slice(integer.to_string().as_bytes());
    } else if let Some(integer) = number.as_u64() {
        out.extend_from_slice(integer.to_string().as_bytes());
    } else if let Some(float) = number.as_f64() {
        // ECMAScript's Number::toString, as JCS requires; a `Number` is always finite.
        out.extend_from_slice(ryu_js::Buffer::new().format_finite(float).as_bytes());
    }
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    // serde_json's escapes are JCS's: two-character forms if they exist, else lower-case \u00xx, else raw.
    serde_json::to_writer(out, text).expect("writing a string to memory cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(text: &str) -> String {
        String::from_utf8(to_canonical(&serde_json::from_str(text).unwrap())).unwrap()
    }

    #[test]
    fn canonical_json_matches_the_examples_of_rfc_8785() {
        // Section 3.2.2 and 3.2.3 of RFC 8785.
        assert_eq!(
            canonical(
                r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#
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

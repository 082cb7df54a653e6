//! The texts of events: secrets are masked, characters that are not visible are escaped, and a text that is
//! too long is cut.

use broker_model::json::{exact_number, parse, string_text, string_value, to_text};
use broker_model::redact::Redactor;
use broker_model::unseen::unseen_characters;
use serde_json::Value;
use serde_json::value::RawValue;

/// The maximum bytes of a text of an event, and of the JSON of a log message's data.
const MAX_TEXT_BYTES: usize = 4 << 10;
/// The bytes of a longer text that are read before it is cut; a secret at the end of the shown part is still
/// whole here.
const MAX_READ_BYTES: usize = 64 << 10;
/// The mark at the end of a text that was cut.
const CUT: &str = "…";

/// Returns a text as callers get it.
pub(crate) fn text(text: &str, redactor: &Redactor) -> String {
    let head = &text[..text.floor_char_boundary(MAX_READ_BYTES)];
    let mut shown = visible(&redactor.redact(head));
    if shown.len() > MAX_TEXT_BYTES || head.len() < text.len() {
        shown.truncate(shown.floor_char_boundary(MAX_TEXT_BYTES - CUT.len()));
        shown.push_str(CUT);
    }
    shown
}

/// Returns the string that a JSON value is; the JSON of a string that cannot be decoded, such as a lone surrogate.
pub(crate) fn string_of(value: &RawValue) -> Option<String> {
    let json = value.get();
    json.starts_with('"')
        .then(|| serde_json::from_str(json).unwrap_or_else(|_| json.to_owned()))
}

/// Returns the data of a log message as callers get it. Data that is too long, or that cannot be read, becomes a string
/// with the beginning of its JSON.
pub(crate) fn data(data: &RawValue, redactor: &Redactor) -> Box<RawValue> {
    let json = data.get();
    let within = json.len() <= MAX_TEXT_BYTES;
    if within && is_plain(json) && redactor.redact(json) == json {
        return data.to_owned();
    }
    let shown = within
        .then(|| parse(json).ok().or_else(|| serde_json::from_str(json).ok()))
        .flatten()
        .and_then(|value| RawValue::from_string(to_text(&cleaned(value, redactor))).ok())
        .filter(|shown| shown.get().len() <= MAX_TEXT_BYTES);
    shown.unwrap_or_else(|| as_string(json, redactor))
}

/// Returns a JSON string with the beginning of `json`, of at most [`MAX_TEXT_BYTES`] with its escapes.
fn as_string(json: &str, redactor: &Redactor) -> Box<RawValue> {
    let mut shown = text(json, redactor);
    loop {
        let written = Value::from(shown.as_str()).to_string();
        let over = written.len().saturating_sub(MAX_TEXT_BYTES);
        if over == 0 {
            // A string is JSON.
            return RawValue::from_string(written).unwrap_or_default();
        }
        let keep = shown
            .len()
            .saturating_sub(CUT.len() + over.div_ceil(2).max(1));
        shown.truncate(shown.floor_char_boundary(keep));
        shown.push_str(CUT);
    }
}

fn cleaned(value: Value, redactor: &Redactor) -> Value {
    let clean = |text: &str| visible(&redactor.redact(text));
    match value {
        Value::String(ref text) => match exact_number(&value) {
            Some(digits) if redactor.redact(digits) == digits => value,
            Some(digits) => Value::String(redactor.redact(digits)),
            None => string_value(&clean(string_text(&value).unwrap_or(text))),
        },
        Value::Array(items) => items
            .into_iter()
            .map(|item| cleaned(item, redactor))
            .collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(key, member)| (clean(&key), cleaned(member, redactor)))
            .collect(),
        // A secret that is a number shows in digits.
        Value::Number(number) => {
            let (digits, shown) = (number.to_string(), redactor.redact(&number.to_string()));
            if digits == shown {
                Value::Number(number)
            } else {
                Value::String(shown)
            }
        }
        other => other,
    }
}

/// Whether JSON certainly has no character that is not visible.
fn is_plain(json: &str) -> bool {
    let visible = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t' | b'\r');
    json.bytes().all(visible)
        && !["\\u", "\\b", "\\f", "\\r"]
            .iter()
            .any(|escape| json.contains(escape))
}

/// Returns the text with an escape such as `\u{202e}` for each character that is not visible.
fn visible(text: &str) -> String {
    let unseen = unseen_characters(text);
    let mut out = String::with_capacity(text.len() + 8 * unseen.len());
    let mut from = 0;
    for spot in unseen {
        out.push_str(&text[from..spot.at]);
        out.extend(spot.c.escape_unicode());
        from = spot.at + spot.c.len_utf8();
    }
    out.push_str(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_model::redact::Secret;

    fn shown(json: &str) -> String {
        let redactor = Redactor::new(["hunter2"].map(Secret::new));
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        data(&raw, &redactor).get().to_owned()
    }

    #[test]
    fn event_text_is_cut_and_shows_hidden_characters_and_no_secret() {
        let redactor = Redactor::new(["hunter2"].map(Secret::new));
        assert_eq!(text("a\u{202e}b\u{1b}", &redactor), "a\\u{202e}b\\u{1b}");
        assert_eq!(text("line\n\tend é", &redactor), "line\n\tend é");
        assert!(!text("key hunter2", &redactor).contains("hunter2"));
        for long in ["é".repeat(4000), "\u{202e}".repeat(1 << 20)] {
            let cut = text(&long, &redactor);
            assert!(cut.len() <= MAX_TEXT_BYTES && cut.ends_with('…'));
        }
        assert_eq!(text(&"x".repeat(4096), &redactor).len(), 4096);
    }

    #[test]
    fn log_data_is_kept_as_sent_unless_a_string_has_to_be_changed() {
        for plain in [r#"{"b":1.0,"a":[null,"x\n"]}"#, "1e999", "\"text\""] {
            assert_eq!(shown(plain), plain);
        }
        assert_eq!(
            shown(r#"{"a":["x\u202e"],"k\u001b":1.0}"#),
            r#"{"a":["x\\u{202e}"],"k\\u{1b}":1.0}"#
        );
        assert!(!shown(r#"{"a":"hunter2","b":"\u0068unter2"}"#).contains("hunter2"));
    }

    #[test]
    fn log_data_that_is_too_long_or_unreadable_becomes_a_string() {
        for json in [
            format!("[\"{}\"]", "\\\"".repeat(20_000)),
            format!("\"{}\"", "\u{202e}".repeat(1000)),
            r#"["\ud800"]"#.to_owned(),
        ] {
            let shown = shown(&json);
            assert!(shown.len() <= MAX_TEXT_BYTES, "{}", shown.len());
            let read: String = serde_json::from_str(&shown).unwrap();
            assert!(json.len() < 100 || read.ends_with('…'));
        }
    }
}

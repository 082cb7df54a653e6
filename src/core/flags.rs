//! Points out what a reader of a result does not see: characters that steer a terminal, turn the
//! order of a text, or spell one that nothing draws. The result itself is handed on as it is.

use std::borrow::Cow;
use std::fmt::Write as _;

use broker_model::unseen::{Unseen, spots};

/// Whether [`unseen`] has to look closely; most results are plain ASCII without such escapes.
pub(super) fn may_hide(result: &[u8]) -> bool {
    let escapes = [&b"\\u"[..], b"\\b"];
    !result.is_ascii()
        || escapes
            .iter()
            .any(|escape| memchr::memmem::find(result, escape).is_some())
}

/// What is told of a result that hides something, from its JSON.
pub(super) fn unseen(result: &[u8]) -> Option<String> {
    if !may_hide(result) {
        return None;
    }
    let text = String::from_utf8_lossy(result);
    let found = spots(&unescaped(&text));
    let kinds = [
        (Unseen::Control, "control"),
        (Unseen::Bidirectional, "bidirectional"),
        (Unseen::Tag, "tag"),
    ];
    let mut counts = String::new();
    for (kind, name) in kinds {
        // Of the control characters those that move or colour what was written before.
        let acts =
            |c| kind != Unseen::Control || matches!(c, '\u{8}' | '\u{1b}' | '\u{80}'..='\u{9f}');
        let of_kind = found.iter().filter(|spot| spot.kind == kind);
        let count = of_kind.filter(|spot| acts(spot.c)).count();
        if count > 0 {
            let comma = if counts.is_empty() { "" } else { ", " };
            // Writing to memory does not fail.
            let _ = write!(counts, "{comma}{count} {name}");
        }
    }
    (!counts.is_empty())
        .then(|| format!("the output holds characters that a reader does not see: {counts}"))
}

/// The text with its escapes of characters read; line ends and tabs stay escaped, as they hide nothing.
fn unescaped(json: &str) -> Cow<'_, str> {
    if !json.contains('\\') {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    let mut units: Vec<u16> = Vec::new();
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        if at > 0 {
            flush(&mut units, &mut out);
        }
        out.push_str(&rest[..at]);
        let escape = rest.as_bytes().get(at + 1);
        let unit = rest
            .get(at + 2..at + 6)
            .filter(|_| escape == Some(&b'u'))
            .and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let used = match (escape, unit) {
            (_, Some(unit)) => {
                units.push(unit);
                6
            }
            (Some(b'b'), _) => {
                units.push(8);
                2
            }
            _ => {
                flush(&mut units, &mut out);
                2
            }
        };
        rest = rest.get(at + used..).unwrap_or_default();
    }
    flush(&mut units, &mut out);
    out.push_str(rest);
    Cow::Owned(out)
}

/// Two units may be one character. Line ends are no control characters here, written or escaped.
fn flush(units: &mut Vec<u16>, out: &mut String) {
    let chars =
        char::decode_utf16(units.drain(..)).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
    out.extend(chars.map(|c| if c == '\r' { '\n' } else { c }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_18_what_acts_or_hides_is_counted_however_it_is_written() {
        let told = |json: &str| unseen(json.as_bytes());
        for (json, counts) in [
            (r#"{"a":"\u001b[31mred\u001B[0m"}"#, "2 control"),
            ("{\"a\":\"\u{9b}31m\"}", "1 control"),
            (r#"{"a":"x\by"}"#, "1 control"),
            (r#"{"a":"user\u202egnp.exe"}"#, "1 bidirectional"),
            ("{\"a\":\"user\u{202e}gnp.exe\"}", "1 bidirectional"),
            (r#"{"a":"\udb40\udc41\udb40\udc42"}"#, "2 tag"),
            (r#"{"a":"\u202e \u001b"}"#, "1 control, 1 bidirectional"),
        ] {
            let text = told(json).unwrap_or_else(|| panic!("{json}"));
            assert!(text.ends_with(&format!(": {counts}")), "{json}: {text}");
        }
        for json in [
            r#"{"a":"plain\ttext\r\n\"quoted\" \\u001b \/ \u00e9 \u000a \ud83d\ude00"}"#,
            // What takes no place, and what nothing acts on, is part of many honest texts.
            r#"{"a":"\ufeffpage\u200b \u0000 \f"}"#,
            "{\"a\":\"é 日本語 👩\u{200d}💻 می\u{200c}خواهم\"}",
            r#"{"a":"\\"}"#,
            "{}",
        ] {
            assert_eq!(told(json), None, "{json}");
        }
    }
}

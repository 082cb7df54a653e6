//! Warns about characters of a result that are not visible: terminal controls, bidirectional controls,
//! and characters that are not drawn. The result itself is not changed.

use std::fmt::Write as _;
use std::sync::LazyLock;

use broker_model::unseen::{Unseen, unseen_characters};
use memchr::memchr;
use memchr::memmem::Finder;

/// The JSON escapes that can make up an invisible character.
static ESCAPES: LazyLock<[Finder<'static>; 2]> =
    LazyLock::new(|| [Finder::new(b"\\u"), Finder::new(b"\\b")]);

/// Whether [`warning`] has to read the result; most results are plain ASCII without such escapes.
pub(crate) fn needs_scan(result: &[u8]) -> bool {
    let has_escape = || {
        let first = memchr(b'\\', result);
        let rest = first.map_or(&[][..], |at| &result[at..]);
        !rest.is_empty() && ESCAPES.iter().any(|escape| escape.find(rest).is_some())
    };
    !result.is_ascii() || has_escape()
}

/// Bytes of text that are examined together: memory must not grow with the result.
const PIECE_BYTES: usize = 64 << 10;
/// The kinds of characters that are counted, in the order of the warning.
const KINDS: [(Unseen, &str); 3] = [
    (Unseen::Control, "control"),
    (Unseen::Bidirectional, "bidirectional"),
    (Unseen::Tag, "tag"),
];

/// Returns the warning about invisible characters in a JSON result.
pub(crate) fn warning(result: &[u8]) -> Option<String> {
    if !needs_scan(result) {
        return None;
    }
    let mut counter = Counter::default();
    counter.read(&String::from_utf8_lossy(result));
    let mut counts = String::new();
    for (count, (_, name)) in counter.counts.into_iter().zip(KINDS) {
        if count > 0 {
            let comma = if counts.is_empty() { "" } else { ", " };
            // Writing to memory does not fail.
            let _ = write!(counts, "{comma}{count} {name}");
        }
    }
    (!counts.is_empty())
        .then(|| format!("the output contains characters that are not visible: {counts}"))
}

/// Reads JSON text with its escapes of characters, piece by piece. Other escapes are visible.
#[derive(Default)]
struct Counter {
    counts: [usize; KINDS.len()],
    /// Text that was read and not yet examined.
    text: String,
    /// Consecutive escapes; two may form one character.
    units: Vec<u16>,
}

impl Counter {
    fn read(&mut self, json: &str) {
        let mut rest = json;
        while let Some(at) = rest.find('\\') {
            self.plain(&rest[..at]);
            let unit = match rest.as_bytes().get(at + 1) {
                Some(b'u') => rest
                    .get(at + 2..at + 6)
                    .and_then(|digits| u16::from_str_radix(digits, 16).ok()),
                Some(b'b') => Some(8),
                _ => None,
            };
            let escape = rest.as_bytes().get(at + 1) == Some(&b'u');
            match unit {
                Some(unit) => self.units.push(unit),
                None => self.end_escapes(),
            }
            let used = if escape && unit.is_some() { 6 } else { 2 };
            rest = rest.get(at + used..).unwrap_or_default();
            if self.units.len() >= PIECE_BYTES {
                self.end_escapes();
            }
        }
        self.plain(rest);
        self.end_escapes();
        self.look(self.text.len());
    }

    fn plain(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.end_escapes();
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
            self.text.push_str(piece);
            self.look_if_full();
            rest = more;
        }
    }

    /// Adds the escaped characters to the text. Line ends do not count as control characters, written or escaped.
    fn end_escapes(&mut self) {
        let chars = char::decode_utf16(self.units.drain(..));
        let chars = chars.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
        let chars = chars.map(|c| if c == '\r' { '\n' } else { c });
        self.text.extend(chars);
        self.look_if_full();
    }

    /// Ends a piece after a plain letter if there is one, since emoji and scripts are classified by
    /// their neighbours.
    fn look_if_full(&mut self) {
        if self.text.len() < PIECE_BYTES {
            return;
        }
        let plain = self.text.bytes().rposition(|byte| byte.is_ascii());
        self.look(plain.map_or(self.text.len(), |at| at + 1));
    }

    fn look(&mut self, to: usize) {
        for spot in unseen_characters(&self.text[..to]) {
            // Only control characters that move the cursor or change colours count.
            let acts = spot.kind != Unseen::Control
                || matches!(spot.c, '\u{8}' | '\u{1b}' | '\u{80}'..='\u{9f}');
            let kind = KINDS.iter().position(|(kind, _)| *kind == spot.kind);
            if let Some(at) = kind.filter(|_| acts) {
                self.counts[at] += 1;
            }
        }
        self.text.drain(..to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_counted_in_every_notation() {
        let warned = |json: &str| warning(json.as_bytes());
        for (json, counts) in [
            (r#"{"a":"\u001b[31mred\u001B[0m"}"#, "2 control"),
            ("{\"a\":\"\u{9b}31m\"}", "1 control"),
            (r#"{"a":"x\by"}"#, "1 control"),
            (r#"{"a":"user\u202egnp.exe"}"#, "1 bidirectional"),
            ("{\"a\":\"user\u{202e}gnp.exe\"}", "1 bidirectional"),
            (r#"{"a":"\udb40\udc41\udb40\udc42"}"#, "2 tag"),
            (r#"{"a":"\u202e \u001b"}"#, "1 control, 1 bidirectional"),
        ] {
            let text = warned(json).unwrap_or_else(|| panic!("{json}"));
            assert!(text.ends_with(&format!(": {counts}")), "{json}: {text}");
        }
        for json in [
            r#"{"a":"plain\ttext\r\n\"quoted\" \\u001b \/ \u00e9 \u000a \ud83d\ude00"}"#,
            // Zero-width characters and inert control characters are part of many harmless texts.
            r#"{"a":"\ufeffpage\u200b \u0000 \f"}"#,
            "{\"a\":\"é 日本語 👩\u{200d}💻 می\u{200c}خواهم\"}",
            r#"{"a":"\\"}"#,
            "{}",
        ] {
            assert_eq!(warned(json), None, "{json}");
        }
    }

    #[test]
    fn hidden_characters_of_a_long_result_are_counted_in_pieces() {
        for filler in ["日本語", "a", r"\u00e9", r"\ud83d\ude00"] {
            let long = filler.repeat(3 * PIECE_BYTES);
            let json = format!(r#"{{"a":"\u001b{long}\u202e{long}\u001b"}}"#);
            let mut counter = Counter::default();
            counter.read(&json);
            assert_eq!(counter.counts, [2, 1, 0], "{filler}");
            assert!(counter.text.capacity() <= 8 * PIECE_BYTES, "{filler}");
        }
    }
}

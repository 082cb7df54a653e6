//! Parses bytes into a tree of values with byte offsets. Refuses an invalid size, encoding, nesting or
//! syntax; every duplicate key is reported, and reading continues after it.

use std::collections::HashMap;

use super::excerpt;
use super::findings::Findings;
use super::spanned::{Data, Member, Spanned};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::conflict_markers::first_marker;
use broker_model::diagnostic::Diagnostic;
use broker_model::json::{escape_token, position_of_offset};
use broker_model::text::shown_line;

/// Maximum size of a config, in bytes.
pub const MAX_BYTES: usize = 4 << 20;
/// Maximum nesting.
pub(super) const MAX_DEPTH: usize = 64;
/// Maximum number of values: far above any real config, and parsed in a few milliseconds.
const MAX_VALUES: usize = 100_000;

/// An error that leaves no tree; it is the only finding of its run.
pub(super) type Refusal = Box<Diagnostic>;

/// Checks size and encoding and removes a byte-order mark.
pub(super) fn text_of(bytes: &[u8]) -> Result<&str, Refusal> {
    if bytes.len() > MAX_BYTES {
        return refuse(Diagnostic::error(
            Code::ConfigSize,
            format!(
                "the file has {} bytes; at most {MAX_BYTES} are read",
                bytes.len()
            ),
        ));
    }
    let utf16 = matches!(
        bytes,
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..]
    );
    if utf16 {
        return refuse(
            Diagnostic::error(Code::ConfigEncoding, "byte 0: the file is UTF-16")
                .help("save it as UTF-8"),
        );
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let at = error.valid_up_to();
            let valid = std::str::from_utf8(&bytes[..at]).unwrap_or_default();
            let mut diagnostic = Diagnostic::error(
                Code::ConfigEncoding,
                format!("byte {at}: not UTF-8 (0x{:02x})", bytes[at]),
            );
            diagnostic.position = Some(position_of_offset(valid, at));
            refuse(diagnostic)
        }
    }
}

/// Parses `text`. Duplicate keys go to `findings`. `written` is the text of the file, with every byte of JSON at the
/// same offset; errors show its lines.
pub(super) fn read(
    text: &str,
    written: &str,
    findings: &mut Findings<'_>,
) -> Result<Spanned, Refusal> {
    if text.trim().is_empty() {
        return refuse(
            Diagnostic::error(
                Code::ConfigShape,
                "the config is empty; expected an object with `tree` or `mcpServers`",
            )
            .at(""),
        );
    }
    check_size(text, written)?;
    if let Some(at) = first_marker(text) {
        let message = "the config has merge-conflict markers";
        let mut diagnostic = Diagnostic::error(Code::ConfigSyntax, message).help("Settle the config first; then merge the lock and the audits of both sides with `broker-gen lock --merge`.");
        diagnostic.position = Some(position_of_offset(written, at));
        return refuse(diagnostic);
    }
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        return refuse(excerpt::syntax_error(written, &error));
    }
    let mut reader = Reader {
        text,
        written,
        at: 0,
        way: Vec::new(),
        findings,
    };
    reader.value()
}

fn refuse<T>(diagnostic: Diagnostic) -> Result<T, Refusal> {
    Err(Box::new(diagnostic))
}

/// Counts brackets and commas outside strings before any recursive reader runs, so that nesting stays
/// within [`MAX_DEPTH`] and values within [`MAX_VALUES`].
fn check_size(text: &str, written: &str) -> Result<(), Refusal> {
    let (mut depth, mut values, mut in_string, mut escaped) = (0usize, 1usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => (depth, values) = (depth + 1, values + 1),
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => continue,
        }
        let message = if depth > MAX_DEPTH {
            format!("the file is nested deeper than {MAX_DEPTH} levels")
        } else if values > MAX_VALUES {
            format!("the file has more than {MAX_VALUES} values")
        } else {
            continue;
        };
        let mut diagnostic = Diagnostic::error(Code::ConfigSize, message);
        diagnostic.position = Some(position_of_offset(written, at));
        return refuse(diagnostic);
    }
    Ok(())
}

/// Walks a text that `serde_json` has accepted, so that only its structure matters here.
struct Reader<'t, 'f, 'l> {
    text: &'t str,
    /// The text for positions.
    written: &'t str,
    at: usize,
    /// The tokens of the current pointer.
    way: Vec<String>,
    findings: &'f mut Findings<'l>,
}

impl<'t> Reader<'t, '_, '_> {
    fn value(&mut self) -> Result<Spanned, Refusal> {
        self.skip_space();
        let at = self.at;
        let data = match self.peek() {
            b'{' => self.object()?,
            b'[' => self.array()?,
            b'"' => Data::String(self.string()?),
            b't' => self.word(4, Data::Bool(true)),
            b'f' => self.word(5, Data::Bool(false)),
            b'n' => self.word(4, Data::Null),
            _ => Data::Number(self.number().to_owned()),
        };
        Ok(Spanned { at, data })
    }

    fn object(&mut self) -> Result<Data, Refusal> {
        self.at += 1;
        let mut members: Vec<Member> = Vec::new();
        // A few keys are compared one by one; only a large object needs a map.
        let mut index: HashMap<String, usize> = HashMap::new();
        while self.more(b'}') {
            let at = self.at;
            let key = self.string()?;
            self.skip_space();
            self.at += 1;
            let first = if members.len() < 16 {
                members.iter().find(|m| m.key == key).map(|m| m.at)
            } else {
                if index.is_empty() {
                    index.extend(members.iter().rev().map(|m| (m.key.clone(), m.at)));
                }
                index.get(&key).copied()
            };
            if let Some(first) = first {
                let diagnostic = Diagnostic::error(
                    Code::ConfigDupKey,
                    format!("the object has the key `{}` twice", shown_line(&key, 80)),
                );
                let way = &self.way;
                self.findings.push_also(at, diagnostic, first, || {
                    way.iter()
                        .chain([&key])
                        .map(|token| format!("/{}", escape_token(token)))
                        .collect()
                });
            } else if !index.is_empty() {
                index.insert(key.clone(), at);
            }
            self.way.push(key.clone());
            let value = self.value()?;
            self.way.pop();
            members.push(Member { at, key, value });
        }
        Ok(Data::Object(members))
    }

    fn array(&mut self) -> Result<Data, Refusal> {
        self.at += 1;
        let mut items = Vec::new();
        while self.more(b']') {
            self.way.push(items.len().to_string());
            let item = self.value()?;
            self.way.pop();
            items.push(item);
        }
        Ok(Data::Array(items))
    }

    /// Steps to the next member or item; after the last one, past the closing bracket.
    fn more(&mut self, close: u8) -> bool {
        self.skip_space();
        if self.peek() == b',' {
            self.at += 1;
            self.skip_space();
        }
        if self.peek() == close || self.at >= self.text.len() {
            self.at += 1;
            return false;
        }
        true
    }

    fn string(&mut self) -> Result<String, Refusal> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        self.at += 1;
        while bytes.get(self.at).is_some_and(|byte| *byte != b'"') {
            self.at += if bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at = (self.at + 1).min(bytes.len());
        serde_json::from_str(&self.text[start..self.at]).map_err(|_| {
            // `serde_json` accepts a lone half of a surrogate pair when it skips a string.
            let mut diagnostic = Diagnostic::error(
                Code::ConfigSyntax,
                "a string has a `\\u` escape that is not a character",
            );
            diagnostic.position = Some(position_of_offset(self.written, start));
            Box::new(diagnostic)
        })
    }

    fn number(&mut self) -> &'t str {
        let start = self.at;
        while matches!(self.peek(), b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E') {
            self.at += 1;
        }
        // An accepted text has no other values; the step guarantees that the walk ends.
        self.at = self.at.max(start + 1);
        self.text.get(start..self.at).unwrap_or("")
    }

    fn word(&mut self, length: usize, data: Data) -> Data {
        self.at += length;
        data
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }
}

//! JSON text for reviewers: two spaces, one key per line, invisible characters escaped.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use super::write::ExactNumbers;
use crate::text::is_invisible;

/// `value` as reviewable text with a final newline. It parses into the same value.
pub fn to_review_text(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    let mut serializer = Serializer::with_formatter(
        &mut out,
        ExactNumbers::new(ReviewFormatter(PrettyFormatter::with_indent(b"  "))),
    );
    value
        .serialize(&mut serializer)
        .expect("writing a value to memory cannot fail");
    out.push(b'\n');
    String::from_utf8(out).expect("JSON text is UTF-8")
}

/// [`PrettyFormatter`] that writes invisible characters as `\uXXXX`, so that a reviewer sees them.
struct ReviewFormatter(PrettyFormatter<'static>);

impl Formatter for ReviewFormatter {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut start = 0;
        for (at, c) in fragment.char_indices().filter(|(_, c)| is_invisible(*c)) {
            writer.write_all(&fragment.as_bytes()[start..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            start = at + c.len_utf8();
        }
        writer.write_all(&fragment.as_bytes()[start..])
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn review_text_escapes_hidden_characters_and_reads_back() {
        let value = json!({"b": "é\u{202e}x\u{e0041}\u{7f}", "a\u{200b}": [1, {}], "c": []});
        let text = to_review_text(&value);
        assert_eq!(
            text,
            "{\n  \"a\\u200b\": [\n    1,\n    {}\n  ],\n  \"b\": \"é\\u202ex\\udb40\\udc41\\u007f\",\n  \"c\": []\n}\n"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}

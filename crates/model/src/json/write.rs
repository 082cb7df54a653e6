//! Writes JSON; number strings become numbers again (see [`number`](super::number)).

use std::io;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use serde_json::value::RawValue;

use super::number::{may_be_number, number_in, unescaped};

/// Compact JSON of `value`.
pub fn to_text(value: &impl Serialize) -> String {
    String::from_utf8(to_bytes(value)).expect("JSON text is UTF-8")
}

/// JSON of `value` with two spaces for each level.
pub fn to_pretty_text(value: &impl Serialize) -> String {
    let mut out = Vec::with_capacity(128);
    let pretty = ExactNumbers::new(PrettyFormatter::with_indent(b"  "));
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, pretty);
    value
        .serialize(&mut serializer)
        .expect("writing a value to memory cannot fail");
    String::from_utf8(out).expect("JSON text is UTF-8")
}

/// Compact JSON of `value`, as bytes.
pub fn to_bytes(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    write_to(&mut out, value);
    out
}

/// Appends the compact JSON of `value`.
pub fn write_to(out: &mut Vec<u8>, value: &impl Serialize) {
    let mut serializer =
        serde_json::Serializer::with_formatter(out, ExactNumbers::new(CompactFormatter));
    value
        .serialize(&mut serializer)
        .expect("writing a value to memory cannot fail");
}

/// Serializes a [`Value`](serde_json::Value) with its exact numbers, for serializers of `serde_json` that write
/// text. For `serialize_with`.
pub fn serialize_exactly<S: Serializer>(
    value: &impl Serialize,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    RawValue::from_string(to_text(value))
        .map_err(S::Error::custom)?
        .serialize(serializer)
}

/// A formatter that writes number strings as numbers, and every other string as its author wrote it.
#[derive(Debug)]
pub struct ExactNumbers<F> {
    inner: F,
    state: State,
    /// The first fragment of a string, if it may be all of a number string.
    held: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Outside,
    /// In the name of a member: it is never a number.
    Name,
    /// After the quote of a string. The quote is not written yet.
    Begun,
    /// In a string whose first fragment is held.
    Held,
    /// In a string whose quote is written.
    String,
}

impl<F> ExactNumbers<F> {
    /// Writes everything else with `inner`.
    pub const fn new(inner: F) -> Self {
        Self {
            inner,
            state: State::Outside,
            held: String::new(),
        }
    }
}

impl<F: Formatter> ExactNumbers<F> {
    /// Writes the quote and the held fragment of a string that is longer than this fragment.
    fn open<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        match self.state {
            State::Outside | State::Name | State::String => Ok(()),
            State::Begun => {
                self.state = State::String;
                self.inner.begin_string(writer)
            }
            State::Held => {
                self.state = State::String;
                self.inner.begin_string(writer)?;
                self.inner.write_string_fragment(writer, &self.held)
            }
        }
    }
}

impl<F: Formatter> Formatter for ExactNumbers<F> {
    fn begin_string<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.state == State::Name {
            return self.inner.begin_string(writer);
        }
        self.state = State::Begun;
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if self.state == State::Begun && may_be_number(fragment) {
            self.state = State::Held;
            self.held.clear();
            self.held.push_str(fragment);
            return Ok(());
        }
        self.open(writer)?;
        self.inner.write_string_fragment(writer, fragment)
    }

    fn write_char_escape<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        escape: serde_json::ser::CharEscape,
    ) -> io::Result<()> {
        self.open(writer)?;
        self.inner.write_char_escape(writer, escape)
    }

    fn end_string<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.state == State::Held {
            self.state = State::Outside;
            // A number and the marks before it have no character that is escaped: they are one fragment.
            if let Some(number) = number_in(&self.held) {
                return writer.write_all(number.as_bytes());
            }
            self.inner.begin_string(writer)?;
            self.inner
                .write_string_fragment(writer, unescaped(&self.held))?;
            return self.inner.end_string(writer);
        }
        self.open(writer)?;
        if self.state == State::String {
            self.state = State::Outside;
        }
        self.inner.end_string(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.state = State::Name;
        self.inner.begin_object_key(writer, first)
    }

    fn end_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.state = State::Outside;
        self.inner.end_object_key(writer)
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.begin_array(writer)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.inner.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.end_object(writer)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.end_object_value(writer)
    }

    fn write_raw_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        self.inner.write_raw_fragment(writer, fragment)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn written_strings_are_those_that_were_read() {
        for text in [
            r#"["\ufdd01e400",1e400,"1e400",{"\ufdd01e400":"\ufdd0\ufdd05"},"\ufdd0","\ufdd0\n5","\ufdd05\n"]"#,
            r#"{"$serde_json::private::Number":"1e400"}"#,
            r#"["",{"":""},"\"\\",["\ufdd0-0.5"]]"#,
        ] {
            let value = parse(text).unwrap();
            let plain: serde_json::Value =
                serde_json::from_str(&text.replace("1e400,", "7,")).unwrap();
            let written = to_text(&value);
            let again: serde_json::Value =
                serde_json::from_str(&written.replace("1e400,", "7,")).unwrap();
            assert_eq!(again, plain, "{written}");
            assert_eq!(parse(&written).unwrap(), value);
        }
    }

    fn pieces() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("\u{fdd0}".to_owned()),
            Just("1e400".to_owned()),
            Just("\n".to_owned()),
            "[ -~]{0,3}",
        ]
    }

    proptest! {
        #[test]
        fn any_string_is_written_as_it_was_read(parts in proptest::collection::vec(pieces(), 0..5)) {
            let text = parts.concat();
            let json = serde_json::json!([text.clone(), {text: 1}]).to_string();
            prop_assert_eq!(to_text(&parse(&json).unwrap()), json);
        }
    }
}

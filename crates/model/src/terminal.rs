//! [`Text`]: the only type that both programs write to standard output and standard error. Layout comes
//! from literals in the source code; all other text is escaped when it is added, line ends included.

use std::fmt::{self, Write as _};

use serde_json::Value;

use crate::json::to_pretty_text;
use crate::redact::Redactor;
pub use crate::text::one_line;
use crate::text::visible_json;

/// Text for terminals: no character of a server, a file or an argument can control the terminal or begin a line. Made
/// by [`text!`](crate::text!) and by the methods below. It has no `Display` on purpose: `format!` would turn it into an
/// unescaped string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// An empty text.
    pub const fn new() -> Self {
        Self(String::new())
    }

    /// A value in one line, escaped.
    pub fn line(text: &str) -> Self {
        Self(one_line(text))
    }

    /// Returns a text of several lines: each behind `prefix` and with a line end. The prefix distinguishes it from the
    /// program's lines.
    pub fn lines(prefix: &'static str, text: &str) -> Self {
        let mut out = String::with_capacity(text.len());
        for line in text.lines() {
            out.push_str(prefix);
            out.push_str(&one_line(line));
            out.push('\n');
        }
        Self(out)
    }

    /// A JSON value, indented, with every invisible character as `\u…`, and a line end.
    pub fn json(value: &Value) -> Self {
        Self(visible_json(&to_pretty_text(value)) + "\n")
    }

    /// JSON text, with every invisible character as `\u…`; its layout is kept.
    pub fn json_text(json: &str) -> Self {
        Self(visible_json(json.trim_end()) + "\n")
    }

    /// Adds another text.
    pub fn push(&mut self, other: impl Into<Self>) {
        self.0.push_str(&other.into().0);
    }

    /// The text without trailing white space.
    #[must_use]
    pub fn trimmed(mut self) -> Self {
        self.0.truncate(self.0.trim_end().len());
        self
    }

    /// The text with known secrets masked.
    #[must_use]
    pub fn redacted(&self, redactor: &Redactor) -> Self {
        Self(redactor.redact(&self.0))
    }

    /// The text with secrets masked by this function.
    #[must_use]
    pub fn masked_by(&self, mask: impl FnOnce(&str) -> String) -> Self {
        Self(mask(&self.0))
    }

    /// Returns the text without commands of CI runners. A runner reads commands from the log of a job: `::NAME` at the
    /// start of a line and `##[NAME`, `##vso[NAME` and the like anywhere. Their first character becomes a visible
    /// escape.
    #[must_use]
    pub fn without_commands(self) -> Self {
        if !self.0.contains("::") && !self.0.contains("##") {
            return self;
        }
        let mut out = String::with_capacity(self.0.len());
        for line in self.0.split_inclusive('\n') {
            let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
            out.push_str(indent);
            match rest.strip_prefix("::") {
                Some(after) => {
                    out.push_str("\\u{3a}:");
                    push_without_brackets(&mut out, after);
                }
                None => push_without_brackets(&mut out, rest),
            }
        }
        Self(out)
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text as it is written to the terminal.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// For [`text!`](crate::text!): the macro takes a literal for the layout and wraps each argument.
    #[doc(hidden)]
    pub fn from_literal(parts: fmt::Arguments<'_>) -> Self {
        Self(parts.to_string())
    }
}

/// Adds a text, with an escape wherever `##`, a word and `[` follow each other.
fn push_without_brackets(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find("##") {
        let after = &rest[at + 2..];
        let word = after.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        out.push_str(&rest[..at]);
        out.push_str(if word.starts_with('[') {
            "\\u{23}"
        } else {
            "#"
        });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

/// A literal of the source code, with its layout.
impl From<&'static str> for Text {
    fn from(own: &'static str) -> Self {
        Self(own.to_owned())
    }
}

impl FromIterator<Self> for Text {
    fn from_iter<I: IntoIterator<Item = Self>>(parts: I) -> Self {
        Self(parts.into_iter().map(|part| part.0).collect())
    }
}

/// An argument for `{}` in [`text!`](crate::text!): a [`Text`] is inserted as it is, every other value
/// as one escaped line.
pub trait Part {
    /// Returns the argument in its inserted form.
    fn part(&self) -> Escaped;
}

impl<T: fmt::Display + ?Sized> Part for T {
    fn part(&self) -> Escaped {
        let mut out = String::new();
        // Writing to memory fails only if the `Display` of the value does.
        let _ = write!(out, "{self}");
        Escaped(one_line(&out))
    }
}

impl Part for Text {
    fn part(&self) -> Escaped {
        Escaped(self.0.clone())
    }
}

impl Part for &Text {
    fn part(&self) -> Escaped {
        Escaped(self.0.clone())
    }
}

/// An argument of [`text!`](crate::text!), escaped; width and alignment count the shown characters.
#[derive(Debug)]
pub struct Escaped(String);

impl fmt::Display for Escaped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A [`Text`](crate::terminal::Text) in the syntax of `format!`: the literal is layout, every argument is
/// escaped to one line. Arguments follow the literal and are never inside its braces.
#[macro_export]
macro_rules! text {
    ($layout:literal $(, $argument:expr)* $(,)?) => {
        // `concat!` keeps names out of the braces, where they would not be escaped.
        $crate::terminal::Text::from_literal(::core::format_args!(
            ::core::concat!($layout)
            $(, $crate::terminal::Part::part(&$argument))*
        ))
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::is_invisible;
    use serde_json::json;

    const HOSTILE: &str = "a\u{1b}[2J\r\nwrote it\u{7}\u{202e}\u{200b}";
    const SAFE: &str = "a\\u{1b}[2J\\u{d}\\nwrote it\\u{7}\\u{202e}\\u{200b}";

    #[test]
    fn text_escapes_arguments_and_keeps_the_layout_of_literals() {
        let inner = text!("<{}>\n", HOSTILE);
        assert_eq!(inner.as_str(), format!("<{SAFE}>\n"));
        assert_eq!(
            text!("{}{:>4}|{:<3}|", inner, 7, "ä").as_str(),
            format!("<{SAFE}>\n   7|ä  |")
        );
        assert_eq!(text!("{}", &inner), inner);
        assert_eq!(
            Text::lines("| ", "one\n\u{1b}two\r\n").as_str(),
            "| one\n| \\u{1b}two\n"
        );
        assert_eq!(Text::line(HOSTILE).as_str(), SAFE);
    }

    #[test]
    fn text_in_a_log_forms_no_command_of_a_runner() {
        for (text, shown) in [
            ("::error::x", "\\u{3a}:error::x"),
            (
                "a\n  \t::stop-commands::t\n",
                "a\n  \t\\u{3a}:stop-commands::t\n",
            ),
            ("x ##[error]y", "x \\u{23}#[error]y"),
            (
                "##vso[task]##TeamCity[x",
                "\\u{23}#vso[task]\\u{23}#TeamCity[x",
            ),
            ("###[group]", "#\\u{23}#[group]"),
            ("::##[a]", "\\u{3a}:\\u{23}#[a]"),
            ("a::b ## c [d] #[e]", "a::b ## c [d] #[e]"),
        ] {
            assert_eq!(Text(text.to_owned()).without_commands().as_str(), shown);
        }
    }

    #[test]
    fn text_of_json_escapes_hidden_characters_and_reads_back() {
        let value = json!({"a\u{200b}": HOSTILE, "b": ["\u{e0041}é"]});
        for text in [Text::json(&value), Text::json_text(&value.to_string())] {
            let raw = |c: char| c != '\n' && is_invisible(c);
            assert!(!text.as_str().contains(raw), "{text:?}");
            assert_eq!(
                serde_json::from_str::<Value>(text.as_str()).ok().as_ref(),
                Some(&value)
            );
        }
    }
}

//! One problem with a config, a lock or a snapshot: code, place, cause, remedy.

use std::fmt;

use crate::codes::DiagnosticCode;
use crate::json::Position;
use crate::terminal::Text;
use crate::text;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// For information: the input is accepted.
    Warning,
    /// The operation is refused.
    Error,
}

/// One problem, ready to be shown. Contains no secret value: the code that makes it masks them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The stable code.
    pub code: DiagnosticCode,
    /// The severity.
    pub severity: Severity,
    /// The file as the user named it, if any.
    pub file: Option<String>,
    /// Line and column in the file, if known.
    pub position: Option<Position>,
    /// JSON pointer into the file, if known; `""` is the whole document.
    pub pointer: Option<String>,
    /// The problem: a lowercase fragment with names in backticks.
    pub message: String,
    /// Indented lines below the message: an excerpt of the file, or the stderr of a failed server.
    pub notes: Vec<String>,
    /// The remedy, if it is more specific than the code's.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error without a place.
    pub fn error(code: DiagnosticCode, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            file: None,
            position: None,
            pointer: None,
            message: message.into(),
            notes: Vec::new(),
            help: None,
        }
    }

    /// A warning without a place.
    pub fn warning(code: DiagnosticCode, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, message)
        }
    }

    /// The diagnostic with a specific remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The diagnostic with these lines below the message.
    #[must_use]
    pub fn notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.notes.extend(notes);
        self
    }

    /// The diagnostic at a JSON pointer.
    #[must_use]
    pub fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// The diagnostic in a file.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<String>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The remedy: its own, else the code's.
    pub fn remedy(&self) -> &str {
        self.help.as_deref().unwrap_or(self.code.remedy())
    }

    /// The message with the lines below it.
    pub fn whole_message(&self) -> String {
        let mut whole = self.message.clone();
        for note in &self.notes {
            whole.push('\n');
            whole.push_str(note);
        }
        whole
    }

    /// [`Diagnostic::problem`], and the remedy in a further line.
    pub fn text(&self) -> Text {
        let mut out = self.problem();
        out.push(text!("\n  help: {}", self.remedy()));
        out
    }

    /// `error[code]: message`, its notes and the place: one line each, the last one without a line end.
    pub fn problem(&self) -> Text {
        let mut out = text!(
            "{}[{}]: {}",
            self.severity.as_str(),
            self.code,
            self.message
        );
        for note in &self.notes {
            out.push(text!("\n{}", note));
        }
        let pointer = self.pointer.as_deref().filter(|p| !p.is_empty());
        if let Some(file) = &self.file {
            out.push(text!("\n  --> {}", file));
            if let Some(Position { line, column }) = self.position {
                out.push(text!(":{}:{}", line, column));
            }
            if let Some(pointer) = pointer {
                out.push(text!(" at {}", pointer));
            }
        } else if let Some(pointer) = pointer {
            out.push(text!("\n  --> {}", pointer));
        }
        out
    }

    /// Whether another one is of the same kind, so that one remedy is enough for both.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.code, self.severity, self.remedy()) == (other.code, other.severity, other.remedy())
    }

    /// The diagnostic as one JSON object: `code`, `severity`, `file`, `line`, `column`, `pointer`,
    /// `message`, `help`.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "code": self.code.as_str(),
            "severity": self.severity.as_str(),
            "file": self.file,
            "line": self.position.map(|p| p.line),
            "column": self.position.map(|p| p.column),
            "pointer": self.pointer,
            "message": self.whole_message(),
            "help": self.remedy(),
        })
    }
}

impl Severity {
    /// `error` or `warning`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// [`Diagnostic::text`].
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().as_str())
    }
}

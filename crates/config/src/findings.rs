//! The problems of one config text, and a cursor that knows its place in the text. Problems are
//! reported in file order with line and column, up to a maximum number.

use super::clients::written_pointer;
use super::spanned::{Data, Member, Spanned};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::{Diagnostic, Severity};
use broker_model::json::{escape_token, position_of_offset};

/// Maximum number of problems that are reported for one file.
pub(super) const MAX_REPORTED: usize = 100;
/// Maximum number that is kept until they are sorted.
const MAX_KEPT: usize = 200;

/// All problems of one text.
#[derive(Debug)]
pub(super) struct Findings<'t> {
    file: &'t str,
    text: &'t str,
    kept: Vec<PositionedDiagnostic>,
    errors: usize,
    dropped: usize,
}

#[derive(Debug)]
struct PositionedDiagnostic {
    at: usize,
    also: Option<usize>,
    /// Whether its pointer is one of the file, and not of the converted file of a client.
    is_written: bool,
    diagnostic: Diagnostic,
}

/// A value, its place, and the path to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    pub(super) value: &'a Spanned,
    parent: Option<&'a Self>,
    token: Token<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Token<'a> {
    Key(&'a str, usize),
    Index(usize),
}

impl<'t> Findings<'t> {
    pub(super) fn new(file: &'t str, text: &'t str) -> Self {
        Self {
            file,
            text,
            kept: Vec::new(),
            errors: 0,
            dropped: 0,
        }
    }

    /// Adds a problem at the value of the cursor.
    pub(super) fn add(&mut self, cursor: &Cursor<'_>, diagnostic: Diagnostic) {
        self.keep(cursor.value.at, None, diagnostic, |d| {
            d.at(cursor.pointer())
        });
    }

    /// Adds a problem at the key of the cursor's value.
    pub(super) fn add_key(&mut self, cursor: &Cursor<'_>, diagnostic: Diagnostic) {
        let at = match cursor.token {
            Token::Key(_, at) => at,
            Token::Index(_) => cursor.value.at,
        };
        self.keep(at, None, diagnostic, |d| d.at(cursor.pointer()));
    }

    /// Adds a problem with a second place. The message names that place.
    pub(super) fn add_also(&mut self, cursor: &Cursor<'_>, diagnostic: Diagnostic, also: usize) {
        self.keep(cursor.value.at, Some(also), diagnostic, |d| {
            d.at(cursor.pointer())
        });
    }

    /// Adds a problem with a pointer of the file of a client at a byte offset.
    pub(super) fn push_written(&mut self, at: usize, diagnostic: Diagnostic) {
        let kept = self.kept.len();
        self.keep(at, None, diagnostic, |d| d);
        if let Some(last) = self.kept.get_mut(kept) {
            last.is_written = true;
        }
    }

    /// Adds a problem at a byte offset. The pointer is made only if the problem is kept.
    pub(super) fn push_also(
        &mut self,
        at: usize,
        diagnostic: Diagnostic,
        also: usize,
        pointer: impl FnOnce() -> String,
    ) {
        self.keep(at, Some(also), diagnostic, |d| d.at(pointer()));
    }

    fn keep(
        &mut self,
        at: usize,
        also: Option<usize>,
        diagnostic: Diagnostic,
        place: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        if diagnostic.severity == Severity::Error {
            self.errors += 1;
        }
        if self.kept.len() < MAX_KEPT {
            let diagnostic = place(diagnostic);
            self.kept.push(PositionedDiagnostic {
                at,
                also,
                is_written: false,
                diagnostic,
            });
        } else {
            self.dropped += 1;
        }
    }

    /// Whether further problems are only counted, so that no help text is computed for them.
    pub(super) fn is_full(&self) -> bool {
        self.kept.len() >= MAX_KEPT
    }

    /// Whether the config is refused.
    pub(super) fn refused(&self) -> bool {
        self.errors > 0
    }

    /// All in file order; warnings are dropped before errors if there are too many.
    pub(super) fn finish(self) -> Vec<Diagnostic> {
        self.finish_renamed(&[])
    }

    /// Returns the same; `renamed` has pointers in the converted file of a client, and the pointers
    /// of the same values in the file itself.
    pub(super) fn finish_renamed(mut self, renamed: &[(String, String)]) -> Vec<Diagnostic> {
        if self.kept.len() > MAX_REPORTED {
            self.kept.sort_by_key(|f| (!f.diagnostic.is_error(), f.at));
        }
        let dropped = self.dropped + self.kept.len().saturating_sub(MAX_REPORTED);
        self.kept.truncate(MAX_REPORTED);
        self.kept.sort_by_key(|found| found.at);
        let (file, text) = (self.file, self.text);
        let refused = self.errors > 0;
        let mut reported: Vec<_> = self
            .kept
            .into_iter()
            .map(|found| {
                let is_written = found.is_written;
                let mut diagnostic = found.into_diagnostic(file, text);
                if let Some(pointer) = diagnostic.pointer.as_mut().filter(|_| !is_written)
                    && let Some(written) = written_pointer(renamed, pointer)
                {
                    *pointer = written;
                }
                diagnostic
            })
            .collect();
        if dropped > 0 {
            let last = reported.last().map_or(Code::ConfigShape, |d| d.code);
            let message = format!("and {dropped} more; correct these first");
            let note = if refused {
                Diagnostic::error(last, message)
            } else {
                Diagnostic::warning(last, message)
            };
            reported.push(note.in_file(file));
        }
        reported
    }
}

impl PositionedDiagnostic {
    fn into_diagnostic(self, file: &str, text: &str) -> Diagnostic {
        let mut diagnostic = self.diagnostic.in_file(file);
        diagnostic.position = Some(position_of_offset(text, self.at));
        if let Some(also) = self.also {
            let first = position_of_offset(text, also);
            diagnostic.message = format!(
                "{} (first at {file}:{}:{})",
                diagnostic.message, first.line, first.column
            );
        }
        diagnostic
    }
}

impl<'a> Cursor<'a> {
    /// Returns the same place with another value.
    pub(super) fn with_value<'b>(&self, value: &'b Spanned) -> Cursor<'b>
    where
        'a: 'b,
    {
        Cursor {
            value,
            parent: self.parent,
            token: self.token,
        }
    }

    pub(super) fn root(value: &'a Spanned) -> Self {
        Self {
            value,
            parent: None,
            token: Token::Index(0),
        }
    }

    /// The cursor of one of its members.
    pub(super) fn member(&'a self, member: &'a Member) -> Self {
        Self {
            value: &member.value,
            parent: Some(self),
            token: Token::Key(&member.key, member.at),
        }
    }

    /// The cursor of one of its items.
    pub(super) fn item(&'a self, index: usize, value: &'a Spanned) -> Self {
        Self {
            value,
            parent: Some(self),
            token: Token::Index(index),
        }
    }

    /// The cursor of the last member of this name, if the value is an object that has it.
    pub(super) fn get(&'a self, key: &str) -> Option<Self> {
        match &self.value.data {
            Data::Object(members) => members
                .iter()
                .rev()
                .find(|member| member.key == key)
                .map(|member| self.member(member)),
            _ => None,
        }
    }

    /// The JSON pointer.
    pub(super) fn pointer(&self) -> String {
        let mut tokens = Vec::new();
        let mut here = self;
        while let Some(parent) = here.parent {
            tokens.push(match here.token {
                Token::Key(key, _) => escape_token(key),
                Token::Index(index) => index.to_string(),
            });
            here = parent;
        }
        tokens
            .iter()
            .rev()
            .map(|token| format!("/{token}"))
            .collect()
    }
}

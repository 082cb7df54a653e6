//! Collects what is wrong with one config text, and a cursor that knows where it stands.
//! In the end: file order, places as lines and columns, and a bound on how many are told.

use super::spanned::{Data, Member, Spanned};
use crate::codes::DiagnosticCode as Code;
use crate::diagnostic::{Diagnostic, Severity};
use crate::json::{escape_token, position_of_offset};

/// How many problems of one file are told.
pub(super) const MAX_TOLD: usize = 100;
/// How many are kept until they are sorted.
const MAX_KEPT: usize = 200;

/// Everything found in one text.
#[derive(Debug)]
pub(super) struct Findings<'t> {
    file: &'t str,
    text: &'t str,
    kept: Vec<Found>,
    errors: usize,
    dropped: usize,
}

#[derive(Debug)]
struct Found {
    at: usize,
    also: Option<usize>,
    diagnostic: Diagnostic,
}

/// A value, where it stands, and the way to it.
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

    /// Adds one at the value under the cursor.
    pub(super) fn add(&mut self, cursor: &Cursor<'_>, diagnostic: Diagnostic) {
        self.keep(cursor.value.at, None, diagnostic, |d| {
            d.at(cursor.pointer())
        });
    }

    /// Adds one at the key under which the cursor's value stands.
    pub(super) fn add_key(&mut self, cursor: &Cursor<'_>, diagnostic: Diagnostic) {
        let at = match cursor.token {
            Token::Key(_, at) => at,
            Token::Index(_) => cursor.value.at,
        };
        self.keep(at, None, diagnostic, |d| d.at(cursor.pointer()));
    }

    /// Adds one that has a second place, which the message then names.
    pub(super) fn add_also(&mut self, cursor: &Cursor<'_>, diagnostic: Diagnostic, also: usize) {
        self.keep(cursor.value.at, Some(also), diagnostic, |d| {
            d.at(cursor.pointer())
        });
    }

    /// Adds one at a byte offset. The pointer is only made where the finding is kept.
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
            self.kept.push(Found {
                at,
                also,
                diagnostic,
            });
        } else {
            self.dropped += 1;
        }
    }

    /// Whether more will only be counted, so that no help need be thought of.
    pub(super) fn is_full(&self) -> bool {
        self.kept.len() >= MAX_KEPT
    }

    /// Whether the config is refused.
    pub(super) fn refused(&self) -> bool {
        self.errors > 0
    }

    /// All of them in file order; errors go before warnings only where some must be left out.
    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        if self.kept.len() > MAX_TOLD {
            self.kept.sort_by_key(|f| (!f.diagnostic.is_error(), f.at));
        }
        let dropped = self.dropped + self.kept.len().saturating_sub(MAX_TOLD);
        self.kept.truncate(MAX_TOLD);
        self.kept.sort_by_key(|found| found.at);
        let (file, text) = (self.file, self.text);
        let refused = self.errors > 0;
        let mut told: Vec<_> = self
            .kept
            .into_iter()
            .map(|found| found.into_diagnostic(file, text))
            .collect();
        if dropped > 0 {
            let last = told.last().map_or(Code::ConfigShape, |d| d.code);
            let message = format!("and {dropped} more; mend these first");
            let note = if refused {
                Diagnostic::error(last, message)
            } else {
                Diagnostic::warning(last, message)
            };
            told.push(note.in_file(file));
        }
        told
    }
}

impl Found {
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
    pub(super) fn root(value: &'a Spanned) -> Self {
        Self {
            value,
            parent: None,
            token: Token::Index(0),
        }
    }

    /// The value of one of its members.
    pub(super) fn member(&'a self, member: &'a Member) -> Self {
        Self {
            value: &member.value,
            parent: Some(self),
            token: Token::Key(&member.key, member.at),
        }
    }

    /// One of its items.
    pub(super) fn item(&'a self, index: usize, value: &'a Spanned) -> Self {
        Self {
            value,
            parent: Some(self),
            token: Token::Index(index),
        }
    }

    /// The value of the last member of this name, where it is an object that has one.
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

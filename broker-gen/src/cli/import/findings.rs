//! The report of an import: problems that refuse the file, and notes on what was not taken.

use broker_model::json::position_of_offset;
use broker_model::terminal::Text;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode, text};

use super::document::Document;

/// Maximum number of problems that are reported.
const MAX_PROBLEMS: usize = 100;
/// Maximum number of characters of a name.
const MAX_NAME: usize = 80;

/// Problems and notes of one file.
#[derive(Debug)]
pub(super) struct Findings<'t> {
    file: &'t str,
    text: &'t str,
    problems: Vec<(usize, Diagnostic)>,
    notes: Vec<Text>,
}

impl<'t> Findings<'t> {
    pub(super) fn new(document: &Document<'t>) -> Self {
        Self {
            file: document.file,
            text: document.text,
            problems: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a problem at an offset.
    pub(super) fn problem(&mut self, at: usize, problem: Diagnostic) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push((at, problem));
        }
    }

    /// Adds a problem about a value of the wrong type.
    pub(super) fn wrong_type(&mut self, at: usize, key: &str, expected: &str, got: &str) {
        let key = shown_line(key, MAX_NAME);
        let message = format!("`{key}`: expected {expected}, got {got}");
        self.problem(at, Diagnostic::error(DiagnosticCode::ConfigType, message));
    }

    /// Adds a note.
    pub(super) fn note(&mut self, at: usize, message: &str) {
        let place = position_of_offset(self.text, at);
        self.notes.push(text!(
            "note: {}:{}:{}: {}",
            self.file,
            place.line,
            place.column,
            message
        ));
    }

    /// Notes that a server is left out.
    pub(super) fn left_out(&mut self, at: usize, server: &str, reason: &str) {
        let server = shown_line(server, MAX_NAME);
        self.note(at, &format!("left out: `{server}`: {reason}"));
    }

    /// Whether a problem was added.
    pub(super) fn is_refused(&self) -> bool {
        !self.problems.is_empty()
    }

    /// The problems in the order of the file, with their places.
    pub(super) fn problems(mut self) -> Vec<Diagnostic> {
        self.problems.sort_by_key(|(at, _)| *at);
        let (file, text) = (self.file, self.text);
        let place = |(at, problem): (usize, Diagnostic)| Diagnostic {
            position: Some(position_of_offset(text, at)),
            ..problem.in_file(file)
        };
        self.problems.into_iter().map(place).collect()
    }

    /// Returns the notes, the oldest first.
    pub(super) fn notes(&self) -> &[Text] {
        &self.notes
    }
}

/// A list of names in backticks.
pub(super) fn names<'n>(names: impl IntoIterator<Item = &'n String>) -> String {
    let shown = names.into_iter();
    let shown: Vec<_> = shown
        .map(|name| format!("`{}`", shown_line(name, MAX_NAME)))
        .collect();
    shown.join(", ")
}

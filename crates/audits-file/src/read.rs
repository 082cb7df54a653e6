//! Parses the lists of the audits file into checked entries, or returns the first problem of every entry.

use broker_model::json::position_of_offset;
use broker_model::suggest;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode};
use serde::Deserialize;
use serde::de::Error as _;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error, ValueDeserializer};

const LISTS: &[&str] = &[
    "audits",
    "hints",
    "exemptions",
    "suppressions",
    "left_out",
    "violations",
];

/// The result of a merge of two branches that added entries: git merges lines that both sides share.
const MIXED: &str = "Run `broker-gen lock --merge`, or set up the merge driver of docs/lock.md before the next merge. By hand: keep the entries of both sides, each with a `[[audits]]` line and all its other lines; git leaves lines that both sides share outside its markers.";

/// Maximum number of reported syntax errors; later ones follow from the first few.
const MAX_SYNTAX_ERRORS: usize = 10;
/// Maximum number of reported problems of one file.
const MAX_REPORTED: usize = 100;
/// Lists whose entries are globs: each entry is compared with each tool of the lock.
const GLOBS: [&str; 2] = ["exemptions", "violations"];
/// Maximum number of entries of one of these lists.
const MAX_GLOB_ENTRIES: usize = 500;

/// An entry, and its first line.
#[derive(Clone, Debug)]
pub struct FileEntry<T> {
    pub line: usize,
    pub entry: T,
}

/// A list of the file: its name and its items.
pub(super) type List<'n, 'd> = (&'n str, Spanned<DeValue<'d>>);

/// Reads a text; `take` gets each known list. `file` is its name in messages.
pub fn read_lists<'t>(
    file: &str,
    text: &'t str,
    mut take: impl FnMut(List<'_, 't>, &mut Problems<'t>),
) -> Result<(), Vec<Diagnostic>> {
    let mut problems = Problems {
        text,
        found: Vec::new(),
    };
    if let Some((at, problem)) = merge_conflict(text) {
        problems.found.push((at, problem));
        return Err(problems.finish(file));
    }
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in errors.iter().take(MAX_SYNTAX_ERRORS) {
        let message = format!("invalid TOML: {}", shown_line(error.message(), 200));
        let mut problem = Diagnostic::error(DiagnosticCode::AuditsSyntax, message);
        if error.message().starts_with("duplicate key") {
            problem = problem.help(MIXED);
        }
        let at = error.span().map_or(0, |span| span.start);
        problems.found.push((at, problem));
    }
    if !errors.is_empty() {
        // After a syntax error the remaining text would only give false problems.
        return Err(problems.finish(file));
    }
    for (key, list) in document.into_inner() {
        let name: &str = key.get_ref();
        if LISTS.contains(&name) {
            take((name, list), &mut problems);
        } else {
            problems.add(key.span().start, &Error::unknown_field(name, LISTS));
        }
    }
    let problems = problems.finish(file);
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// The problems of one text, each with its offset.
#[derive(Debug)]
pub struct Problems<'t> {
    text: &'t str,
    found: Vec<(usize, Diagnostic)>,
}

impl Problems<'_> {
    /// The valid entries of one list.
    pub fn entries<'d, T: Deserialize<'d>>(
        &mut self,
        (name, list): List<'_, 'd>,
    ) -> Vec<FileEntry<T>> {
        let at = list.span().start;
        let DeValue::Array(items) = list.into_inner() else {
            let message = format!("expected a list of tables: `[[{name}]]`");
            self.add(at, &Error::custom(message));
            return Vec::new();
        };
        if GLOBS.contains(&name) && items.len() > MAX_GLOB_ENTRIES {
            let count = items.len();
            let message = format!(
                "`[[{name}]]` has {count} entries, and at most {MAX_GLOB_ENTRIES} are read; join them with wider globs"
            );
            self.add(at, &Error::custom(message));
            return Vec::new();
        }
        let mut entries = Vec::new();
        // Counted from entry to entry: a file may have very many.
        let (mut counted, mut line) = (0, 1);
        for item in items {
            let at = item.span().start;
            match self.text.get(counted..at) {
                Some(between) => line += between.matches('\n').count(),
                None => line = position_of_offset(self.text, at).line,
            }
            counted = at;
            match T::deserialize(ValueDeserializer::from(item)) {
                Ok(entry) => entries.push(FileEntry { line, entry }),
                Err(error) => self.add(at, &error),
            }
        }
        entries
    }

    fn add(&mut self, entry: usize, error: &Error) {
        let message = shown_line(error.message(), 300);
        let mut problem = Diagnostic::error(DiagnosticCode::AuditsValue, message);
        if let Some(names) = error.message().strip_prefix("unknown field `") {
            problem.code = DiagnosticCode::AuditsUnknownKey;
            // The message has the unknown name and the known ones in backticks.
            let mut names = names.split('`').step_by(2);
            let name = names.next().unwrap_or_default();
            if let Some(near) = suggest::nearest(name, names, 1).pop() {
                problem = problem.help(format!("did you mean `{near}`?"));
            }
        }
        let at = error.span().map_or(entry, |span| span.start);
        self.found.push((at, problem));
    }

    /// Returns all in the file's order; empty without problems.
    fn finish(mut self, file: &str) -> Vec<Diagnostic> {
        self.found.sort_by_key(|(at, _)| *at);
        let left_out = self.found.len().saturating_sub(MAX_REPORTED);
        self.found.truncate(MAX_REPORTED);
        let found = self.found.into_iter();
        let mut reported: Vec<_> = found
            .map(|(at, diagnostic)| Diagnostic {
                position: Some(position_of_offset(self.text, at)),
                ..diagnostic.in_file(file)
            })
            .collect();
        if left_out > 0 {
            let message = format!("and {left_out} more; correct these first");
            reported.push(Diagnostic::error(DiagnosticCode::AuditsValue, message).in_file(file));
        }
        reported
    }
}

fn merge_conflict(text: &str) -> Option<(usize, Diagnostic)> {
    // A text over several lines may have a line of `=`.
    let marks = ["<<<<<<< ", ">>>>>>> ", "||||||| "];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if marks.iter().any(|mark| line.starts_with(mark)) {
            let line = position_of_offset(text, at).line;
            let message = format!("the audits have merge-conflict markers, from line {line} on");
            return Some((
                at,
                Diagnostic::error(DiagnosticCode::AuditsSyntax, message).help(MIXED),
            ));
        }
        at += line.len();
    }
    None
}

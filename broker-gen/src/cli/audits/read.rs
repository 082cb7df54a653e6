//! Parses the audits file into checked entries, or returns every problem.

use broker_model::json::position_of_offset;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fields::{Fields, Problems};
use super::{Audit, Audits, CRITERIA, Exemption, FileEntry, Suppression};

const AUDIT: &[&str] = &[
    "source",
    "tool",
    "digest",
    "criteria",
    "who",
    "date",
    "looked_at",
    "notes",
    "expires",
];
const EXEMPTION: &[&str] = &["source", "tool", "reason", "expires", "who"];
const SUPPRESSION: &[&str] = &["rule", "source", "tool", "digest", "reason", "who", "date"];
const LISTS: &[&str] = &["audits", "exemptions", "suppressions"];

/// The result of a merge of two branches that added entries: git merges lines that both sides share.
const MIXED: &str = "Keep the entries of both sides, each with a `[[audits]]` line and all its other lines; git leaves lines that both sides share outside its markers.";

/// Maximum number of reported syntax errors; later ones follow from the first few.
const MAX_SYNTAX_ERRORS: usize = 10;

impl Audits {
    /// Reads a text. `file` is its name in messages.
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, Vec<Diagnostic>> {
        let mut problems = Problems::new(file, text);
        if let Some((at, problem)) = merge_conflict(text) {
            problems.add(at, problem);
            return Err(problems.finish());
        }
        let (document, errors) = DeTable::parse_recoverable(text);
        for error in errors.iter().take(MAX_SYNTAX_ERRORS) {
            let message = format!("invalid TOML: {}", shown_line(error.message(), 200));
            let problem = Diagnostic::error(DiagnosticCode::AuditsSyntax, message);
            let problem = match error.message() {
                twice if twice.starts_with("duplicate key") => problem.help(MIXED),
                _ => problem,
            };
            problems.add(error.span().map_or(0, |span| span.start), problem);
        }
        if !errors.is_empty() {
            // After a syntax error the remaining text would only give false problems.
            return Err(problems.finish());
        }
        let document = document.get_ref();
        problems.unknown_keys(document, LISTS, "the audits file");
        let mut audits = Self {
            file: file.to_owned(),
            ..Self::default()
        };
        for fields in entries(&mut problems, document, "audits", "an audit") {
            problems.unknown_keys(fields.table, AUDIT, fields.what);
            audits.audits.extend(audit(&mut problems, fields));
        }
        for fields in entries(&mut problems, document, "exemptions", "an exemption") {
            problems.unknown_keys(fields.table, EXEMPTION, fields.what);
            audits.exemptions.extend(exemption(&mut problems, fields));
        }
        for fields in entries(&mut problems, document, "suppressions", "a suppression") {
            problems.unknown_keys(fields.table, SUPPRESSION, fields.what);
            let read = suppression(&mut problems, fields);
            audits.suppressions.extend(read);
        }
        let problems = problems.finish();
        if problems.is_empty() {
            Ok(audits)
        } else {
            Err(problems)
        }
    }
}

/// The tables of one list.
fn entries<'d>(
    problems: &mut Problems<'_>,
    document: &'d DeTable<'d>,
    key: &str,
    what: &'static str,
) -> Vec<Fields<'d>> {
    let Some(list) = document.get(key) else {
        return Vec::new();
    };
    let mut wrong = |at: &Spanned<DeValue<'_>>| {
        let message = format!("`{key}` must be a list of tables; write `[[{key}]]`");
        problems.add(
            at.span().start,
            Diagnostic::error(DiagnosticCode::AuditsValue, message),
        );
    };
    let DeValue::Array(items) = list.get_ref() else {
        wrong(list);
        return Vec::new();
    };
    let mut out = Vec::new();
    for item in items.iter() {
        match item.get_ref() {
            DeValue::Table(table) => out.push(Fields {
                what,
                table,
                at: item.span().start,
            }),
            _ => wrong(item),
        }
    }
    out
}

// Every field is read before any missing one returns, so that all problems are reported.

fn audit(problems: &mut Problems<'_>, fields: Fields<'_>) -> Option<FileEntry<Audit>> {
    let source = fields.path(problems, "source");
    let tool = fields.optional_text(problems, "tool");
    let digest = fields.digest(problems, "digest");
    let criteria = fields.word(problems, "criteria", CRITERIA);
    let who = fields.text(problems, "who");
    let date = fields.date(problems, "date");
    let looked_at = fields.texts(problems, "looked_at");
    let notes = fields.optional_text(problems, "notes");
    let expires = fields.optional_date(problems, "expires");
    criteria?;
    let line = problems.line(fields.at);
    let entry = Audit {
        source: source?,
        tool: tool?,
        digest: digest?,
        who: who?,
        date: date?,
        looked_at: looked_at?,
        notes: notes?,
        expires: expires?,
    };
    Some(FileEntry { line, entry })
}

fn exemption(problems: &mut Problems<'_>, fields: Fields<'_>) -> Option<Exemption> {
    let source = fields.glob(problems, "source");
    let tool = fields.optional_glob(problems, "tool");
    let expires = fields.date(problems, "expires");
    // These two are only for people, and are still required.
    let said = fields
        .text(problems, "reason")
        .zip(fields.text(problems, "who"));
    said?;
    Some(Exemption {
        source: source?,
        tool: tool?,
        expires: expires?,
    })
}

fn suppression(problems: &mut Problems<'_>, fields: Fields<'_>) -> Option<FileEntry<Suppression>> {
    let rule = fields.text(problems, "rule");
    let source = fields.path(problems, "source");
    let tool = fields.optional_text(problems, "tool");
    let digest = fields.digest(problems, "digest");
    let reason = fields.text(problems, "reason");
    let who = fields.text(problems, "who");
    let date = fields.date(problems, "date");
    let line = problems.line(fields.at);
    let entry = Suppression {
        rule: rule?,
        source: source?,
        tool: tool?,
        digest: digest?,
        reason: reason?,
        who: who?,
        date: date?,
    };
    Some(FileEntry { line, entry })
}

fn merge_conflict(text: &str) -> Option<(usize, Diagnostic)> {
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

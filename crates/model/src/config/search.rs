//! The section `search`, and the hints of a tool: phrases by which a search finds it.

use std::ops::RangeInclusive;

use super::fields;
use super::findings::{Cursor, Findings};
use super::keys::{self, Level};
use super::spanned::Data;
use crate::codes::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::text::{is_invisible, shown_line};

/// The default of `search.top_k`.
const DEFAULT_TOP_K: usize = 5;
/// The values of `search.top_k`: from one hit to as many as a search has.
pub const TOP_K: RangeInclusive<u64> = 1..=50;
/// Maximum number of hints of a tool.
const MAX_HINTS: usize = 5;
/// Maximum length of a hint, in characters.
const MAX_HINT_CHARS: usize = 120;

/// The data that a search uses besides words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// Whether the vectors of words are compiled in.
    pub table: bool,
    /// The number of hits of the mode `search`, unless a caller names another.
    pub top_k: usize,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            table: true,
            top_k: DEFAULT_TOP_K,
        }
    }
}

/// Reads the section.
pub(super) fn read(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Search {
    let mut out = Search::default();
    for member in fields::object(findings, cursor, "an object").unwrap_or_default() {
        let value = cursor.member(member);
        match member.key.as_str() {
            "table" => {
                if let Some(table) = fields::boolean(findings, &value) {
                    out.table = table;
                }
            }
            "top_k" => {
                if let Some(hits) = fields::integer(findings, &value, TOP_K) {
                    out.top_k = hits;
                }
            }
            unknown => keys::unknown(findings, &value, unknown, Level::Search),
        }
    }
    out
}

/// Reads the hints of a tool, sorted: their order has no meaning.
pub(super) fn hints(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    if let Data::Array(items) = &cursor.value.data
        && items.len() > MAX_HINTS
    {
        let message = format!("a tool has at most {MAX_HINTS} hints, got {}", items.len());
        let diagnostic = Diagnostic::error(Code::ConfigRange, message);
        findings.add(
            cursor,
            diagnostic.help("keep the phrases that users say most often"),
        );
        return out;
    }
    fields::strings(findings, cursor, |findings, item, text| {
        let hint = fields::unescaped(findings, item, text, "a hint")?;
        match problem(&hint, &out) {
            Some(problem) => fields::out_of_range(findings, item, problem),
            None => out.push(hint),
        }
        Some(())
    });
    out.sort();
    out
}

/// The reason why a hint is refused.
fn problem(hint: &str, others: &[String]) -> Option<String> {
    let length = hint.chars().count();
    if length > MAX_HINT_CHARS {
        return Some(format!(
            "a hint has at most {MAX_HINT_CHARS} characters, and this one has {length}"
        ));
    }
    if hint
        .chars()
        .any(|c| is_invisible(c) || matches!(c, '\n' | '\t'))
    {
        return Some(format!(
            "a hint is one line without control and invisible characters: `{}`",
            shown_line(hint, MAX_HINT_CHARS)
        ));
    }
    if !hint.chars().any(char::is_alphanumeric) {
        return Some("a hint has at least one letter or digit".to_owned());
    }
    others
        .iter()
        .any(|other| other == hint)
        .then(|| "the hint is in the list twice".to_owned())
}

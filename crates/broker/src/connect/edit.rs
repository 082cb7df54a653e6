//! The result of a change of a client's file, and the parts that JSON and TOML share.

use std::ops::Range;

/// The result of inserting an entry into the text of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// The file already contains the entry.
    Same,
    /// The new text: the entry was added.
    Added(String),
    /// The new text: another entry of this name was replaced.
    Replaced(String),
}

/// The result of removing entries from the text of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Removal {
    /// The new text.
    pub(super) text: String,
    /// The names of the entries that were removed.
    pub(super) names: Vec<String>,
}

impl Removal {
    /// No entry was removed.
    pub(super) fn none(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            names: Vec::new(),
        }
    }
}

/// `text` without these ranges, which may be in any order and overlap.
pub(super) fn without_ranges(text: &str, mut ranges: Vec<Range<usize>>) -> String {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for range in ranges {
        out.push_str(text.get(from..range.start).unwrap_or_default());
        from = from.max(range.end);
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

/// The range with the blanks before it and the line end behind it, if only blanks and a comma are on its lines besides.
pub(super) fn whole_lines(text: &str, range: Range<usize>) -> Range<usize> {
    let Some(indent) = indent_before(text, range.start) else {
        return range;
    };
    let behind = &text[range.end..];
    let line = behind
        .find('\n')
        .map_or(behind, |newline| &behind[..=newline]);
    if line.trim_matches([' ', '\t', '\r', '\n', ',']).is_empty() {
        range.start - indent.len()..range.end + line.len()
    } else {
        range
    }
}

/// `text` with each of `pieces`, which are in order, inserted at its offset.
pub(super) fn with_pieces(text: &str, pieces: &[(usize, &str)]) -> String {
    let added: usize = pieces.iter().map(|(_, piece)| piece.len()).sum();
    let mut out = String::with_capacity(text.len() + added);
    let mut from = 0;
    for (at, piece) in pieces {
        out.push_str(&text[from..*at]);
        out.push_str(piece);
        from = *at;
    }
    out.push_str(&text[from..]);
    out
}

/// The indentation of a value at `at`, if only white space is before it on its line.
pub(super) fn indent_before(text: &str, at: usize) -> Option<&str> {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let before = &text[start..at];
    before
        .trim_matches([' ', '\t'])
        .is_empty()
        .then_some(before)
}

/// The white space at the beginning of the line of `at`.
pub(super) fn line_indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..at];
    let rest = line.trim_start_matches([' ', '\t']);
    &line[..line.len() - rest.len()]
}

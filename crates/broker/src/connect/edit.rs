//! The result of a change of a client's file, and the parts that JSON and TOML share.

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

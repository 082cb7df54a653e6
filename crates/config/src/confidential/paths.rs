//! Absolute paths in words.

use std::ops::Range;

use super::find_outside;

/// The places of absolute paths in a word. A path at the start of a word that is passed to a program is the whole word.
pub(super) fn absolute(word: &str, shell: bool) -> Vec<Range<usize>> {
    if !shell && is_absolute(word) {
        let whole = 0..word.len();
        return vec![whole];
    }
    let mut found = Vec::new();
    let mut at = 0;
    while at < word.len() {
        let Some(quote) = begins(word, at) else {
            at += word[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        };
        let length = find_outside(&word[at..], |c| ends(c, quote, shell));
        let end = length.map_or(word.len(), |length| at + length);
        found.push(at..end);
        at = end.max(at + 1);
    }
    found
}

/// Whether a path begins at `at`; then the quote before it, if there is one.
fn begins(word: &str, at: usize) -> Option<Option<char>> {
    let (before, rest) = word.split_at_checked(at)?;
    if !is_absolute(rest) || (rest.starts_with("//") && !before.is_empty()) {
        return None;
    }
    let last = before.chars().next_back();
    let drive = rest.starts_with(|c: char| c.is_ascii_alphabetic());
    match last {
        None => Some(None),
        Some(quote @ ('"' | '\'' | '`')) => Some(Some(quote)),
        // The default of a variable.
        Some('-') if before.ends_with(":-") => Some(None),
        Some('/') if before.ends_with("file://") => Some(None),
        // `https:/` has no path; a colon separates paths, as in `DIR:/data`.
        Some(':') if drive => None,
        Some(c) if c.is_whitespace() || "=,;:(<>|&@[{".contains(c) => Some(None),
        Some(_) => None,
    }
}

fn ends(c: char, quote: Option<char>, shell: bool) -> bool {
    match quote {
        Some(quote) => c == quote,
        None => "\"'`,;:)}]".contains(c) || (shell && (c.is_whitespace() || "|&<>(".contains(c))),
    }
}

/// Whether a text begins with an absolute path, of Unix or Windows.
fn is_absolute(text: &str) -> bool {
    let mut bytes = text.bytes();
    match (bytes.next(), bytes.next(), bytes.next()) {
        (Some(b'/'), _, _) => true,
        (Some(drive), Some(b':'), Some(b'\\' | b'/')) => {
            // `C:/` and `C:\`, but not the scheme of a URL.
            drive.is_ascii_alphabetic() && bytes.next() != Some(b'/')
        }
        _ => false,
    }
}

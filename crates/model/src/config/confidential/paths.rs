//! Absolute paths in words, and whether they are in the config's folder. Only the texts are compared.

use std::ops::Range;

use super::find_outside;

/// The absolute path of the config's folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder(String);

impl Folder {
    /// A folder by its absolute path.
    pub(crate) fn new(path: &str) -> Self {
        Self(path.trim_end_matches('/').to_owned())
    }

    /// Whether the path is the folder or in it.
    fn has(&self, path: &str) -> bool {
        let below = path.strip_prefix(self.0.as_str());
        below.is_some_and(|below| {
            (below.is_empty() || below.starts_with('/'))
                && !below.split('/').any(|part| part == "..")
        })
    }
}

/// The places of absolute paths in a word that are not in the folder. A path at the start of a word that is
/// passed to a program is the whole word.
pub(super) fn outside(word: &str, folder: &Folder, shell: bool) -> Vec<Range<usize>> {
    if !shell && is_absolute(word) {
        let whole = 0..word.len();
        return if folder.has(word) {
            Vec::new()
        } else {
            vec![whole]
        };
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
        if !folder.has(&word[at..end]) {
            found.push(at..end);
        }
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

//! Texts of URIs: their length, their decoded and folded forms, and segments that servers may resolve.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::look::nfkc;
use crate::text::is_invisible;

/// Maximum length of a template and of a URI, in bytes.
pub const MAX_URI_BYTES: usize = 8 << 10;
/// How often a text is percent-decoded, since servers may decode more than once.
pub(crate) const MAX_DECODINGS: usize = 8;

/// Returns the fully percent-decoded text; `None` if it is encoded more than [`MAX_DECODINGS`] times.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let mut text = text.to_owned();
    for _ in 0..MAX_DECODINGS {
        match percent_decode_str(&text).decode_utf8_lossy() {
            Cow::Borrowed(_) => return Some(text),
            Cow::Owned(next) if next == text => return Some(text),
            Cow::Owned(next) => text = next,
        }
    }
    None
}

/// Whether the path or the fragment of the URI has a segment `.` or `..`, also percent-encoded once or several times, in
/// the form NFKC, or with parameters (`..;a`). A server may take `#` for a character of the path.
pub fn has_dot_segment(uri: &str) -> bool {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let fragment = uri.split_once('#').map_or("", |(_, fragment)| fragment);
    [path, fragment].into_iter().any(|part| {
        decoded(part).is_none_or(|part| {
            let part = nfkc(&part);
            let mut segments = part.split(['/', '\\', '?', '#']);
            segments.any(|segment| {
                let name = segment.split(';').next().unwrap_or_default();
                matches!(name, "." | "..")
            })
        })
    })
}

/// A text as spellings are compared: in lower case and in the form NFKC, with `/` for `\`, without control characters
/// other than NUL and without invisible ones, and with `ss` for the letter that IDNA of 2003 replaces.
pub(crate) fn fold(text: &str) -> String {
    let mut folded = folded_case(text);
    if folded.contains('\\') {
        folded = folded.replace('\\', "/");
    }
    folded
}

/// Folds as [`fold`] does, but keeps `\`: it escapes in patterns.
pub(crate) fn folded_case(text: &str) -> String {
    let lower = text.to_lowercase();
    let mut folded = match lower.is_ascii() {
        true => lower,
        false => {
            let normal = nfkc(&lower).to_lowercase();
            let normal = nfkc(&normal);
            let normal = normal.replace('\u{df}', "ss").replace('\u{3c2}', "\u{3c3}");
            normal.replace('\u{3002}', ".")
        }
    };
    folded.retain(is_kept);
    folded
}

/// Whether a folded text keeps a character. A reader does not see the others, and parsers skip them.
pub(crate) fn is_kept(c: char) -> bool {
    c == '\0' || !(c.is_control() || is_invisible(c))
}

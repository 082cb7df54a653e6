//! URIs of resources: their length, segments that servers may resolve, and the spellings of a URI that a server may read as
//! the same.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::uri_template::UriTemplate;

/// Maximum length of a template and of a URI, in bytes.
pub const MAX_URI_BYTES: usize = 8 << 10;
/// How often a text is percent-decoded, since servers may decode more than once.
pub(crate) const MAX_DECODINGS: usize = 8;

/// The text that is left when nothing in it is percent-encoded; `None` if it is encoded more than [`MAX_DECODINGS`] times.
fn decoded(text: &str) -> Option<String> {
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

/// Whether the path or the fragment of the URI has a segment `.` or `..`, also percent-encoded once or several times. A
/// server may take `#` for a character of the path.
pub fn has_dot_segment(uri: &str) -> bool {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let fragment = uri.split_once('#').map_or("", |(_, fragment)| fragment);
    [path, fragment].into_iter().any(|part| {
        decoded(part).is_none_or(|part| {
            let mut segments = part.split(['/', '\\', '?', '#']);
            segments.any(|segment| matches!(segment, "." | ".."))
        })
    })
}

/// The one spelling of a URI by which filters exclude: percent-decoded, in lower case, with single slashes, and without
/// control characters other than NUL, which URL parsers skip. `None` if it is percent-encoded too often.
pub(crate) fn canonical(uri: &str) -> Option<String> {
    Some(plain(&decoded(uri)?))
}

/// The spellings that a server may read as one URI: percent-decoded any number of times, in lower case, with single
/// slashes, without control characters, and without what follows its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriSpellings {
    written: String,
    /// `None` if the URI is percent-encoded too often.
    others: Option<Vec<String>>,
}

impl UriSpellings {
    /// Computes the spellings of a URI.
    pub fn of(uri: &str) -> Self {
        let mut others = Vec::new();
        let mut text = Some(uri.to_owned());
        for _ in 0..=MAX_DECODINGS {
            let Some(current) = text.take() else {
                break;
            };
            let plain = plain(&current);
            let base = plain.split(['?', '#', '\0']).next().unwrap_or_default();
            let name = base.trim_end_matches(['/', '.', ' ']);
            for spelling in [&plain, base, name] {
                if !others.iter().any(|known| known == spelling) {
                    others.push(spelling.to_owned());
                }
            }
            text = match percent_decode_str(&current).decode_utf8_lossy() {
                Cow::Owned(next) if next != current => Some(next),
                _ => None,
            };
        }
        Self {
            written: uri.to_owned(),
            others: text.is_none().then_some(others),
        }
    }

    /// Whether a server may read one of them as `uri`. A URI that is percent-encoded too often may be every other one.
    pub fn may_be(&self, uri: &str) -> bool {
        match (&self.others, canonical(uri)) {
            (Some(others), Some(uri)) => others.contains(&uri),
            _ => true,
        }
    }

    /// Whether a server may read one of them as a URI of a template.
    pub fn may_be_of(&self, template: &UriTemplate) -> bool {
        if template.covers(&self.written) {
            return true;
        }
        let Some(others) = &self.others else {
            return true;
        };
        match canonical(template.as_str()).map(|text| UriTemplate::parse(&text)) {
            Some(Ok(template)) => others.iter().any(|uri| template.matches_spelling(uri)),
            _ => true,
        }
    }
}

/// A text in lower case, with single slashes and without control characters other than NUL.
fn plain(text: &str) -> String {
    let mut text = text.to_lowercase().replace('\\', "/");
    text.retain(|c| c == '\0' || !c.is_control());
    with_single_slashes(&text)
}

/// The text with one slash in place of several.
pub(crate) fn with_single_slashes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '/' || !out.ends_with('/') {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_segments_are_found_in_every_spelling() {
        for uri in [
            "x://a/..",
            "x://a/./b",
            "x://a/%2e%2E/b",
            "x://a/%252e%25252E/b",
            "x://a/%25%32%65./b",
            "x://a%5c..%5Cb",
            "x://a/..%3Fb",
            "x://a/#/../b",
        ] {
            assert!(has_dot_segment(uri), "{uri}");
        }
        for uri in ["x://a/b..c", "x://a/...", "x://a?b=/../c", "x://a/%2e.c"] {
            assert!(!has_dot_segment(uri), "{uri}");
        }
    }

    #[test]
    fn spellings_of_a_uri_may_be_another_one_or_of_a_template() {
        let template = UriTemplate::parse("docs://Files/{name}").unwrap();
        for uri in [
            "docs://files/salaries",
            "docs://files/salarie%73",
            "docs://files/salarie%2573",
            "DOCS://files//Salaries",
            "docs:\\\\files\\salaries",
            "docs://files/salaries?x#y",
            "docs://files/salaries%00.txt",
            "docs://files/salaries/.",
            "docs%3A//files/salaries",
        ] {
            let spellings = UriSpellings::of(uri);
            assert!(spellings.may_be("docs://files/salaries"), "{uri}");
            assert!(spellings.may_be_of(&template), "{uri}");
            assert!(!spellings.may_be("docs://files/salarie"), "{uri}");
        }
        let other = UriSpellings::of("docs://other/salaries");
        assert!(!other.may_be_of(&template));
        let endless = UriSpellings::of(&format!("docs://a/%{}41", "25".repeat(20)));
        assert!(endless.may_be("docs://files/salaries") && endless.may_be_of(&template));
    }

    #[test]
    fn text_that_is_encoded_too_often_has_no_spelling() {
        let nested = |times: usize| format!("x://a/%{}41", "25".repeat(times));
        assert_eq!(
            canonical(&nested(MAX_DECODINGS - 2)).as_deref(),
            Some("x:/a/a")
        );
        assert_eq!(canonical(&nested(MAX_DECODINGS)), None);
        assert!(has_dot_segment(&nested(MAX_DECODINGS)));
    }
}

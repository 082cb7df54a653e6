//! URIs of resources: their length, segments that servers may resolve, and the spellings of a URI that a server may read as
//! the same.

use percent_encoding::percent_decode_str;

use crate::uri_authority::{Split, has_one_authority};
use crate::uri_template::UriTemplate;
use crate::uri_text::decoded;
pub(crate) use crate::uri_text::{MAX_DECODINGS, fold, folded_case};
pub use crate::uri_text::{MAX_URI_BYTES, has_dot_segment};

/// Maximum number of texts that servers may make of one URI.
const MAX_READINGS: usize = 64;
/// Maximum number of spellings of one URI.
const MAX_SPELLINGS: usize = 512;

/// Returns the texts that identify a URI, or the text of a template: percent-decoded and folded, with single slashes.
/// `None` if it is percent-encoded too often.
pub(crate) fn known_forms(uri: &str) -> Option<Vec<String>> {
    let folded = fold(uri);
    let mut forms = Vec::new();
    add_plain(&mut forms, &fold(&decoded(&folded)?));
    if let Some(split) = Split::parse(&folded)
        && let (Some(head), Some((authority, rest))) = (split.heads().first(), split.authority)
        && !authority.contains('{')
    {
        add_joined(&mut forms, head, &fold(&decoded(rest)?));
    }
    Some(forms)
}

/// The spellings that a server may read as one URI: percent-decoded any number of times, folded, with single slashes, with
/// other names of the host, without dot segments, without parameters, and without what follows the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriSpellings {
    written: String,
    /// `None` if it may be every other URI.
    others: Option<Vec<String>>,
}

impl UriSpellings {
    /// Computes the spellings of a URI.
    pub fn new(uri: &str) -> Self {
        match has_one_authority(uri) {
            true => Self::from_known(uri),
            false => Self {
                written: uri.to_owned(),
                others: None,
            },
        }
    }

    /// Computes the spellings of a URI, or the text of a template, whose authority a reviewer saw: no caller chose it.
    pub fn from_known(uri: &str) -> Self {
        Self {
            written: uri.to_owned(),
            others: spellings(uri),
        }
    }

    /// The spellings; `None` if the URI is percent-encoded too often, has too many spellings, or has an authority that
    /// parsers read differently, so that it may be every other one.
    pub(crate) fn all(&self) -> Option<&[String]> {
        self.others.as_deref()
    }

    /// Whether a server may read one of them as `uri`.
    pub fn may_be(&self, uri: &str) -> bool {
        match (&self.others, known_forms(uri)) {
            (Some(others), Some(known)) => known.iter().any(|form| others.contains(form)),
            _ => true,
        }
    }

    /// Whether a server may read one of them as a URI of a template.
    pub fn may_be_of(&self, template: &UriTemplate) -> bool {
        if template.covers(&self.written) {
            return true;
        }
        let (Some(others), Some(forms)) = (&self.others, known_forms(template.as_str())) else {
            return true;
        };
        forms.iter().any(|form| {
            UriTemplate::parse(form).map_or(true, |form| {
                others.iter().any(|uri| form.matches_spelling(uri))
            })
        })
    }
}

fn spellings(uri: &str) -> Option<Vec<String>> {
    let folded = fold(uri);
    let folded = folded.trim_start_matches(' ');
    let mut forms = Vec::new();
    // What follows the authority is decoded without it: decoded, it may be another authority.
    if let Some(split) = Split::parse(folded)
        && let Some((_, rest)) = split.authority
    {
        let rests = readings(rest)?;
        for head in split.heads() {
            for rest in &rests {
                add_joined(&mut forms, &head, rest);
                if forms.len() > MAX_SPELLINGS {
                    return None;
                }
            }
        }
    }
    for reading in readings(folded)? {
        add_plain(&mut forms, &reading);
        if let Some(split) = Split::parse(&reading)
            && let Some((_, rest)) = split.authority
        {
            for head in split.heads() {
                add_joined(&mut forms, &head, rest);
            }
        }
        if forms.len() > MAX_SPELLINGS {
            return None;
        }
    }
    Some(forms)
}

/// Adds a text with single slashes, and with a slash after its scheme.
fn add_plain(forms: &mut Vec<String>, text: &str) {
    add(forms, with_single_slashes(text));
    if let Some(split) = Split::parse(text)
        && !split.after.starts_with('/')
    {
        let text = format!("{}:/{}", split.scheme, split.after);
        add(forms, with_single_slashes(&text));
    }
}

/// Adds an authority and the text after it. That text is a path in any case.
fn add_joined(forms: &mut Vec<String>, head: &str, rest: &str) {
    add(forms, with_single_slashes(&format!("{head}{rest}")));
    if !rest.starts_with('/') {
        add(forms, with_single_slashes(&format!("{head}/{rest}")));
    }
    // A letter of a drive.
    if let Some(path) = rest.strip_prefix('/')
        && path.get(1..2) == Some("|")
        && head.starts_with("file:")
    {
        let path = format!("{head}/{}:{}", &path[..1], &path[2..]);
        add(forms, with_single_slashes(&path));
    }
}

fn add(forms: &mut Vec<String>, form: String) {
    if !forms.contains(&form) {
        forms.push(form);
    }
}

/// The texts that servers may make of one, in any order of these steps; `None` if there are too many.
fn readings(text: &str) -> Option<Vec<String>> {
    let mut found = vec![(text.to_owned(), 0)];
    let mut at = 0;
    while let Some((text, decodings)) = found.get(at).cloned() {
        at += 1;
        let decoded = percent_decode_str(&text).decode_utf8_lossy();
        let steps = [
            (fold(&decoded), decodings + 1),
            (without_query(&text).to_owned(), decodings),
            (without_end(&text).to_owned(), decodings),
            (without_parameters(&text), decodings),
            (without_dot_segments(&text), decodings),
            // For some servers, a `..` after two slashes removes no segment.
            (with_single_slashes(&text), decodings),
        ];
        for (next, decodings) in steps {
            if found.iter().any(|(known, _)| *known == next) {
                continue;
            }
            if decodings > MAX_DECODINGS || found.len() == MAX_READINGS {
                return None;
            }
            found.push((next, decodings));
        }
    }
    Some(found.into_iter().map(|(text, _)| text).collect())
}

/// A text up to its query, its fragment or NUL: a server in C ends a text there.
fn without_query(text: &str) -> &str {
    text.split(['?', '#', '\0']).next().unwrap_or_default()
}

/// Returns a text without slashes, points and spaces at its end: a file system may ignore them.
fn without_end(text: &str) -> &str {
    text.trim_end_matches(['/', '.', ' '])
}

/// A path without the parameters of its segments (RFC 3986, section 3.3).
fn without_parameters(text: &str) -> String {
    let (path, rest) = text.split_at(without_query(text).len());
    let mut out = String::with_capacity(text.len());
    let mut is_parameter = false;
    for c in path.chars() {
        is_parameter = c == ';' || (is_parameter && c != '/');
        if !is_parameter {
            out.push(c);
        }
    }
    out.push_str(rest);
    out
}

/// A path whose segments `.` and `..` are resolved. `..` never removes the scheme.
fn without_dot_segments(text: &str) -> String {
    let (path, rest) = text.split_at(without_query(text).len());
    if !path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return text.to_owned();
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "." => {}
            ".." => {
                segments.pop_if(|last| !last.ends_with(':') && !last.is_empty());
            }
            segment => segments.push(segment),
        }
    }
    format!("{}{rest}", segments.join("/"))
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
            let spellings = UriSpellings::new(uri);
            assert!(spellings.may_be("docs://files/salaries"), "{uri}");
            assert!(spellings.may_be_of(&template), "{uri}");
            assert!(!spellings.may_be("docs://files/salarie"), "{uri}");
        }
        let other = UriSpellings::new("docs://other/salaries");
        assert!(!other.may_be_of(&template));
        let endless = UriSpellings::new(&format!("docs://a/%{}41", "25".repeat(20)));
        assert!(endless.may_be("docs://files/salaries") && endless.may_be_of(&template));
    }

    #[test]
    fn text_that_is_encoded_too_often_has_no_spelling() {
        let nested = |times: usize| format!("x://a/%{}41", "25".repeat(times));
        assert_eq!(
            known_forms(&nested(MAX_DECODINGS - 2)).map(|forms| forms[0].clone()),
            Some("x:/a/a".to_owned())
        );
        assert_eq!(known_forms(&nested(MAX_DECODINGS)), None);
        assert!(has_dot_segment(&nested(MAX_DECODINGS)));
    }
}

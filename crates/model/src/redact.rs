//! Secrets: values that are never printed, and a redactor that masks them in text of others.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::public_names::PublicNames;
use crate::shown_forms::{continues_word, shown_forms};

/// The replacement of a secret.
pub const MASK: &str = "••••";
/// Shorter values are not masked in text: they would match by chance.
const MIN_SECRET_BYTES: usize = 4;

/// A value that must not be shown. `Debug` and `Display` print the mask.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps `value`.
    pub fn new(value: impl Into<Arc<str>>) -> Self {
        Self(value.into())
    }

    /// The value itself. A reviewer should look at every use.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// Masks every secret value of one broker in text that others wrote: stderr lines, exit reasons, JSON-RPC
/// errors. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    secrets: Arc<[Secret]>,
    /// Every searched form of every secret, the longest first.
    forms: Arc<[Secret]>,
}

impl Redactor {
    /// A redactor of these values, without those shorter than four bytes.
    pub fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let is_long = |secret: &Secret| secret.expose().len() >= MIN_SECRET_BYTES;
        Self::from_list(secrets.into_iter().filter(is_long).collect())
    }

    /// A redactor of all these values that are not empty: also of those that match by chance, for a text in which that is
    /// better than a value that is shown.
    pub fn with_short_values(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let is_given = |secret: &Secret| !secret.expose().is_empty();
        Self::from_list(secrets.into_iter().filter(is_given).collect())
    }

    fn from_list(mut secrets: Vec<Secret>) -> Self {
        // The longest first, so that a secret that contains another one is masked whole.
        secrets.sort_by(|a, b| (b.expose().len(), b.expose()).cmp(&(a.expose().len(), a.expose())));
        secrets.dedup();
        let mut forms: Vec<_> = secrets.iter().flat_map(forms).collect();
        forms.sort_by_key(|form| std::cmp::Reverse(form.expose().len()));
        Self {
            secrets: secrets.into(),
            forms: forms.into(),
        }
    }

    /// This redactor's secrets and `other`'s.
    pub fn merge(&self, other: &Self) -> Self {
        let secrets = self.secrets.iter().chain(other.secrets.iter());
        Self::from_list(secrets.cloned().collect())
    }

    /// Masks the secrets in a text as [`Self::redact`] does, except where one is in a public name that is a word of the text
    /// or a segment of a path or a pointer.
    pub fn redact_except(&self, text: &str, names: &PublicNames) -> String {
        let mut out = text.to_owned();
        for form in self.forms.iter().map(Secret::expose) {
            if out.contains(form) {
                out = mask_unless_public(&out, form, names);
            }
        }
        out
    }

    /// `text` with every known secret masked: as it is, as JSON writes it, and as a terminal shows it. Other
    /// forms (base64, percent-encoding, a part of the secret) are not found.
    pub fn redact(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for form in self.forms.iter().map(Secret::expose) {
            if out.contains(form) {
                out = out.replace(form, MASK);
            }
        }
        out
    }
}

/// Masks one form of a secret wherever it is not in a public name.
fn mask_unless_public(text: &str, form: &str, names: &PublicNames) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(found) = text[at..].find(form) {
        let range = at + found..at + found + form.len();
        out.push_str(&text[at..range.start]);
        match is_public(text, &range, names) {
            true => out.push_str(form),
            false => out.push_str(MASK),
        }
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// Whether the part of the text is in one public name, or only in such names of a path or a pointer.
fn is_public(text: &str, part: &Range<usize>, names: &PublicNames) -> bool {
    names.around(text, part) || {
        let is_of_path = |c: char| continues_word(c) || c == '/';
        let start = text[..part.start].trim_end_matches(is_of_path).len();
        let end = text.len() - text[part.end..].trim_start_matches(is_of_path).len();
        let mut at = start;
        let mut touched = Vec::new();
        for segment in text[start..end].split('/') {
            let from = at;
            at += segment.len() + 1;
            if from < part.end && part.start < from + segment.len() {
                touched.push(segment);
            }
        }
        !touched.is_empty() && touched.into_iter().all(|segment| names.has(segment))
    }
}

/// A secret in its forms.
fn forms(secret: &Secret) -> impl Iterator<Item = Secret> {
    shown_forms(secret.expose()).into_iter().map(Secret::new)
}

/// Whether a variable, header or key of this name usually contains a secret.
pub fn is_secret_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase().replace('-', "_");
    const PARTS: [&str; 13] = [
        "secret",
        "token",
        "password",
        "passwd",
        "passphrase",
        "credential",
        "api_key",
        "apikey",
        "private_key",
        "access_key",
        "authorization",
        "cookie",
        "auth_key",
    ];
    PARTS.iter().any(|part| lower.contains(part))
        || lower == "key"
        || lower.ends_with("_key")
        || lower == "auth"
        || lower.ends_with("_auth")
        || lower.ends_with("_pat")
        || lower.ends_with("_pwd")
        || lower.ends_with("_dsn")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redactor_masks_plain_escaped_and_nested_values() {
        let redactor = Redactor::new(["hunter2", "hunter2-long", "a\"b\\c", "x"].map(Secret::new));
        assert_eq!(
            redactor.redact("p=hunter2-long q=hunter2 x"),
            "p=•••• q=•••• x"
        );
        assert_eq!(redactor.redact(r#"{"v":"a\"b\\c"}"#), r#"{"v":"••••"}"#);
        let redactor = Redactor::new(["line\nbreak\u{200b}"].map(Secret::new));
        let (json, shown) = (r"line\nbreak\u200b", r"line\nbreak\u{200b}");
        assert_eq!(redactor.redact(&format!("{json} {shown}")), "•••• ••••");
        assert_eq!(
            format!("{:?} {}", Secret::new("hunter2"), Secret::new("hunter2")),
            "•••• ••••"
        );
    }

    #[test]
    fn redactor_with_short_values_masks_each_of_them() {
        let redactor = Redactor::with_short_values(["", "%", "q7", "q7-long"].map(Secret::new));
        assert_eq!(redactor.redact("q7-long q7: 5%."), "•••• ••••: 5••••.");
        let merged = Redactor::new(["other"].map(Secret::new)).merge(&redactor);
        assert_eq!(merged.redact("other 5%"), "•••• 5••••");
    }

    #[test]
    fn public_names_are_shown_and_all_else_stays_masked() {
        let mut names = PublicNames::default();
        for name in [
            "get_user",
            "user",
            "inputSchema",
            "two words",
            "input-property-added",
        ] {
            names.add(name);
        }
        let values = [
            "get_user",
            "user",
            "words",
            "property-added",
            "user/get_user",
            "other",
        ];
        let redactor = Redactor::new(values.map(Secret::new));
        for (text, expected) in [
            ("`get_user` is gone", "`get_user` is gone"),
            ("/a/user/get_user: x.", "/a/user/get_user: x."),
            (
                "at /inputSchema/properties/user.",
                "at /inputSchema/properties/user.",
            ),
            (
                "error[input-property-added] it",
                "error[input-property-added] it",
            ),
            ("the `two words` of it", "the `two words` of it"),
            (r#"{"tool":"get_user"}"#, r#"{"tool":"get_user"}"#),
            ("my_user or users", "my_•••• or ••••s"),
            ("get_user.x and x-get_user.", "••••.x and x-••••."),
            ("words get_user2", "•••• ••••2"),
            ("/a/other/user", "/a/••••/user"),
            ("the `other` one", "the `••••` one"),
        ] {
            assert_eq!(redactor.redact_except(text, &names), expected, "{text}");
        }
        assert_eq!(redactor.redact("`get_user`"), "`••••`");
    }

    #[test]
    fn secret_name_is_recognised_by_its_words() {
        for name in [
            "GITHUB_TOKEN",
            "X-Api-Key",
            "Authorization",
            "DB_PASSWORD",
            "SENTRY_DSN",
            "AWS_SECRET_ACCESS_KEY",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["PATH", "LOG_LEVEL", "KEYBOARD", "AUTHOR", "MONKEY"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}

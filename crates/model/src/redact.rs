//! Secrets: values that never print, and a redactor that takes known ones out of text from elsewhere.

use std::fmt;
use std::sync::Arc;

/// What stands where a secret was.
pub const MASK: &str = "••••";
/// Shorter values are not looked for in text: they would match by chance.
const SHORTEST: usize = 4;

/// A value that must not be shown. `Debug` and `Display` print the mask.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps `value`.
    pub fn new(value: impl Into<Arc<str>>) -> Self {
        Self(value.into())
    }

    /// The value itself. Every use is a place to look at in review.
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

/// Knows every secret value of one broker and masks them in text that others wrote: stderr lines,
/// exit reasons, JSON-RPC errors. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Redactor(Arc<[Secret]>);

impl Redactor {
    /// A redactor of these values; those shorter than four bytes are left out.
    pub fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let mut secrets: Vec<_> = secrets
            .into_iter()
            .filter(|s| s.expose().len() >= SHORTEST)
            .collect();
        // The longest first, so that a secret which contains another is masked whole.
        secrets.sort_by(|a, b| (b.expose().len(), b.expose()).cmp(&(a.expose().len(), a.expose())));
        secrets.dedup();
        Self(secrets.into())
    }

    /// This redactor's secrets and `other`'s.
    pub fn merge(&self, other: &Self) -> Self {
        Self::new(self.0.iter().chain(other.0.iter()).cloned())
    }

    /// `text` without any known secret, neither as it is nor as JSON would write it.
    pub fn redact(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for secret in self.0.iter() {
            let value = secret.expose();
            if out.contains(value) {
                out = out.replace(value, MASK);
            }
            let escaped = serde_json::Value::from(value).to_string();
            let escaped = &escaped[1..escaped.len() - 1];
            if escaped != value && out.contains(escaped) {
                out = out.replace(escaped, MASK);
            }
        }
        out
    }
}

/// Whether a variable, header or key of this name usually holds a secret.
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
    fn masks_plain_escaped_and_nested_values() {
        let redactor = Redactor::new(["hunter2", "hunter2-long", "a\"b\\c", "x"].map(Secret::new));
        assert_eq!(
            redactor.redact("p=hunter2-long q=hunter2 x"),
            "p=•••• q=•••• x"
        );
        assert_eq!(redactor.redact(r#"{"v":"a\"b\\c"}"#), r#"{"v":"••••"}"#);
        assert_eq!(
            format!("{:?} {}", Secret::new("hunter2"), Secret::new("hunter2")),
            "•••• ••••"
        );
    }

    #[test]
    fn names() {
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

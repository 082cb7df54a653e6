//! A server's text about the credentials that it wants.

use broker_model::redact::Redactor;
use broker_model::text::shown_line;
use http::StatusCode;
use http::header::{HeaderMap, WWW_AUTHENTICATE};
use url::Url;

/// Maximum number of `WWW-Authenticate` headers that are read.
const MAX_CHALLENGES: usize = 4;
/// Maximum characters of the challenges in a message.
const MAX_SHOWN_CHALLENGE: usize = 300;
/// The document that names the authorization servers of a server (RFC 9728).
const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// The challenges of an answer (RFC 9110, section 11.6.1). Text of the server, not redacted.
pub(in crate::http) struct Challenge(Vec<String>);

impl Challenge {
    /// Returns the challenges in the headers of an answer.
    pub(in crate::http) fn read(headers: &HeaderMap) -> Self {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let values = values.take(MAX_CHALLENGES).map(|value| {
            let text = String::from_utf8_lossy(value.as_bytes());
            text.into_owned()
        });
        Self(values.collect())
    }

    /// Whether the token does not permit the request (RFC 6750, section 3.1).
    pub(in crate::http) fn is_insufficient_scope(&self) -> bool {
        self.param("error").as_deref() == Some("insufficient_scope")
    }

    /// Returns the first parameter of this name.
    fn param(&self, name: &str) -> Option<String> {
        self.0.iter().find_map(|text| {
            params(text).find_map(|(key, value)| key.eq_ignore_ascii_case(name).then_some(value))
        })
    }

    /// Returns the challenges, for a message.
    pub(in crate::http) fn shown(&self, redactor: &Redactor) -> Option<String> {
        let text = redactor.redact(&self.0.join(", "));
        let shown = shown_line(&text, MAX_SHOWN_CHALLENGE);
        (!shown.is_empty()).then_some(shown)
    }

    /// Returns the URL of the document that names the authorization servers, if it has the origin of `server`.
    pub(in crate::http) fn metadata_url(&self, server: &Url) -> Option<Url> {
        let url = match self.param("resource_metadata") {
            Some(named) => Url::parse(&named).ok()?,
            None => server.join(METADATA_PATH).ok()?,
        };
        let is_own = url.origin() == server.origin()
            && url.username().is_empty()
            && url.password().is_none();
        is_own.then_some(url)
    }
}

/// Returns the parameters in a list of challenges. Other text, such as the name of a scheme, is skipped.
fn params(text: &str) -> impl Iterator<Item = (&str, String)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches(|c| !is_name(c) && c != '"');
            if rest.is_empty() {
                return None;
            }
            let (name, after) = rest.split_at(rest.find(|c| !is_name(c)).unwrap_or(rest.len()));
            let Some(value) = after.trim_start().strip_prefix('=') else {
                // A quoted text without a name is skipped whole.
                rest = match name.is_empty() {
                    true => quoted(rest).1,
                    false => after,
                };
                continue;
            };
            let value = value.trim_start();
            let (value, after) = match value.starts_with('"') {
                true => quoted(value),
                false => {
                    let end = value.find([' ', '\t', ',']).unwrap_or(value.len());
                    (value[..end].to_owned(), &value[end..])
                }
            };
            rest = after;
            return Some((name, value));
        }
    })
}

/// Returns the quoted text at the start of `text`, and the rest after it.
fn quoted(text: &str) -> (String, &str) {
    let (mut out, mut is_escaped) = (String::new(), false);
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => {
                out.push(c);
                is_escaped = false;
            }
            '\\' => is_escaped = true,
            '"' => return (out, &text[at + 1..]),
            c => out.push(c),
        }
    }
    (out, "")
}

/// Whether a status refuses the credentials of a request.
pub(in crate::http) const fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenge_parameters_are_read_from_any_scheme() {
        let list = |text: &'static str| -> Vec<(&str, String)> { params(text).collect() };
        let pair = |name: &'static str, value: &str| (name, value.to_owned());
        assert_eq!(
            list(r#"Bearer realm="a, \"b\"=c", error=invalid_token , x = "y""#),
            [
                pair("realm", r#"a, "b"=c"#),
                pair("error", "invalid_token"),
                pair("x", "y")
            ]
        );
        assert_eq!(
            list(r#"Negotiate abc==, Basic realm="r", Bearer error="x"#),
            [pair("abc", "="), pair("realm", "r"), pair("error", "x")]
        );
        assert_eq!(list(r#""error=invalid_token" é="x", ="y" error"#), []);
        assert_eq!(list(r#"Bearer error="a\"#), [pair("error", "a")]);
        assert_eq!(list(""), []);
    }

    #[test]
    fn metadata_is_read_from_the_origin_of_the_server_only() {
        let server = Url::parse("https://host.example/a/mcp?key=v").unwrap();
        let url = |challenge: &str| {
            let challenge = Challenge(vec![challenge.to_owned()]);
            challenge.metadata_url(&server).map(String::from)
        };
        assert_eq!(
            url("Bearer").as_deref(),
            Some("https://host.example/.well-known/oauth-protected-resource")
        );
        assert_eq!(
            url(r#"Bearer resource_metadata="https://HOST.example:443/m""#).as_deref(),
            Some("https://host.example/m")
        );
        for other in [
            "https://other.example/m",
            "http://host.example/m",
            "https://host.example:8443/m",
            "https://user@host.example/m",
            "file:///etc/passwd",
            "/m",
            "",
        ] {
            let challenge = format!(r#"Bearer resource_metadata="{other}""#);
            assert_eq!(url(&challenge), None, "{other}");
        }
    }
}

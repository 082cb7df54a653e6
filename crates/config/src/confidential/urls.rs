//! Secrets in URLs: the user part, and values of the query with a secret-looking name.

use std::ops::Range;

use super::{Hidden, Secret, SecretKind, find_outside, is_complete, is_literal, is_secret_key};
use crate::{Auth, HttpEndpoint};

/// The hidden parts of every URL in a word.
pub(super) fn secrets(word: &str) -> Vec<Hidden> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(scheme) = word[at..].find("://") {
        let start = at + scheme + 3;
        let end = start + end_of_url(&word[start..]);
        found.extend(user_part(word, start..end));
        found.extend(query(word, start..end));
        at = end;
    }
    found
}

/// The length of a URL after its scheme: up to white space or a quote outside variables.
fn end_of_url(text: &str) -> usize {
    find_outside(text, |c| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>')
    })
    .unwrap_or(text.len())
}

fn user_part(word: &str, url: Range<usize>) -> Option<Hidden> {
    let text = &word[url.clone()];
    let end = find_outside(text, |c| matches!(c, '/' | '?' | '#')).unwrap_or(text.len());
    let is_port = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let length = match text[..end].rfind('@') {
        Some(at) => at,
        // A password with a slash that is not encoded: what follows the colon is not a port.
        None if text[..end]
            .split_once(':')
            .is_some_and(|(_, port)| !is_port(port) && !port.starts_with("${")) =>
        {
            text.rfind('@')?
        }
        None => return None,
    };
    let user = &text[..length];
    if !is_literal(user, false) {
        return None;
    }
    let range = url.start..url.start + length;
    let password = user.split_once(':').map(|(_, password)| password);
    let secret = password.filter(|password| is_literal(password, false));
    Some(Hidden {
        secret: secret.map(|password| {
            let place = range.end - password.len()..range.end;
            Secret {
                kind: Some(SecretKind::UrlUser),
                value: is_complete(password).then(|| place.clone()),
                place,
            }
        }),
        range,
    })
}

fn query(word: &str, url: Range<usize>) -> Vec<Hidden> {
    let literal =
        query_secrets(&word[url.clone()]).filter(|(_, _, value)| is_literal(value, false));
    literal
        .map(|(name, range, value)| {
            let range = url.start + range.start..url.start + range.end;
            Hidden {
                secret: Some(Secret {
                    kind: Some(SecretKind::Named(name.to_owned())),
                    place: range.clone(),
                    value: is_complete(value).then(|| range.clone()),
                }),
                range,
            }
        })
        .collect()
}

impl HttpEndpoint {
    /// Values with a secret-looking name in the query of the URL and of the token endpoint's URL that are written
    /// out in the config.
    pub fn literal_query_secrets(&self) -> Vec<&str> {
        let token_url = match &self.auth {
            Some(Auth::ClientCredentials(grant)) => Some(grant.token_url.raw()),
            _ => None,
        };
        let urls = std::iter::once(self.url.raw()).chain(token_url);
        urls.flat_map(query_secrets)
            .map(|(_, _, value)| value)
            .filter(|value| is_complete(value) && !value.is_empty())
            .collect()
    }
}

/// A URL without the values of its query that have a secret-looking name.
pub(crate) fn without_secret_values(url: &str) -> String {
    replace_secret_values(url, |_, _| Some(String::new()))
}

/// Replaces values of a URL's query with a secret-looking name; `replacement` gets name and value.
pub(crate) fn replace_secret_values(
    url: &str,
    mut replacement: impl FnMut(&str, &str) -> Option<String>,
) -> String {
    let (mut out, mut at) = (String::new(), 0);
    for (name, range, value) in query_secrets(url) {
        if let Some(new) = replacement(name, value) {
            out.push_str(&url[at..range.start]);
            out.push_str(&new);
            at = range.end;
        }
    }
    out.push_str(&url[at..]);
    out
}

/// The name of a secret in the query of a URL.
pub(crate) fn secret_parameter(url: &str) -> Option<&str> {
    let mut secrets = query_secrets(url);
    let secret = secrets.find(|(_, _, value)| !value.is_empty());
    secret.map(|(name, ..)| name)
}

/// The parameters of the query with a secret-looking name: name, place of the value, and value.
pub(super) fn query_secrets(url: &str) -> impl Iterator<Item = (&str, Range<usize>, &str)> {
    let mut at = find_outside(url, |c| c == '?').map_or(url.len() + 1, |start| start + 1);
    let parameters = std::iter::from_fn(move || {
        let rest = url.get(at..)?;
        let length = find_outside(rest, |c| matches!(c, '&' | '#')).unwrap_or(rest.len());
        let end = at + length;
        at = end + 1;
        Some((&rest[..length], end))
    });
    parameters.filter_map(|(parameter, end)| {
        let (name, value) = parameter.split_once('=')?;
        is_secret_key(name).then(|| (name, end - value.len()..end, value))
    })
}

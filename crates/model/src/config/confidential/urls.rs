//! Secrets in URLs: the user part, and values of the query with a secret-looking name.

use std::ops::Range;

use super::{Hidden, Secret, find_outside, is_complete, is_literal, value_of};
use crate::redact::is_secret_name;

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
        secret: secret.map(|password| Secret {
            name: Some("the password of a URL".to_owned()),
            value: is_complete(password).then(|| range.end - password.len()..range.end),
        }),
        range,
    })
}

fn query(word: &str, url: Range<usize>) -> Vec<Hidden> {
    let mut found = Vec::new();
    let text = &word[url.clone()];
    let Some(start) = find_outside(text, |c| c == '?') else {
        return found;
    };
    let mut at = start + 1;
    while at <= text.len() {
        let rest = &text[at..];
        let length = find_outside(rest, |c| matches!(c, '&' | '#')).unwrap_or(rest.len());
        if let Some((name, value)) = rest[..length].split_once('=')
            && is_secret_name(name)
            && is_literal(value, false)
        {
            let end = url.start + at + length;
            let range = end - value.len()..end;
            found.push(Hidden {
                secret: Some(Secret {
                    name: Some(value_of(name)),
                    value: is_complete(value).then(|| range.clone()),
                }),
                range,
            });
        }
        at += length + 1;
    }
    found
}

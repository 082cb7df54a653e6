//! Replaces secrets in the strings of one server by variables.

use std::ops::Range;

use broker_config::Template;
use broker_config::client_file::{
    SecretKind, find_outside, is_secret_key, is_secret_value, literal_secrets_in, secrets_in_text,
};
use broker_model::text::shown_line;

use super::variables::{Reason, Variables, Wanted};

/// Words before a credential that are not a part of it, in lower case.
const SCHEMES: [&str; 6] = ["apikey", "basic", "bearer", "digest", "negotiate", "token"];

/// The strings of one server. Secrets in them are replaced.
#[derive(Debug)]
pub(super) struct Hider<'v> {
    pub(super) server: &'v str,
    pub(super) variables: &'v mut Variables,
}

/// A secret in a text and the name of its variable.
struct Found {
    range: Range<usize>,
    /// The name before the server's name is added.
    name: String,
}

impl Hider<'_> {
    /// The value of a variable of the process.
    pub(super) fn env(&mut self, name: &str, text: String) -> String {
        if !is_secret_value(name, &text) {
            return text;
        }
        self.env_variable(name, &text, Reason::Secret)
    }

    /// A variable in place of a value of a variable of the process; it gets the same name if possible.
    pub(super) fn env_variable(&mut self, name: &str, text: &str, reason: Reason) -> String {
        let place = format!("`env.{}` of `{}`", shown_line(name, 80), self.server);
        let wanted = Wanted {
            server: self.server,
            name,
            is_bare: true,
        };
        self.variables.assign(wanted, text, reason, &place)
    }

    /// The value of a header; a scheme in front is kept.
    pub(super) fn header(&mut self, name: &str, text: String) -> String {
        if !is_secret_value(name, &text) {
            return text;
        }
        let start = scheme(&text);
        let mut place = header_of(name, self.server);
        if start > 0 {
            place.push_str(&format!(" behind `{}`", text[..start].trim_end()));
        }
        self.replaced(&text, vec![Found::new(start..text.len(), name)], &place)
    }

    /// Hides the secret of a member of `auth`.
    pub(super) fn hide_auth(&mut self, name: &str, text: String) -> String {
        // `token_file` and the like are not tokens.
        let is_about_token = name.starts_with("token_");
        if !is_secret_value(if is_about_token { "" } else { name }, &text) {
            return text;
        }
        let place = format!("`{name}` of `{}`", self.server);
        self.replaced(&text, vec![Found::new(0..text.len(), name)], &place)
    }

    /// A variable in place of a whole value.
    pub(super) fn whole(&mut self, name: &str, text: &str, reason: Reason, place: &str) -> String {
        let wanted = Wanted {
            server: self.server,
            name,
            is_bare: false,
        };
        self.variables.assign(wanted, text, reason, place)
    }

    /// A URL. Its user part stays; a config with one is refused.
    pub(super) fn url(&mut self, url: &str) -> String {
        let place = format!("the URL of `{}`", self.server);
        let found = in_url(url);
        self.replaced(url, found, &place)
    }

    /// The words of a command: the program and its arguments.
    pub(super) fn words(&mut self, words: &[String]) -> Vec<String> {
        let texts: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut found: Vec<Vec<Found>> = texts.iter().map(|_| Vec::new()).collect();
        for secret in literal_secrets_in(&texts) {
            let (Some(text), Some(found)) = (texts.get(secret.word), found.get_mut(secret.word))
            else {
                continue;
            };
            let value = &text[secret.range.clone()];
            let name = match &secret.kind {
                SecretKind::Named(name) => name,
                SecretKind::UrlUser if value == "git" => continue,
                SecretKind::UrlUser => "url_user",
                // Defaults were translated.
                SecretKind::Default(_) => continue,
            };
            let start = secret.range.start + scheme(value);
            found.push(Found::new(start..secret.range.end, name));
        }
        let mut option = "";
        for (text, found) in texts.iter().zip(&mut found) {
            let named = named_value(option, text);
            let (name, range) = named.unwrap_or(("", 0..0));
            let value = &text[range.clone()];
            if is_secret_key(name) && is_secret_value(name, value) {
                let start = range.start + scheme(value);
                found.push(Found::new(start..range.end, name));
            }
            let shown = if name.is_empty() { "token" } else { name };
            let secrets = secrets_in_text(name, text).into_iter();
            found.extend(secrets.map(|range| Found::new(range, shown)));
            option = if text.starts_with('-') { text } else { "" };
        }
        let place = format!("the command of `{}`", self.server);
        let words = texts.iter().zip(found);
        words
            .map(|(text, found)| self.replaced(text, found, &place))
            .collect()
    }

    /// The text with variables in place of secrets. If a variable cannot be there, one is in place of the whole
    /// text.
    fn replaced(&mut self, text: &str, found: Vec<Found>, place: &str) -> String {
        let found = disjoint(found);
        let shape = fill(text, &found, |_| "${X}".to_owned());
        // `$` before a variable would make it text.
        let makes_text = |one: &Found| text[..one.range.start].ends_with('$');
        match found.first() {
            Some(first) if Template::parse(&shape).is_err() || found.iter().any(makes_text) => {
                self.hide_value(&first.name, text, place)
            }
            _ => fill(text, &found, |one| {
                self.hide_value(&one.name, &text[one.range.clone()], place)
            }),
        }
    }

    fn hide_value(&mut self, name: &str, value: &str, place: &str) -> String {
        let known = self.variables.with_value(self.server, value, place);
        known.unwrap_or_else(|| self.whole(name, value, Reason::Secret, place))
    }
}

impl Found {
    fn new(range: Range<usize>, name: &str) -> Self {
        let name = name.to_owned();
        Self { range, name }
    }
}

/// The secrets in the path and the query of a URL.
fn in_url(url: &str) -> Vec<Found> {
    let start = url.find("://").map_or(0, |at| at + 3);
    let is_path = |c| matches!(c, '/' | '?');
    let Some(path) = find_outside(&url[start..], is_path).map(|at| start + at) else {
        return Vec::new();
    };
    let query = find_outside(&url[path..], |c| c == '?').map_or(url.len(), |at| path + at);
    let mut found = Vec::new();
    for part in split(url, path..query, '/') {
        let inside = secrets_in_text("", &url[part.clone()]).into_iter();
        found.extend(inside.map(|range| {
            let range = part.start + range.start..part.start + range.end;
            Found::new(range, "url_token")
        }));
    }
    for part in split(url, (query + 1).min(url.len())..url.len(), '&') {
        if let Some((name, value)) = url[part.clone()].split_once('=')
            && is_secret_value(name, value)
        {
            found.push(Found::new(part.end - value.len()..part.end, name));
        }
    }
    found
}

/// A header of a server for people.
pub(super) fn header_of(name: &str, server: &str) -> String {
    format!("the header `{}` of `{server}`", shown_line(name, 80))
}

/// The places in order; overlapping ones become one, with the name of the first.
fn disjoint(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_by_key(|one| one.range.start);
    let mut out: Vec<Found> = Vec::new();
    for one in found {
        match out.last_mut() {
            Some(last) if one.range.start < last.range.end => {
                last.range.end = last.range.end.max(one.range.end);
            }
            _ => out.push(one),
        }
    }
    out
}

/// A text with other texts in these places.
fn fill(text: &str, places: &[Found], mut other: impl FnMut(&Found) -> String) -> String {
    let mut out = String::new();
    let mut at = 0;
    for place in places {
        out.push_str(&text[at..place.range.start]);
        out.push_str(&other(place));
        at = place.range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// The length of a scheme and the blanks after it at the start of a credential.
fn scheme(text: &str) -> usize {
    let Some((word, rest)) = text.split_once(' ') else {
        return 0;
    };
    let rest = rest.trim_start_matches(' ');
    let is_scheme = SCHEMES.contains(&word.to_ascii_lowercase().as_str()) && !rest.is_empty();
    if is_scheme {
        text.len() - rest.len()
    } else {
        0
    }
}

/// The parts of a range between separators outside variables.
fn split(text: &str, range: Range<usize>, separator: char) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut at = range.start;
    while let Some(length) = find_outside(&text[at..range.end], |c| c == separator) {
        parts.push(at..at + length);
        at += length + separator.len_utf8();
    }
    parts.push(at..range.end);
    parts
}

/// The value in a word, and its name: that before `=`, else the option before the word.
fn named_value<'t>(option: &'t str, text: &'t str) -> Option<(&'t str, Range<usize>)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match text.split_once('=') {
        Some((name, value)) if name.chars().all(is_name) => {
            Some((name, text.len() - value.len()..text.len()))
        }
        _ if !option.is_empty() && !text.starts_with('-') => Some((option, 0..text.len())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result, and the values that were replaced.
    fn hide(hide: impl FnOnce(&mut Hider<'_>) -> Vec<String>) -> (Vec<String>, Vec<String>) {
        let mut variables = Variables::default();
        let out = hide(&mut Hider {
            server: "s",
            variables: &mut variables,
        });
        let values = variables.secrets();
        let values = values.map(|one| one.value.expose().to_owned()).collect();
        (out, values)
    }

    #[test]
    fn header_keeps_its_scheme() {
        for (name, text, shown, value) in [
            (
                "Authorization",
                "Bearer abc",
                "Bearer ${S_AUTHORIZATION}",
                "abc",
            ),
            ("authorization", "abc", "${S_AUTHORIZATION}", "abc"),
            ("X-Api-Key", "a b", "${S_X_API_KEY}", "a b"),
            (
                "X-Other",
                "Bearer  abcdef",
                "Bearer  ${S_X_OTHER}",
                "abcdef",
            ),
            (
                "Authorization",
                "Bearer $",
                "Bearer ${S_AUTHORIZATION}",
                "$",
            ),
        ] {
            let (out, values) = hide(|hider| vec![hider.header(name, text.to_owned())]);
            assert_eq!(
                (out, values),
                (vec![shown.to_owned()], vec![value.to_owned()])
            );
        }
        for text in ["Bearer ${X}", "${X}", ""] {
            let (out, values) = hide(|hider| vec![hider.header("Authorization", text.to_owned())]);
            assert_eq!((out, values), (vec![text.to_owned()], Vec::new()));
        }
    }

    #[test]
    fn url_has_no_secret() {
        for (url, shown, value) in [
            (
                "https://h/mcp?a=1&api_key=k&b=2",
                "https://h/mcp?a=1&api_key=${S_API_KEY}&b=2",
                "k",
            ),
            (
                "https://h/s/a1B2c3D4e5F6g7H8i9J0/mcp",
                "https://h/s/${S_URL_TOKEN}/mcp",
                "a1B2c3D4e5F6g7H8i9J0",
            ),
            ("https://h?token=$&a", "https://h?token=${S_TOKEN}&a", "$"),
        ] {
            let (out, values) = hide(|hider| vec![hider.url(url)]);
            assert_eq!(
                (out, values),
                (vec![shown.to_owned()], vec![value.to_owned()])
            );
        }
    }

    #[test]
    fn words_of_a_command_have_no_secret() {
        for (words, shown) in [
            (
                &["x", "--api-key", "abc"][..],
                &["x", "--api-key", "${S_API_KEY}"][..],
            ),
            (&["x", "--api-key=abc"], &["x", "--api-key=${S_API_KEY}"]),
            (
                &["x", "--header", "Authorization: Bearer abc"],
                &["x", "--header", "Authorization: Bearer ${S_AUTHORIZATION}"],
            ),
            (
                &["x", "https://h/sse?token=abc"],
                &["x", "https://h/sse?token=${S_TOKEN}"],
            ),
            (
                &["x", "postgresql://u:p@h/db"],
                &["x", "postgresql://${S_URL_USER}@h/db"],
            ),
            (
                &["docker", "-e", "A_TOKEN=abc"],
                &["docker", "-e", "A_TOKEN=${S_A_TOKEN}"],
            ),
            (&["x", "sk-0123456789abcdef"], &["x", "${S_TOKEN}"]),
            (
                &["x", "--dsn", "sk-0123456789abcdef"],
                &["x", "--dsn", "${S_DSN}"],
            ),
            (
                &["sh", "-c", "curl -H 'X-Api-Key: abc' h"],
                &["sh", "-c", "curl -H 'X-Api-Key: ${S_X_API_KEY}' h"],
            ),
            (
                &[
                    "uvx",
                    "--from",
                    "git+ssh://git@h/a@0123456789abcdef0123456789abcdef01234567",
                ],
                &[
                    "uvx",
                    "--from",
                    "git+ssh://git@h/a@0123456789abcdef0123456789abcdef01234567",
                ],
            ),
            (
                &["x", "--project-id", "550e8400-e29b-41d4-a716-446655440000"],
                &["x", "--project-id", "550e8400-e29b-41d4-a716-446655440000"],
            ),
            (&["x", "--token", "${T}"], &["x", "--token", "${T}"]),
            (
                &["x", "--privateKey", "abc", "--pass=a b"],
                &["x", "--privateKey", "${S_PRIVATEKEY}", "--pass=${S_PASS}"],
            ),
        ] {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            let (out, _) = hide(|hider| hider.words(&words));
            assert_eq!(out, shown);
        }
    }
}

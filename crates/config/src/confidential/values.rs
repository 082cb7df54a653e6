//! Literal secrets in values of variables and headers: by the name of the value, and by its text.

use std::ops::Range;

use super::names::is_secret_key;
use super::{find_outside, is_setting, urls};
use crate::template::{Part, Template};
use broker_model::redact::is_secret_name;
use broker_model::secret_text::{self, Evidence};

/// Words before a secret that are not a part of it, in lower case.
const SCHEMES: [&str; 10] = [
    "apikey",
    "api-key",
    "basic",
    "bearer",
    "digest",
    "key",
    "negotiate",
    "token",
    "token token",
    "sso-key",
];

/// Maximum length of a name in a text.
const MAX_NAME_BYTES: usize = 64;
/// Maximum length of a value in a text that is examined.
const MAX_VALUE_BYTES: usize = 256;

/// Whether a value with variables contains a literal secret, by its name or by its text: a token, a key, the user
/// part of a URL, or a member of the text with a secret-looking name. A text that cannot have variables is one.
pub fn is_secret_value(name: &str, value: &str) -> bool {
    let Ok(template) = Template::parse(value) else {
        return true;
    };
    let is_token = |text: &str| !secrets_in_text(name, text).is_empty();
    let mut defaults = template.parts().iter().filter_map(|part| match part {
        Part::Variable { default, .. } => default.as_deref(),
        Part::Literal(_) => None,
    });
    has_literal(value)
        && (is_secret_key(name) || has_part(value) || is_token(value) || defaults.any(is_token))
}

/// The places of secrets that are recognised by the text of a value. Random words count neither in paths nor in
/// the value of an identifier.
pub fn secrets_in_text(name: &str, value: &str) -> Vec<Range<usize>> {
    let ignores_random = is_identifier(name) || is_path(value);
    let found = secret_text::find(value).into_iter();
    found
        .filter(|found| found.evidence == Evidence::Form || !ignores_random)
        .map(|found| found.range)
        .collect()
}

/// Whether a text is a path with several parts.
fn is_path(text: &str) -> bool {
    let begins = ["/", "./", "../", "~/"];
    let rest = begins.iter().find_map(|start| text.strip_prefix(start));
    rest.is_some_and(|rest| rest.contains('/') && !rest.starts_with('/'))
}

/// Whether a member of the text is a secret: the user part or the query of a URL, or a value with a
/// secret-looking name.
fn has_part(value: &str) -> bool {
    let mut hidden = urls::secrets(value).into_iter();
    hidden.any(|hidden| &value[hidden.range] != "git") || has_named(value)
}

/// Whether a value is text besides variables and words that introduce a secret.
fn has_literal(value: &str) -> bool {
    let Ok(template) = Template::parse(value) else {
        return !value.is_empty();
    };
    let has_variable = template.variables().next().is_some();
    template.parts().iter().any(|part| match part {
        Part::Literal(text) => {
            let word = text
                .trim()
                .trim_end_matches([':', '='])
                .to_ascii_lowercase();
            let is_scheme = has_variable && SCHEMES.contains(&word.as_str());
            !word.is_empty() && !is_scheme
        }
        Part::Variable { default, .. } => default.as_ref().is_some_and(|text| !text.is_empty()),
    })
}

/// Whether a name belongs to an identifier: its value is often random and seldom a secret.
fn is_identifier(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_session = name.contains("session") || name.ends_with("sid");
    ["id", "ids", "uuid", "guid"].iter().any(|end| {
        let before = name.strip_suffix(end);
        before.is_some_and(|before| !before.ends_with(|c: char| c.is_ascii_alphabetic()))
    }) && !is_session
        || name.ends_with("clientid")
        || name.ends_with("projectid")
}

/// Whether the text has a `NAME=VALUE` or `NAME: VALUE` with a secret-looking name.
fn has_named(text: &str) -> bool {
    let mut at = 0;
    while let Some(length) = find_outside(&text[at..], |c| matches!(c, '=' | ':')) {
        let separator = at + length;
        at = separator + 1;
        let name = name_before(&text[..separator]);
        if is_secret_name(name) {
            let value = value_after(&text[at..]);
            if has_literal(value) && !is_scheme(value) && !is_setting(name, value) {
                return true;
            }
        }
    }
    false
}

fn is_scheme(word: &str) -> bool {
    SCHEMES.contains(&word.to_ascii_lowercase().as_str())
}

/// The name at the end of a text, perhaps in quotes.
fn name_before(text: &str) -> &str {
    let text = text.trim_end_matches(['"', '\'', ' ', '\\']);
    let is_name = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let length = text.chars().rev().take(MAX_NAME_BYTES).take_while(is_name);
    &text[text.len() - length.count()..]
}

/// The value at the start of a text, perhaps in quotes and after a scheme, up to white space or a separator.
fn value_after(text: &str) -> &str {
    let text = text.trim_start_matches(['"', '\'', ' ', '\\']);
    let mut end = text.len().min(MAX_VALUE_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    let text = match text.split_once(' ') {
        Some((word, rest)) if is_scheme(word) => rest.trim_start_matches(' '),
        _ => text,
    };
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | ',' | '&' | '\\');
    &text[..find_outside(text, is_end).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_a_secret_by_its_name_or_its_text() {
        for (name, value) in [
            ("API_KEY", "x"),
            ("API_KEY", "YOUR_API_KEY"),
            ("privateKey", "x"),
            ("DB_PASS", "x"),
            ("API_KEY", "abc${X}"),
            ("API_KEY", "${X:-abc}"),
            ("PLAIN", "${X:-sk-ant-0123456789abcdef}"),
            ("Authorization", "Bearer abc"),
            ("PLAIN", "sk-ant-0123456789abcdef"),
            ("PLAIN", "Bearer 0123456789"),
            ("DATABASE_URL", "postgres://me:pw@localhost/db"),
            ("DATABASE_URL", "postgres://me@localhost/db"),
            ("TOKEN_URL", "https://h/?token=abc"),
            ("HEADERS", r#"{"Authorization": "Bearer abc", "V": "1"}"#),
            ("CONNECTION", "Server=h;User=sa;Password=abc;"),
            ("CLIENT_ID", "sk-ant-0123456789abcdef"),
            ("SESSION_ID", "a1b2c3d4e5f6a7b8c9d0e1f2"),
            ("THING", "550e8400-e29b-41d4-a716-446655440000"),
            ("API_KEY", "a$${b"),
        ] {
            assert!(is_secret_value(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("API_KEY", ""),
            ("API_KEY", "${X}"),
            ("Authorization", "Bearer ${X}"),
            ("Authorization", "ApiKey ${X}"),
            ("BODY", "max_tokens=4096;use_token=true"),
            ("ROOT", "/nix/store/s66mzxpvicwk07gjbjfw9izjfa797vsw-hello"),
            ("LOG_LEVEL", "debug"),
            ("BYPASS", "x"),
            ("MODEL", "claude-3-5-sonnet-20241022"),
            ("REPOSITORY", "ssh://git@github.com/a/b.git"),
            ("CLIENT_ID", "550e8400-e29b-41d4-a716-446655440000"),
            ("HEADERS", r#"{"Authorization": "Bearer ${X}"}"#),
            ("DATABASE_URL", "postgres://${USER_PART}@localhost/db"),
        ] {
            assert!(!is_secret_value(name, value), "{name}={value}");
        }
    }
}

//! Known secrets in other places of the file: they are replaced there as well, and no text with one is printed.

use std::cmp::Reverse;
use std::ops::Range;

use broker_config::client_file::{find_outside, variable_for};
use broker_model::redact::{Redactor, Secret};

use super::variables::Variables;

/// A shorter secret is searched for only in its server.
const MIN_BYTES: usize = 8;
/// A shorter secret is not searched for.
const MIN_BYTES_IN_SERVER: usize = 4;
/// A secret of letters alone that is shorter may be a usual word.
const MIN_WORD_BYTES: usize = 16;

/// The secrets of a file, the longest first.
pub(super) struct Known<'v>(Vec<KnownSecret<'v>>);

struct KnownSecret<'v> {
    value: &'v Secret,
    /// Its variable, if one replaces it.
    name: Option<&'v str>,
    /// The only server that is searched for it.
    server: Option<&'v str>,
}

impl<'v> Known<'v> {
    pub(super) fn new(variables: &'v Variables) -> Self {
        let replaced = variables.secrets().map(|variable| KnownSecret {
            value: &variable.value,
            name: Some(&variable.name),
            server: (variable.value.expose().len() < MIN_BYTES).then_some(&variable.server),
        });
        let dropped = variables.unreplaced().iter();
        let dropped = dropped.filter(|value| value.expose().len() >= MIN_BYTES);
        let dropped = dropped.map(|value| KnownSecret {
            value,
            name: None,
            server: None,
        });
        let mut list: Vec<_> = replaced
            .chain(dropped)
            .filter(KnownSecret::is_distinct)
            .collect();
        list.sort_by_key(|secret| Reverse(secret.value.expose().len()));
        Self(list)
    }

    /// Replaces every secret in a template of a server by its variable, except in variables and in the scheme and the
    /// host of a URL. In a word only the whole is replaced.
    pub(super) fn replace(&self, server: &str, is_word: bool, template: &mut String) {
        for secret in &self.0 {
            let value = secret.value.expose();
            let (Some(name), true) = (secret.name, template.contains(value)) else {
                continue;
            };
            if secret.server.is_some_and(|only| only != server) || (is_word && template != value) {
                continue;
            }
            // A secret that is a URL has a host itself.
            let kept = kept(template, !value.contains("://"));
            let mut out = String::new();
            let mut copied = 0;
            for (at, _) in template.match_indices(value) {
                let end = at + value.len();
                let is_kept = kept[at..end].contains(&true);
                let is_part = secret.server.is_some() && is_part(template, at..end);
                // `$` before a variable would make it text.
                if !is_kept && !is_part && !template[..at].ends_with('$') {
                    out.push_str(&template[copied..at]);
                    out.push_str(&format!("${{{name}}}"));
                    copied = end;
                }
            }
            out.push_str(&template[copied..]);
            *template = out;
        }
    }

    /// Whether a text contains a secret that is searched for in the whole file.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let mut everywhere = self.everywhere();
        everywhere.any(|value| text.contains(value.expose()))
    }

    /// Masks secrets in texts for people.
    pub(super) fn redactor(&self) -> Redactor {
        Redactor::new(self.everywhere().cloned())
    }

    fn everywhere(&self) -> impl Iterator<Item = &Secret> {
        let everywhere = self.0.iter().filter(|secret| secret.server.is_none());
        everywhere.map(|secret| secret.value)
    }
}

impl KnownSecret<'_> {
    /// Whether the secret differs from usual words, settings and the name of its variable, so that each occurrence
    /// of its text is the secret.
    fn is_distinct(&self) -> bool {
        let value = self.value.expose();
        let is_word = value
            .chars()
            .all(|c| c.is_alphabetic() || "-_. ".contains(c));
        let is_name = |name: &str| {
            let name = name.to_ascii_uppercase();
            let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            value.chars().all(is_name)
                && name.contains(variable_for(value, true).trim_start_matches('_'))
        };
        let min = if is_word {
            MIN_WORD_BYTES
        } else {
            MIN_BYTES_IN_SERVER
        };
        value.len() >= min && !self.name.is_some_and(is_name)
    }
}

/// Whether a range is a part of a longer word.
fn is_part(text: &str, range: Range<usize>) -> bool {
    let before = text[..range.start].chars().next_back();
    let after = text[range.end..].chars().next();
    [before, after]
        .into_iter()
        .flatten()
        .any(char::is_alphanumeric)
}

/// Whether each byte of a text is in a variable or, if `hosts`, in the scheme or the host of a URL.
fn kept(text: &str, hosts: bool) -> Vec<bool> {
    let mut kept = vec![false; text.len()];
    let mut end = 0;
    for (at, _) in text.match_indices("${") {
        if at >= end {
            end = find_outside(&text[at..], |_| true).map_or(text.len(), |length| at + length);
            kept[at..end].fill(true);
        }
    }
    if hosts {
        hosts_in(text).for_each(|range| kept[range].fill(true));
    }
    kept
}

/// The scheme and the host of each URL in a text.
fn hosts_in(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices("://").flat_map(|(at, separator)| {
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let scheme = text[..at].trim_end_matches(is_scheme).len();
        let start = at + separator.len();
        let is_end = |c: char| c.is_whitespace() || "/?#\"'`,;".contains(c);
        let end = find_outside(&text[start..], is_end).map_or(text.len(), |end| start + end);
        let host = text[start..end].rfind('@').map_or(start, |at| start + at);
        [scheme..start, host..end]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::import::variables::{Reason, Wanted};

    fn variables() -> Variables {
        let mut variables = Variables::default();
        for (name, value) in [
            ("A", "s3cretvalue"),
            ("B", "s3cretvalue-long"),
            ("C", "postgres"),
            ("D", "pa5s"),
            ("E", "!@#%^&*()"),
            ("X_API_TOKEN_2", "X-Api-Token-2"),
        ] {
            let wanted = Wanted {
                server: "s",
                name,
                is_bare: true,
            };
            variables.assign(wanted, value, Reason::Secret, "x");
        }
        variables.dropped("dropped\"1");
        variables
    }

    #[test]
    fn known_secret_is_replaced_wherever_it_is() {
        let variables = variables();
        let known = Known::new(&variables);
        for (server, text, expected) in [
            (
                "t",
                "é s3cretvalue-long/s3cretvalue ${X:-s3cretvalue}",
                "é ${B}/${A} ${X:-s3cretvalue}",
            ),
            ("t", "postgres pa5s !@#%^&*()", "postgres pa5s ${E}"),
            ("s", "postgres pa5s pa5sx", "postgres ${D} pa5sx"),
            (
                "t",
                "$s3cretvalue X-Api-Token-2",
                "$s3cretvalue X-Api-Token-2",
            ),
            (
                "t",
                "s3cretvalue://u:s3cretvalue@s3cretvalue.x:80/s3cretvalue?a=s3cretvalue",
                "s3cretvalue://u:${A}@s3cretvalue.x:80/${A}?a=${A}",
            ),
        ] {
            let mut replaced = text.to_owned();
            known.replace(server, false, &mut replaced);
            assert_eq!(replaced, expected);
        }
        for (word, expected) in [("s3cretvalue", "${A}"), ("x/s3cretvalue", "x/s3cretvalue")] {
            let mut replaced = word.to_owned();
            known.replace("t", true, &mut replaced);
            assert_eq!(replaced, expected);
        }
        assert!(known.is_in("a s3cretvalue") && known.is_in("dropped\"1"));
        assert!(!known.is_in("postgres s3cretvalu pa5s X-Api-Token-2"));
        let shown = known.redactor().redact("s3cretvalue-long postgres");
        assert_eq!(shown, "•••• postgres");
    }
}

//! Secrets that are recognised by their text alone: tokens with a known prefix, private keys, the credential
//! after `Bearer`, and long random words.

use std::ops::Range;

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its place in the text.
    pub range: Range<usize>,
    /// The reason why it counts as a secret.
    pub evidence: Evidence,
}

/// The reason why a part of a text counts as a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// It has the form of a secret: a known prefix, a private key, or `Bearer` before it.
    Form,
    /// It is long and random. An identifier may be as well.
    Random,
}

/// Prefixes of tokens, and the minimum number of characters after them.
const PREFIXES: [(&str, usize); 27] = [
    ("AIza", 30),
    ("AKIA", 16),
    ("ASIA", 16),
    ("ATATT", 16),
    ("GOCSPX-", 16),
    ("dckr_pat_", 16),
    ("eyJ", 16),
    ("gho_", 16),
    ("ghp_", 16),
    ("ghr_", 16),
    ("ghs_", 16),
    ("ghu_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("mbk_", 16),
    ("pypi-Ag", 16),
    ("rk_live_", 10),
    ("shpat_", 16),
    ("sk-", 12),
    ("sk_live_", 10),
    ("sk_test_", 10),
    ("whsec_", 16),
    ("xapp-", 8),
    ("xox", 10),
    ("ya29.", 16),
    ("ctx7sk-", 16),
    ("sntrys_", 16),
];
/// Prefixes that begin other words as well: the characters after them must contain a digit.
const WEAK_PREFIXES: [(&str, usize); 14] = [
    ("SG.", 16),
    ("apify_api_", 16),
    ("dop_v1_", 16),
    ("fc-", 16),
    ("figd_", 16),
    ("gsk_", 16),
    ("hf_", 16),
    ("lin_api_", 16),
    ("npm_", 20),
    ("ntn_", 16),
    ("pplx-", 16),
    ("r8_", 16),
    ("secret_", 20),
    ("tvly-", 8),
];
/// Words before a credential, in lower case.
const SCHEMES: [&str; 2] = ["bearer", "basic"];
/// Minimum length of a credential after such a word.
const MIN_CREDENTIAL: usize = 6;
/// Minimum length of a random word.
const MIN_RANDOM: usize = 20;
/// Minimum length of a random word of hexadecimal digits.
const MIN_RANDOM_HEX: usize = 32;
/// Marks before a word that is a digest or a revision.
const DIGEST_MARKS: [&str; 6] = ["@", "#", "sha1:", "sha256:", "sha512:", "rev="];

/// The secrets in a text, in order and disjoint. A `${NAME}` is not a part of one.
pub fn find(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    if let Some(range) = private_key(text) {
        found.push(Found {
            range,
            evidence: Evidence::Form,
        });
    }
    let mut before = 0..0;
    for run in runs(text) {
        let inside = found.first().is_some_and(|key: &Found| {
            key.range.contains(&run.start) && text[key.range.clone()].starts_with("-----")
        });
        if !inside {
            find_in_run(text, run.clone(), &before, &mut found);
        }
        before = run;
    }
    found.sort_by_key(|one| one.range.start);
    found
}

/// Adds the secrets of a run of characters of tokens; `before` is the run before it.
fn find_in_run(text: &str, run: Range<usize>, before: &Range<usize>, found: &mut Vec<Found>) {
    let form = |range| Found {
        range,
        evidence: Evidence::Form,
    };
    let is_scheme = SCHEMES.contains(&text[before.clone()].to_ascii_lowercase().as_str());
    let gap = &text[before.end..run.start];
    if is_scheme && !gap.is_empty() && gap.chars().all(|c| c == ' ') && run.len() >= MIN_CREDENTIAL
    {
        found.push(form(run));
        return;
    }
    if let Some(start) = prefix(&text[run.clone()]) {
        found.push(form(run.start + start..run.end));
        return;
    }
    for segment in segments(text, run) {
        let marked = DIGEST_MARKS
            .iter()
            .any(|mark| text[..segment.start].ends_with(mark));
        if !marked && is_random(&text[segment.clone()]) {
            found.push(Found {
                range: segment,
                evidence: Evidence::Random,
            });
        }
    }
}

/// Returns the runs of token characters outside variables.
fn runs(text: &str) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    let mut is_open = false;
    // Without a closing brace behind it, `${` is not searched for one again.
    let last_close = text.rfind('}').unwrap_or_default();
    while let Some(c) = text[at..].chars().next() {
        let is_variable = at < last_close && text[at..].starts_with("${");
        let length = match is_variable.then(|| text[at..].find('}')).flatten() {
            Some(end) => end + 1,
            None => c.len_utf8(),
        };
        let joins = !is_variable && is_token_char(c);
        match runs.last_mut() {
            Some(run) if joins && is_open => run.end = at + length,
            _ if joins => runs.push(at..at + length),
            _ => {}
        }
        is_open = joins;
        at += length;
    }
    runs
}

fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-+/=.~".contains(c)
}

/// The parts of a run between the characters that also separate words.
fn segments(text: &str, run: Range<usize>) -> Vec<Range<usize>> {
    let mut segments = Vec::new();
    let mut start = run.start;
    for (at, _) in text[run.clone()].match_indices(['/', '=', '.']) {
        segments.push(start..run.start + at);
        start = run.start + at + 1;
    }
    segments.push(start..run.end);
    segments
}

/// The offset of a token with a known prefix in a run.
fn prefix(run: &str) -> Option<usize> {
    let begins = |at: &usize| {
        let before = run[..*at].chars().next_back();
        before.is_none_or(|c| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-'))
    };
    let mut starts = (0..run.len()).filter(begins);
    starts.find(|start| {
        let rest = &run[*start..];
        let after = |(prefix, min): &(&str, usize)| {
            let after = rest.strip_prefix(prefix)?;
            (after.len() >= *min).then_some(after)
        };
        PREFIXES.iter().any(|known| after(known).is_some())
            || WEAK_PREFIXES.iter().any(|known| {
                after(known).is_some_and(|after| after.bytes().any(|b| b.is_ascii_digit()))
            })
    })
}

/// The place of a private key in PEM.
fn private_key(text: &str) -> Option<Range<usize>> {
    let mark = text.find("PRIVATE KEY-----")?;
    let start = text[..mark].rfind("-----BEGIN")?;
    let end = text[mark + 16..].find("PRIVATE KEY-----");
    Some(start..end.map_or(text.len(), |end| mark + 16 + end + 16))
}

/// Whether a word is random: many changes between letters and digits or between small and capital letters.
fn is_random(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    if word.len() < MIN_RANDOM || digits < 2 || letters < 2 {
        return false;
    }
    let bare = word.bytes().filter(|b| *b != b'-');
    let (length, is_hex) = bare.fold((0, true), |(length, is_hex), byte| {
        (length + 1, is_hex && byte.is_ascii_hexdigit())
    });
    if is_hex {
        return length >= MIN_RANDOM_HEX || changes(word) * 3 >= word.len();
    }
    changes(word) * 4 >= word.len()
}

/// The number of changes between kinds of characters within a word.
fn changes(word: &str) -> usize {
    let kind = |byte: u8| match byte {
        b'a'..=b'z' => Some(0),
        b'A'..=b'Z' => Some(1),
        b'0'..=b'9' => Some(2),
        _ => None,
    };
    let kinds: Vec<_> = word.bytes().map(kind).collect();
    kinds
        .windows(2)
        .filter(|pair| matches!(pair, [Some(one), Some(other)] if one != other))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        let found = find(text).into_iter();
        found.map(|one| &text[one.range]).collect()
    }

    #[test]
    fn secret_is_found_by_its_form() {
        for (text, secret) in [
            ("sk-proj-abcdefghijkl", "sk-proj-abcdefghijkl"),
            (
                "key=ghp_abcdefghijklmnopqrst&x",
                "ghp_abcdefghijklmnopqrst&x",
            ),
            ("a xoxb-1234567890-abc b", "xoxb-1234567890-abc"),
            ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
            (
                "https://h/s/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
            ),
            ("X: Bearer abcdef", "abcdef"),
            ("bearer  a/b+c=d", "a/b+c=d"),
            ("tvly-dev1abcdef", "tvly-dev1abcdef"),
        ] {
            let secret = secret.strip_suffix("&x").unwrap_or(secret);
            assert_eq!(found(text), [secret], "{text}");
        }
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----";
        assert_eq!(found(&format!("x {key} y")), [key]);
        assert_eq!(
            found("-----BEGIN PRIVATE KEY-----MIIE"),
            ["-----BEGIN PRIVATE KEY-----MIIE"]
        );
    }

    #[test]
    fn secret_is_found_by_its_randomness() {
        for word in [
            "a1B2c3D4e5F6g7H8i9J0",
            "0123456789abcdef0123456789abcdef",
            "550e8400-e29b-41d4-a716-446655440000",
            "wJalrXUtnFEMIK7MDENGbPxRfiCY3XAMPL2KEY",
            "q8f0z7xk2m4n9p1r5t6v",
        ] {
            assert_eq!(found(word), [word]);
            assert_eq!(
                found(&format!("https://h/{word}/mcp?a={word}")),
                [word, word]
            );
        }
    }

    #[test]
    fn usual_text_is_not_a_secret() {
        for text in [
            "",
            "claude-3-5-sonnet-20241022",
            "@modelcontextprotocol/server-filesystem@2025.8.21",
            "ghcr.io/github/github-mcp-server:v0.5.0",
            "image@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "git+https://github.com/a/b@0123456789abcdef0123456789abcdef01234567",
            "/Users/me/Library/Application Support/Code/User/mcp.json",
            "x86_64-unknown-linux-gnu",
            "my-cluster-1.us-east-1.rds.amazonaws.com",
            "sk-learn",
            "pypi-query-mcp-server",
            "npm_config_registry_mirror",
            "secret_manager_configuration",
            "Bearer ${TOKEN_OF_THE_SERVER}",
            "Basic plan",
            "00000000000000000000000000000000",
            "${A1B2c3D4e5F6g7H8i9J0}",
            "2025-01-01T00:00:00Z",
            "--max-old-space-size=4096",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}

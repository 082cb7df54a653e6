//! The literal secrets in the words of a command and in a URL, for programs that replace them.

use std::ops::Range;

use super::{Hidden, SecretKind, Words, hidden_in_url};

/// A literal secret in a list of words. It has no value, only its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiteralSecret {
    /// The index of the word.
    pub word: usize,
    /// The bytes of the word that are secret.
    pub range: Range<usize>,
    /// The kind of the secret.
    pub kind: SecretKind,
}

/// The literal secrets in the words of a command, a program and its arguments, and in the words of a script among
/// them. A value that is a setting, such as a boolean, is not a secret.
pub fn literal_secrets_in(words: &[&str]) -> Vec<LiteralSecret> {
    let words = Words {
        texts: words.to_vec(),
        shell: false,
        script: None,
    };
    let of_word = words.hidden(&[], false).into_iter().enumerate();
    of_word
        .flat_map(|(word, hidden)| {
            let secrets = hidden.into_iter().filter_map(LiteralSecret::from_hidden);
            secrets.map(move |secret| LiteralSecret { word, ..secret })
        })
        .collect()
}

/// The literal secrets in the user part and the query of a URL; the word is 0.
pub fn literal_secrets_in_url(url: &str) -> Vec<LiteralSecret> {
    let hidden = hidden_in_url(url).into_iter();
    hidden.filter_map(LiteralSecret::from_hidden).collect()
}

impl LiteralSecret {
    /// Makes the secret of a hidden part; the index of its word is not set.
    fn from_hidden(hidden: Hidden) -> Option<Self> {
        let (range, kind) = match hidden.secret {
            // Paths are hidden only from a lock. All other texts are hidden only with a secret.
            None => (hidden.range, SecretKind::UrlUser),
            Some(secret) => match secret.kind? {
                SecretKind::UrlUser => (hidden.range, SecretKind::UrlUser),
                kind => (secret.place, kind),
            },
        };
        Some(Self {
            word: 0,
            range,
            kind,
        })
    }
}

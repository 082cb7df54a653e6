//! Words of parameters that ask for sensitive data. The drift classifier searches new parameters for them,
//! the lint all names.

use crate::look::skeleton;

/// The kind of data that a parameter asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SensitiveKind {
    /// The conversation so far.
    Conversation,
    /// Secrets.
    Credentials,
    /// An address to send data to.
    Addresses,
}

const WORDS: [(&str, SensitiveKind); 31] = [
    ("context", SensitiveKind::Conversation),
    ("note", SensitiveKind::Conversation),
    ("notes", SensitiveKind::Conversation),
    ("sidenote", SensitiveKind::Conversation),
    ("history", SensitiveKind::Conversation),
    ("conversation", SensitiveKind::Conversation),
    ("transcript", SensitiveKind::Conversation),
    ("reasoning", SensitiveKind::Conversation),
    ("credential", SensitiveKind::Credentials),
    ("credentials", SensitiveKind::Credentials),
    ("password", SensitiveKind::Credentials),
    ("passwd", SensitiveKind::Credentials),
    ("passphrase", SensitiveKind::Credentials),
    ("secret", SensitiveKind::Credentials),
    ("secrets", SensitiveKind::Credentials),
    ("token", SensitiveKind::Credentials),
    ("tokens", SensitiveKind::Credentials),
    ("apikey", SensitiveKind::Credentials),
    ("cookie", SensitiveKind::Credentials),
    ("cookies", SensitiveKind::Credentials),
    ("auth", SensitiveKind::Credentials),
    ("authorization", SensitiveKind::Credentials),
    ("url", SensitiveKind::Addresses),
    ("urls", SensitiveKind::Addresses),
    ("uri", SensitiveKind::Addresses),
    ("uris", SensitiveKind::Addresses),
    ("header", SensitiveKind::Addresses),
    ("headers", SensitiveKind::Addresses),
    ("callback", SensitiveKind::Addresses),
    ("callbacks", SensitiveKind::Addresses),
    ("webhook", SensitiveKind::Addresses),
];

/// The kind of data that a word asks for; the word must be in lower case.
pub fn find_kind(word: &str) -> Option<SensitiveKind> {
    WORDS
        .iter()
        .find(|(known, _)| *known == word)
        .map(|(_, kind)| *kind)
}

/// The listed word that a word looks like without being it; the word must be in lower case.
pub fn look_alike(word: &str) -> Option<&'static str> {
    let look = skeleton(word);
    let mut known = WORDS.iter().map(|(known, _)| *known);
    known.find(|known| *known != word && skeleton(known) == look)
}

/// The words of a name or a text in lower case: `callbackUrl` and `callback-url` are `callback`, `url`.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut lower = false;
    for c in text.chars().chain([' ']) {
        // A capital after a small letter begins a word.
        let ends = !c.is_alphanumeric() || (c.is_uppercase() && lower);
        if ends && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        lower = c.is_lowercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensitive_words_are_found_in_split_names() {
        assert_eq!(words("callbackUrl"), ["callback", "url"]);
        assert_eq!(words("API_key-2"), ["api", "key", "2"]);
        assert_eq!(find_kind("sidenote"), Some(SensitiveKind::Conversation));
        assert_eq!(find_kind("path"), None);
        assert_eq!(look_alike("tоkеn"), Some("token"));
        assert_eq!(look_alike("ｔoken"), Some("token"));
        assert_eq!((look_alike("token"), look_alike("path")), (None, None));
    }
}

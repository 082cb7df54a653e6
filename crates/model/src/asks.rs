//! Words by which a parameter asks for more than its call needs. The classifier of drift looks for
//! them in what was added, the lint in names.

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// What was said or thought before.
    Conversation,
    /// Secrets.
    Credentials,
    /// A place to send to.
    Addresses,
}

const WORDS: [(&str, Asks); 31] = [
    ("context", Asks::Conversation),
    ("note", Asks::Conversation),
    ("notes", Asks::Conversation),
    ("sidenote", Asks::Conversation),
    ("history", Asks::Conversation),
    ("conversation", Asks::Conversation),
    ("transcript", Asks::Conversation),
    ("reasoning", Asks::Conversation),
    ("credential", Asks::Credentials),
    ("credentials", Asks::Credentials),
    ("password", Asks::Credentials),
    ("passwd", Asks::Credentials),
    ("passphrase", Asks::Credentials),
    ("secret", Asks::Credentials),
    ("secrets", Asks::Credentials),
    ("token", Asks::Credentials),
    ("tokens", Asks::Credentials),
    ("apikey", Asks::Credentials),
    ("cookie", Asks::Credentials),
    ("cookies", Asks::Credentials),
    ("auth", Asks::Credentials),
    ("authorization", Asks::Credentials),
    ("url", Asks::Addresses),
    ("urls", Asks::Addresses),
    ("uri", Asks::Addresses),
    ("uris", Asks::Addresses),
    ("header", Asks::Addresses),
    ("headers", Asks::Addresses),
    ("callback", Asks::Addresses),
    ("callbacks", Asks::Addresses),
    ("webhook", Asks::Addresses),
];

/// What a word asks for; it must be in lower case.
pub fn of_word(word: &str) -> Option<Asks> {
    WORDS
        .iter()
        .find(|(known, _)| *known == word)
        .map(|(_, asks)| *asks)
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
    fn names_are_taken_apart() {
        assert_eq!(words("callbackUrl"), ["callback", "url"]);
        assert_eq!(words("API_key-2"), ["api", "key", "2"]);
        assert_eq!(of_word("sidenote"), Some(Asks::Conversation));
        assert_eq!(of_word("path"), None);
    }
}

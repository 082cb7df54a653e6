//! The versions of the list of sensitive words: their words, and the form for comparing names and words.
//!
//! A lock names the version that hid its tools, so that a newer program hides no tool that was reviewed. A version
//! never changes: other words, or another form, are another version.

/// The words of version 1; two words with `_` between them are a pair of adjacent words.
const FIRST: [&str; 36] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "credential",
    "credentials",
    "apikey",
    "api_key",
    "private_key",
    "ssh_key",
    "access_key",
    "cookie",
    "cookies",
    "keychain",
    "wallet",
    "mnemonic",
    "sudo",
    "shell",
    "bash",
    "exec",
    "execute",
    "eval",
    "run_command",
    "run_code",
    "run_script",
    "delete",
    "drop",
    "purge",
    "wipe",
    "truncate",
    "destroy",
    "shutdown",
    "payment",
    "transfer",
    "impersonate",
];
/// The words that version 2 adds to version 1.
const SECOND: [&str; 4] = ["erase", "evaluate", "remove", "rm"];

/// A version of the list of sensitive words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WordList {
    /// Words are compared as they are written, in lower case.
    First,
    /// It has more words. Plural and digits at the end are removed before words are compared, and a name is also split
    /// at separators alone, so that letters in upper case within a word do not count.
    Second,
}

impl WordList {
    /// The newest version. A new lock uses it.
    pub const NEWEST: Self = Self::Second;

    /// The number in a lock.
    pub const fn number(self) -> u64 {
        match self {
            Self::First => 1,
            Self::Second => 2,
        }
    }

    /// The version with this number.
    pub fn from_number(number: u64) -> Option<Self> {
        [Self::First, Self::Second]
            .into_iter()
            .find(|version| version.number() == number)
    }

    /// The words and pairs of the list.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let more: &[&str] = match self {
            Self::First => &[],
            Self::Second => &SECOND,
        };
        FIRST.iter().chain(more).copied()
    }

    /// Whether plural, digits at the end and case are removed.
    pub(super) const fn is_normalised(self) -> bool {
        match self {
            Self::First => false,
            Self::Second => true,
        }
    }
}

/// Removes digits at the end of a word, then its plural.
pub(super) fn normal(word: &str) -> String {
    let without_digits = word.trim_end_matches(|c: char| c.is_ascii_digit());
    singular(match without_digits.is_empty() {
        true => word,
        false => without_digits,
    })
}

/// Removes the plural of an English word. Short words such as `dns` stay, since their `s` is rarely a plural.
fn singular(word: &str) -> String {
    let length = word.chars().count();
    let ends = |ends: &[&str]| ends.iter().any(|end| word.ends_with(end));
    if length > 4 && ends(&["ies"]) {
        format!("{}y", &word[..word.len() - 3])
    } else if length > 4 && ends(&["sses", "shes", "ches", "xes", "zes"]) {
        word[..word.len() - 2].to_owned()
    } else if length > 3 && ends(&["s"]) && !ends(&["ss", "us", "is"]) {
        word[..word.len() - 1].to_owned()
    } else {
        word.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_of_a_word_list_has_a_number_and_the_words_of_the_older_ones() {
        let first: Vec<_> = WordList::First.words().collect();
        let second: Vec<_> = WordList::Second.words().collect();
        assert_eq!((first.len(), second.len()), (36, 40));
        assert_eq!(second[..36], first);
        for version in [WordList::First, WordList::Second] {
            assert_eq!(WordList::from_number(version.number()), Some(version));
        }
        assert_eq!(WordList::from_number(0), None);
        assert_eq!(WordList::from_number(3), None);
    }

    #[test]
    fn normal_form_of_a_word_has_neither_plural_nor_digits_at_the_end() {
        for (word, expected) in [
            ("deletes", "delete"),
            ("delete2", "delete"),
            ("secrets12", "secret"),
            ("queries", "query"),
            ("bashes", "bash"),
            ("boxes", "box"),
            ("erases", "erase"),
            ("rm2", "rm"),
            ("access", "access"),
            ("status", "status"),
            ("analysis", "analysis"),
            ("rms", "rms"),
            ("dns", "dns"),
            ("2024", "2024"),
            ("s3", "s"),
            ("l\u{f6}schens", "l\u{f6}schen"),
            ("s", "s"),
            ("", ""),
        ] {
            assert_eq!(normal(word), expected, "{word}");
        }
    }
}

//! Sensitive names of tools: the words of a name, and their comparison with the list.

use std::collections::{BTreeMap, BTreeSet};

use super::WordList;
use super::word_list::normal;
use crate::look::{nfkc, skeleton};
use crate::text::shown_line;

/// The words that make the name of a tool sensitive: the words of a version of the list, or the words of a config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SensitiveNames {
    words: BTreeSet<String>,
    /// Each word by its normal form; empty if words are compared as they are written.
    normal: BTreeMap<String, String>,
    version: WordList,
    /// Whether a config has the words.
    is_own: bool,
}

/// An entry that no name can match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{shown}` is neither a word nor a pair of words with `_` between them{}", remedy(.normal))]
pub struct WordError {
    /// The entry, safe to show.
    shown: String,
    /// The form that would match.
    normal: Option<String>,
    /// Its index in the list.
    pub index: usize,
}

fn remedy(normal: &Option<String>) -> String {
    match normal {
        Some(normal) => format!("; write `{normal}`"),
        None => String::new(),
    }
}

impl Default for SensitiveNames {
    /// The newest list.
    fn default() -> Self {
        Self::from_version(WordList::NEWEST)
    }
}

impl SensitiveNames {
    /// The words of a version of the list.
    pub fn from_version(version: WordList) -> Self {
        let words = version.words().map(str::to_owned);
        Self::with(words.collect(), version, false)
    }

    /// A list of words and pairs of words, compared as in the newest version; every invalid entry is reported.
    pub fn new<S: AsRef<str>>(entries: &[S]) -> Result<Self, Vec<WordError>> {
        let (mut list, mut errors) = (BTreeSet::new(), Vec::new());
        for (index, entry) in entries.iter().enumerate() {
            let entry = entry.as_ref();
            let words = words(entry);
            let normal = (1..=2).contains(&words.len()).then(|| words.join("_"));
            if normal.as_deref() == Some(entry) {
                list.insert(entry.to_owned());
                continue;
            }
            errors.push(WordError {
                shown: shown_line(entry, 80),
                normal: normal.map(|normal| shown_line(&normal, 80)),
                index,
            });
        }
        match errors.is_empty() {
            true => Ok(Self::with(list, WordList::NEWEST, true)),
            false => Err(errors),
        }
    }

    fn with(words: BTreeSet<String>, version: WordList, is_own: bool) -> Self {
        let mut normal = BTreeMap::new();
        for word in words.iter().filter(|_| version.is_normalised()) {
            // Of `secret` and `secrets` the first one is shown.
            normal
                .entry(normalize(word))
                .or_insert_with(|| word.clone());
        }
        Self {
            words,
            normal,
            version,
            is_own,
        }
    }

    /// The list of another version. Words of a config stay, and are compared as in that version.
    #[must_use]
    pub fn in_version(&self, version: WordList) -> Self {
        match self.is_own {
            true => Self::with(self.words.clone(), version, true),
            false => Self::from_version(version),
        }
    }

    /// Its version.
    pub const fn version(&self) -> WordList {
        self.version
    }

    /// Whether its words are the same as the list of its version, even if a config sets them.
    pub fn is_of_version(&self) -> bool {
        !self.is_own
            || self
                .version
                .words()
                .map(str::to_owned)
                .collect::<BTreeSet<_>>()
                == self.words
    }

    /// The words and pairs, sorted.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str)
    }

    /// Finds the first word or pair of adjacent words of `name` that is in the list. A name that is not ASCII is also
    /// compared in its form NFKC, and by its skeleton.
    pub fn find(&self, name: &str) -> Option<&str> {
        let written = self.find_written(name);
        if written.is_some() || name.is_ascii() {
            return written;
        }
        self.find_look_alike(name)
    }

    /// Finds the first word or pair of adjacent words of `name`, as it is written, that is in the list.
    pub(crate) fn find_written(&self, name: &str) -> Option<&str> {
        let known = |word: &str| {
            let written = self.words.get(word);
            let known = written.or_else(|| self.normal.get(&normalize(word)));
            known.map(String::as_str)
        };
        find_words(&words(name), known).or_else(|| match self.version.is_normalised() {
            true => find_words(&words(&name.to_lowercase()), known),
            false => None,
        })
    }

    /// The first entry of the list that looks like a word or a pair of adjacent words of `name`.
    pub(crate) fn find_look_alike(&self, name: &str) -> Option<&str> {
        let looks = |word: &str| {
            let look = skeleton(word);
            // A digit at the end may be the look of a letter, so the whole word is compared first.
            let normal = normalize(word);
            let normal = self.version.is_normalised().then(|| skeleton(&normal));
            let mut list = self.words.iter().map(String::as_str);
            list.find(|known| {
                let known = skeleton(known);
                known == look || Some(&known) == normal.as_ref()
            })
        };
        find_words(&words(&nfkc(name)), looks)
            .or_else(|| find_words(&words(&skeleton(name)), looks))
    }
}

/// The normal form of a word, or of each word of a pair.
fn normalize(entry: &str) -> String {
    let parts: Vec<_> = entry.split('_').map(normal).collect();
    parts.join("_")
}

/// Returns the first of `words`, or pair of adjacent ones, that `known` has an entry for.
fn find_words<'l>(words: &[String], known: impl Fn(&str) -> Option<&'l str>) -> Option<&'l str> {
    (0..words.len()).find_map(|at| {
        known(&words[at]).or_else(|| known(&format!("{}_{}", words[at], words.get(at + 1)?)))
    })
}

/// The words of a name in lower case, split at case and at every character that is neither a letter nor a digit.
/// Unlike [`crate::sensitive_words::words`] it ends an acronym before the word that follows: `SQLExecute` is
/// `sql`, `execute`.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_upper = false;
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        let is_word = c.is_alphanumeric();
        let is_before_small = chars.peek().is_some_and(|next| next.is_lowercase());
        let begins = c.is_uppercase() && (!was_upper || is_before_small);
        if (begins || !is_word) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if is_word {
            word.extend(c.to_lowercase());
        }
        was_upper = c.is_uppercase();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_name_is_split_at_case_and_separators() {
        for (name, expected) in [
            ("delete_file", vec!["delete", "file"]),
            ("deleteFile", vec!["delete", "file"]),
            ("DeleteFile", vec!["delete", "file"]),
            ("delete-file.now", vec!["delete", "file", "now"]),
            ("SQLExecute", vec!["sql", "execute"]),
            ("executeSQL", vec!["execute", "sql"]),
            ("S3Delete", vec!["s3", "delete"]),
            ("v2Delete", vec!["v2", "delete"]),
            ("DELETE_ALL", vec!["delete", "all"]),
            ("a/b c:d", vec!["a", "b", "c", "d"]),
            ("ÄndereÜbung", vec!["ändere", "übung"]),
            ("__", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(words(name), expected, "{name}");
        }
    }

    #[test]
    fn sensitive_name_has_a_word_or_an_adjacent_pair_of_the_list() {
        let names = SensitiveNames::default();
        for (name, expected) in [
            ("delete_file", Some("delete")),
            ("bulkDelete", Some("delete")),
            ("get-API-key", Some("api_key")),
            ("getAPIKey", Some("api_key")),
            ("getApikey", Some("apikey")),
            ("run.command", Some("run_command")),
            ("SSHKeyAdd", Some("ssh_key")),
            ("exec_and_delete", Some("exec")),
            ("drop_s3x", Some("drop")),
            // A part of a word, a pair that is not adjacent, a pair in the other order.
            ("deleted_files", None),
            ("undelete", None),
            ("executive_report", None),
            ("run_a_command", None),
            ("key_api", None),
            ("command_run", None),
            ("key", None),
            ("", None),
        ] {
            assert_eq!(names.find(name), expected, "{name}");
        }
    }

    #[test]
    fn look_alike_of_a_sensitive_word_is_found() {
        let names = SensitiveNames::default();
        for (name, expected) in [
            ("ｄｅｌｅｔｅ_file", "delete"),
            ("dеlеtе_file", "delete"),
            ("bulkＤelete", "delete"),
            ("del\u{200b}ete_file", "delete"),
            ("get_арі_kеy", "api_key"),
            ("ѕhell", "shell"),
        ] {
            assert_eq!(names.find(name), Some(expected), "{name}");
        }
        let words = SensitiveNames::new(&["café"]).unwrap();
        assert_eq!(words.find("open_cafe\u{301}"), Some("café"));
        assert_eq!(names.find("查询天气"), None);
    }

    #[test]
    fn sensitive_name_is_found_in_the_plural_with_digits_and_in_any_case() {
        let [older, names] = [WordList::First, WordList::Second].map(SensitiveNames::from_version);
        for (name, expected) in [
            ("rm", "rm"),
            ("rm_rf", "rm"),
            ("eraseDisk", "erase"),
            ("remove-member", "remove"),
            ("bulk_removes", "remove"),
            ("evaluate_script", "evaluate"),
            ("file_deletes", "delete"),
            ("delete2", "delete"),
            ("deletes2", "delete"),
            ("list_passwords", "password"),
            ("list_API_keys", "api_key"),
            ("sshKeys2", "ssh_key"),
            ("run_commands", "run_command"),
            ("DeLeTe_file", "delete"),
            ("dELETE", "delete"),
            ("sHuTdOwN1", "shutdown"),
            ("d\u{435}l\u{435}t\u{435}s_file", "delete"),
        ] {
            assert_eq!(names.find(name), Some(expected), "{name}");
            assert_eq!(older.find(name), None, "{name}");
        }
        for name in ["rms", "storm", "removal", "evaluation", "dns", "s3"] {
            assert_eq!(names.find(name), None, "{name}");
        }
    }

    #[test]
    fn own_words_stay_in_every_version_and_are_compared_as_it_says() {
        let own = SensitiveNames::new(&["reboots", "api_key"]).unwrap();
        assert_eq!(own.find("reboot_now"), Some("reboots"));
        assert_eq!(own.find("delete"), None);
        let older = own.in_version(WordList::First);
        assert_eq!(older.find("reboot_now"), None);
        assert_eq!(older.find("reboots_now"), Some("reboots"));
        assert_eq!(older.in_version(WordList::Second), own);
        assert!(!own.is_of_version());
        let words: Vec<_> = WordList::First.words().collect();
        let listed = SensitiveNames::new(&words).unwrap();
        assert!(!listed.is_of_version());
        assert!(listed.in_version(WordList::First).is_of_version());
    }

    #[test]
    fn default_words_are_entries_of_a_valid_list() {
        let words: Vec<_> = WordList::NEWEST.words().collect();
        let listed = SensitiveNames::new(&words).unwrap();
        assert!(listed.is_of_version());
        assert!(listed.words().eq(SensitiveNames::default().words()));
        assert_eq!(listed.words().count(), words.len());
    }

    #[test]
    fn sensitive_list_with_entries_that_match_no_name_reports_each() {
        let errors = SensitiveNames::new(&["ok", "apiKey", "a_b_c", "", "x-y"]).unwrap_err();
        let found: Vec<_> = errors
            .iter()
            .map(|error| (error.index, error.to_string()))
            .collect();
        let text = |entry: &str, remedy: &str| {
            format!("`{entry}` is neither a word nor a pair of words with `_` between them{remedy}")
        };
        assert_eq!(
            found,
            [
                (1, text("apiKey", "; write `api_key`")),
                (2, text("a_b_c", "")),
                (3, text("", "")),
                (4, text("x-y", "; write `x_y`")),
            ]
        );
    }

    #[test]
    fn empty_sensitive_list_finds_no_name() {
        let none = SensitiveNames::new::<&str>(&[]).unwrap();
        assert_eq!(none.find("delete_password"), None);
    }
}

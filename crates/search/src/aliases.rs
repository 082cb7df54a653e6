//! Usual abbreviations, endings of file names among them, and everyday words, with the words that tools have for them.

use rust_stemmers::{Algorithm, Stemmer};

/// Sorted by the first word.
const ALIASES: &[(&str, &str)] = &[
    ("admin", "administrator"),
    ("app", "application"),
    ("auth", "authentication"),
    ("bug", "issue"),
    ("calc", "calculate"),
    ("config", "configuration"),
    ("crash", "error log"),
    ("crashing", "error log"),
    ("db", "database"),
    ("difference", "diff"),
    ("dir", "directory"),
    ("dm", "direct message"),
    ("doc", "document"),
    ("docs", "documentation"),
    ("docx", "word document"),
    ("dropdown", "select option"),
    ("env", "environment"),
    ("erase", "delete"),
    ("fn", "function"),
    ("folder", "directory"),
    ("forget", "delete"),
    ("gh", "github"),
    ("gif", "image"),
    ("img", "image"),
    ("info", "information"),
    ("jpeg", "image"),
    ("jpg", "image"),
    ("k8s", "kubernetes"),
    ("kb", "knowledge base"),
    ("lang", "language"),
    ("mail", "email"),
    ("mr", "merge request"),
    ("msg", "message"),
    ("newest", "latest"),
    ("org", "organization"),
    ("people", "user"),
    ("perf", "performance"),
    ("permission", "policy"),
    ("permissions", "policy"),
    ("phone", "mobile"),
    ("photo", "image"),
    ("pic", "image"),
    ("picture", "image"),
    ("pkg", "package"),
    ("png", "image"),
    ("ppt", "presentation"),
    ("pptx", "presentation"),
    ("pr", "pull request"),
    ("prefs", "preferences"),
    ("price", "pricing"),
    ("pw", "password"),
    ("regex", "regular expression"),
    ("remember", "memory"),
    ("rename", "move"),
    ("repo", "repository"),
    ("rid", "remove"),
    ("scan", "check"),
    ("site", "page"),
    ("slow", "performance"),
    ("slowly", "performance"),
    ("sms", "text message"),
    ("spec", "specification"),
    ("stats", "statistics"),
    ("temp", "temperature"),
    ("ticket", "issue"),
    ("transcribe", "recognize speech"),
    ("tz", "timezone"),
    ("undo", "reset"),
    ("unstage", "reset"),
    ("var", "variable"),
    ("vid", "video"),
    ("vm", "virtual machine"),
    ("vuln", "vulnerability"),
    ("whenever", "watch"),
    ("xls", "excel"),
    ("xlsx", "excel"),
];

/// Returns the stems of the words that a word may also mean; a plural has the stems of its singular.
pub(crate) fn aliases(word: &str) -> Vec<String> {
    let find = |word: &str| ALIASES.binary_search_by_key(&word, |(short, _)| short).ok();
    let found = find(word).or_else(|| find(word.strip_suffix('s')?));
    let words = found.map_or("", |at| ALIASES[at].1);
    let stemmer = Stemmer::create(Algorithm::English);
    words
        .split(' ')
        .filter(|word| !word.is_empty())
        .map(|word| stemmer.stem(word).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_sorted_and_short() {
        assert!(ALIASES.is_sorted_by_key(|(short, _)| *short));
        assert!(ALIASES.len() <= 80);
    }

    #[test]
    fn abbreviations_and_their_plurals_are_found() {
        assert_eq!(aliases("mr"), ["merg", "request"]);
        assert_eq!(aliases("tickets"), aliases("ticket"));
        assert!(aliases("window").is_empty());
    }
}

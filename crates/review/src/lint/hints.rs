//! Search hints that do not fit their tool: they name a tool of another source, share no word with the tool, or have only
//! words that many tools have.

use std::collections::{HashMap, HashSet};

use broker_drift::Finding;
use broker_drift::encoded::words;
use broker_model::lock::{LockedSource, LockedTool};
use broker_search::is_stop_word;

use super::foreign::{Named, Own};
use super::rules::rule;
use super::texts::{Role, Text, texts_of};
use super::{CrossSourceFinding, quoted};

/// A word is common if more tools than this share of the catalog have it, in percent.
const COMMON_PERCENT: usize = 5;
/// And at least so many tools.
const MIN_COMMON: usize = 5;
/// Words that begin alike in so many letters are forms of one word.
const STEM: usize = 4;

/// The findings on the hints of every tool.
pub(super) fn check(sources: &[LockedSource], named: &Named<'_>) -> Vec<CrossSourceFinding> {
    let hinted = sources.iter().flat_map(|source| &source.exposed);
    if !hinted.into_iter().any(|tool| !tool.search_hints.is_empty()) {
        return Vec::new();
    }
    let counts = counts(sources);
    let all: usize = sources.iter().map(|source| source.exposed.len()).sum();
    let is_common = |word: &String| {
        let count = counts.get(word).copied().unwrap_or_default();
        count >= MIN_COMMON && 100 * count > COMMON_PERCENT * all
    };
    let mut found = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        let own_names = Own::collect(source);
        for (index, tool) in source.exposed.iter().enumerate() {
            let own_words = words_of_tool(tool);
            for hint in &tool.search_hints {
                let mut add = |id, message: String| {
                    let finding = Finding {
                        // The config has the hint; the tool is found by its name.
                        pointer: "/name".to_owned(),
                        new: Some(hint.as_str().into()),
                        ..Finding::new(rule(id), message, "")
                    };
                    let tool = (number, index);
                    found.push(CrossSourceFinding { tool, finding });
                };
                let text = Text {
                    pointer: String::new(),
                    text: hint,
                    role: Role::Prose,
                    member: None,
                };
                for foreign in named.check(number, &own_names, &text) {
                    let message = format!("the search hint {} {}", quoted(hint), foreign.message);
                    add("hint-foreign-tool", message);
                }
                let hint_words = significant(hint);
                if !hint_words.iter().any(|word| shares(&own_words, word)) {
                    let message =
                        format!("no word of the search hint {} is in the tool", quoted(hint));
                    add("hint-unrelated", message);
                } else if hint_words.iter().all(is_common) {
                    let message = format!(
                        "many tools have every word of the search hint {}",
                        quoted(hint)
                    );
                    add("hint-common", message);
                }
            }
        }
    }
    found
}

/// Returns the words of a text without the words that have no meaning for a search.
fn significant(text: &str) -> HashSet<String> {
    let all: HashSet<String> = words(text).into_iter().map(|word| word.text).collect();
    match all.iter().all(|word| is_stop_word(word)) {
        true => all,
        false => all.into_iter().filter(|word| !is_stop_word(word)).collect(),
    }
}

/// The words of the name, the description and the parameters of a tool. Names are split.
fn words_of_tool(tool: &LockedTool) -> HashSet<String> {
    let mut out = HashSet::new();
    for text in texts_of(tool) {
        match text.role {
            Role::Name | Role::Parameter => {
                out.extend(significant(&split(text.text)));
                out.extend(significant(text.text));
            }
            Role::Prose => out.extend(significant(text.text)),
            Role::Key | Role::Data => {}
        }
    }
    out
}

/// A name as words: `getUser_name` is `get user name`.
fn split(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut was_lower = false;
    for c in name.chars() {
        if was_lower && c.is_uppercase() {
            out.push(' ');
        }
        was_lower = c.is_lowercase();
        out.push(if c.is_alphanumeric() { c } else { ' ' });
    }
    out
}

/// Whether a tool has a word, or another form of it.
fn shares(own: &HashSet<String>, word: &str) -> bool {
    let is_form = |other: &String| {
        let (short, long) = match other.len() < word.len() {
            true => (other.as_str(), word),
            false => (word, other.as_str()),
        };
        short.chars().count() >= STEM && long.starts_with(short)
    };
    own.contains(word) || own.iter().any(is_form)
}

/// The number of tools that have each word.
fn counts(sources: &[LockedSource]) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for tool in sources.iter().flat_map(|source| &source.exposed) {
        for word in words_of_tool(tool) {
            *counts.entry(word).or_default() += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_is_shared_in_another_form() {
        let own: HashSet<String> = significant(&split("listFiles_in"));
        assert!(shares(&own, "file") && shares(&own, "listing"));
        assert!(!shares(&own, "fi") && !shares(&own, "folder"));
    }
}

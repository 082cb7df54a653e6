//! The differences between the config fields of two locked sources, for people and for reports.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::settings::{SourceSettings, Word};
use crate::text::shown_line;

/// Maximum number of patterns, aliases or words that a message names.
const MAX_NAMED: usize = 6;
/// Maximum length of a name in a message, in characters.
const MAX_NAME_CHARS: usize = 100;

/// A changed field of a source's config.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingChange {
    /// The member of the lock.
    pub member: &'static str,
    /// Its old value.
    pub old: Value,
    /// Its new value.
    pub new: Value,
    /// The change in one sentence without a full stop.
    pub message: String,
}

impl SourceSettings {
    /// The changes from this source to a newer one.
    pub fn changes(&self, new: &Self) -> Vec<SettingChange> {
        let change = |member, old: Value, new: Value, message: Option<String>| {
            message.map(|message| SettingChange {
                member,
                old,
                new,
                message,
            })
        };
        let command = change(
            "command",
            json!(self.command),
            json!(new.command),
            self.command_change(new),
        );
        let filter = change(
            "tool_filter",
            json!(self.tool_filter),
            json!(new.tool_filter),
            self.filter_change(new),
        );
        let aliases = change(
            "path_aliases",
            json!(self.path_aliases),
            json!(new.path_aliases),
            self.alias_change(new),
        );
        [command, filter, aliases].into_iter().flatten().collect()
    }

    /// The words between the common start and the common end.
    fn command_change(&self, new: &Self) -> Option<String> {
        let (before, after) = (self.command.words(), new.command.words());
        let shell = match (self.command.is_shell(), new.command.is_shell()) {
            (false, true) => Some("a shell runs `command` now"),
            (true, false) => Some("`command` is run without a shell now"),
            _ => None,
        };
        let same = |(one, other): &(&Word, &Word)| one.is_same_text(other);
        let start = before.iter().zip(after).take_while(same).count();
        let (before, after) = (&before[start..], &after[start..]);
        let ends = before.iter().rev().zip(after.iter().rev());
        let end = ends.take_while(same).count();
        let before = &before[..before.len() - end];
        let after = &after[..after.len() - end];
        let words = match (before, after) {
            ([], []) => None,
            ([], _) => Some(format!("`command` has the new {}", words(after))),
            (_, []) => Some(format!("`command` no longer has the {}", words(before))),
            _ => Some(format!(
                "the {} of `command` {} now {}",
                words(before),
                if before.len() == 1 { "is" } else { "are" },
                list(after)
            )),
        };
        let both: Vec<_> = shell.map(str::to_owned).into_iter().chain(words).collect();
        (!both.is_empty()).then(|| both.join(", and "))
    }

    /// The order of the patterns has no meaning.
    fn filter_change(&self, new: &Self) -> Option<String> {
        let set = |filter: &[String]| -> BTreeSet<String> { filter.iter().cloned().collect() };
        let (before, after) = (set(&self.tool_filter), set(&new.tool_filter));
        let added: Vec<_> = after.difference(&before).map(|one| name(one)).collect();
        let removed: Vec<_> = before.difference(&after).map(|one| name(one)).collect();
        let added = (!added.is_empty()).then(|| format!("has the new pattern {}", named(&added)));
        let removed =
            (!removed.is_empty()).then(|| format!("no longer has the pattern {}", named(&removed)));
        let both: Vec<_> = added.into_iter().chain(removed).collect();
        (!both.is_empty()).then(|| format!("`tool_filter` {}", both.join(", and ")))
    }

    fn alias_change(&self, new: &Self) -> Option<String> {
        let (before, after) = (&self.path_aliases, &new.path_aliases);
        let tools: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let changes: Vec<_> = tools
            .into_iter()
            .filter_map(|tool| {
                let shown = name(tool);
                match (before.get(tool), after.get(tool)) {
                    (Some(old), Some(new)) if old != new => {
                        Some(format!("{shown} is {} instead of {}", name(new), name(old)))
                    }
                    (None, Some(new)) => Some(format!("{shown} is {} now", name(new))),
                    (Some(old), None) => {
                        Some(format!("the alias {} of {shown} was removed", name(old)))
                    }
                    _ => None,
                }
            })
            .collect();
        (!changes.is_empty()).then(|| format!("in `path_aliases`, {}", named(&changes)))
    }
}

fn words(words: &[Word]) -> String {
    let plural = if words.len() == 1 { "word" } else { "words" };
    format!("{plural} {}", list(words))
}

fn list(words: &[Word]) -> String {
    let shown: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    limited(&shown, " ")
}

fn name(name: &str) -> String {
    format!("`{}`", shown_line(name, MAX_NAME_CHARS))
}

fn named(names: &[String]) -> String {
    limited(names, ", ")
}

fn limited(names: &[String], separator: &str) -> String {
    let shown = names[..names.len().min(MAX_NAMED)].join(separator);
    match names.len().saturating_sub(MAX_NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

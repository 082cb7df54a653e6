//! The differences between the config fields of two locked sources, for people and for reports.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::settings::{Command, EndpointSettings, HttpSettings, SourceSettings, Word};
use crate::text::shown_line;
use crate::trust::TrustLevel;

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
        let (before, after) = (self.trust_level(), new.trust_level());
        let trust = change(
            "trust",
            json!(before),
            json!(after),
            level_change(before, after),
        );
        let mut changes = self.endpoint.changes(&new.endpoint);
        changes.extend([trust, filter, aliases].into_iter().flatten());
        changes
    }

    fn filter_change(&self, new: &Self) -> Option<String> {
        set_change(
            "`tool_filter`",
            "pattern",
            &self.tool_filter,
            &new.tool_filter,
        )
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

impl SettingChange {
    /// The change of the search hints of the tool with this upstream name.
    pub fn from_search_hints(tool: &str, old: &[String], new: &[String]) -> Option<Self> {
        let list = format!("the list of search hints of {}", name(tool));
        Some(Self {
            member: "search_hints",
            old: json!(old),
            new: json!(new),
            message: set_change(&list, "phrase", old, new)?,
        })
    }
}

impl EndpointSettings {
    fn changes(&self, new: &Self) -> Vec<SettingChange> {
        let (old_http, new_http) = match (self, new) {
            (Self::Process(old), Self::Process(new)) => {
                let message = old.change(new);
                return message
                    .map(|message| SettingChange {
                        member: "command",
                        old: json!(old),
                        new: json!(new),
                        message,
                    })
                    .into_iter()
                    .collect();
            }
            (Self::Http(old), Self::Http(new)) => (old, new),
            _ => {
                return vec![SettingChange {
                    member: new.member(),
                    old: self.value(),
                    new: new.value(),
                    message: format!(
                        "the source has a `{}` now instead of a `{}`",
                        new.member(),
                        self.member()
                    ),
                }];
            }
        };
        old_http.changes(new_http)
    }

    /// The member of the lock that names the server.
    const fn member(&self) -> &'static str {
        match self {
            Self::Process(_) => "command",
            Self::Http(_) => "url",
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Process(command) => json!(command),
            Self::Http(http) => json!(http.url),
        }
    }
}

impl HttpSettings {
    fn changes(&self, new: &Self) -> Vec<SettingChange> {
        let url = (!self.url.is_same_text(&new.url)).then(|| SettingChange {
            member: "url",
            old: json!(self.url),
            new: json!(new.url),
            message: format!("`url` is now `{}` instead of `{}`", new.url, self.url),
        });
        let headers =
            set_change("`headers`", "name", &self.header_names, &new.header_names).map(|message| {
                SettingChange {
                    member: "header_names",
                    old: json!(self.header_names),
                    new: json!(new.header_names),
                    message,
                }
            });
        url.into_iter().chain(headers).collect()
    }
}

impl Command {
    /// The words between the common start and the common end.
    fn change(&self, new: &Self) -> Option<String> {
        let (before, after) = (self.words(), new.words());
        let shell = match (self.is_shell(), new.is_shell()) {
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
}

/// The sentence about another trust level.
fn level_change(before: TrustLevel, after: TrustLevel) -> Option<String> {
    let direction = match after.cmp(&before) {
        Ordering::Greater => "raised",
        Ordering::Less => "lowered",
        Ordering::Equal => return None,
    };
    Some(format!(
        "the trust level was {direction} from `{before}` to `{after}`"
    ))
}

/// The added and removed elements of a list whose order has no meaning.
fn set_change(list: &str, element: &str, old: &[String], new: &[String]) -> Option<String> {
    let set = |list: &[String]| -> BTreeSet<String> { list.iter().cloned().collect() };
    let (before, after) = (set(old), set(new));
    let added: Vec<_> = after.difference(&before).map(|one| name(one)).collect();
    let removed: Vec<_> = before.difference(&after).map(|one| name(one)).collect();
    let added = (!added.is_empty()).then(|| format!("has the new {element} {}", named(&added)));
    let removed =
        (!removed.is_empty()).then(|| format!("no longer has the {element} {}", named(&removed)));
    let both: Vec<_> = added.into_iter().chain(removed).collect();
    (!both.is_empty()).then(|| format!("{list} {}", both.join(", and ")))
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

//! Warns about host-specific values (home folder, host name, time zone) in tool texts, and about values of variables
//! that a server repeats. Host-specific values make the lock non-reproducible.

use std::path::Path;

use broker_config::client_file::{is_secret_key, is_secret_value};
use broker_config::{Source, Template};
use broker_mcp::{Endpoint, SourceSpec};
use broker_model::lock::{LockedSource, LockedTool};
use broker_model::redact::is_secret_name;
use broker_model::{Diagnostic, DiagnosticCode};
use broker_review::dates;
use serde_json::Value;

/// Texts that only this machine has.
pub(in crate::cli) fn values_of_this_host(config_folder: &Path) -> Vec<HostValue> {
    let mut values = Vec::new();
    let mut add = |what: &str, text: Option<String>, least: usize| {
        values.extend(
            text.filter(|text| text.len() >= least)
                .map(|text| HostValue {
                    what: what.to_owned(),
                    text,
                    kind: HostValueKind::Machine,
                }),
        )
    };
    let folder = |path: &Path| {
        path.canonicalize()
            .ok()
            .map(|path| path.to_string_lossy().into_owned())
    };
    add("the home folder", std::env::var("HOME").ok(), 4);
    add(
        "the config's folder",
        folder(if config_folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            config_folder
        }),
        4,
    );
    add("the working folder", folder(Path::new(".")), 4);
    add(
        "the host name",
        std::fs::read_to_string("/proc/sys/kernel/hostname")
            .ok()
            .map(|name| name.trim().to_owned()),
        6,
    );
    let zone = std::fs::read_link("/etc/localtime").ok().and_then(|link| {
        link.to_string_lossy()
            .split_once("zoneinfo/")
            .map(|(_, zone)| zone.to_owned())
    });
    // `UTC` occurs in many descriptions; a zone of a place is specific to this machine.
    add(
        "the time zone",
        std::env::var("TZ")
            .ok()
            .or(zone)
            .filter(|zone| zone.contains('/')),
        4,
    );
    values.retain(|one| one.text != "localhost");
    values.extend(dates::today().into_iter().map(|text| HostValue {
        what: "the current date".to_owned(),
        text,
        kind: HostValueKind::Date,
    }));
    values
}

/// A text that should not be in a lock.
#[derive(Debug)]
pub(in crate::cli) struct HostValue {
    /// Its description, for people.
    what: String,
    text: String,
    kind: HostValueKind,
}

/// Why a text should not be in a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostValueKind {
    /// It is a secret, and refuses the part that has it.
    Secret,
    /// Another machine or user has another value.
    Machine,
    /// It differs from tomorrow on.
    Date,
}

impl HostValueKind {
    const fn from_secrecy(is_secret: bool) -> Self {
        match is_secret {
            true => Self::Secret,
            false => Self::Machine,
        }
    }
}

/// Returns the values of variables of a source. They differ on other machines or for other users.
pub(in crate::cli) fn values_of_source(source: &Source, spec: &SourceSpec) -> Vec<HostValue> {
    let variables = source.templates().flat_map(Template::variables);
    let mut values: Vec<_> = variables
        .filter_map(|name| Some((name, std::env::var(name).ok()?)))
        .map(|(name, text)| HostValue {
            what: format!("the value of `{name}`"),
            text,
            kind: HostValueKind::from_secrecy(is_secret_name(name)),
        })
        .collect();
    if let (Some(written), Some(process)) = (source.process(), spec.endpoint.process()) {
        let given = written.env.keys().filter(|name| is_secret_name(name));
        values.extend(given.filter_map(|name| {
            Some(HostValue {
                what: format!("the value of `{name}`"),
                text: process.env.get(name)?.clone(),
                kind: HostValueKind::Secret,
            })
        }));
    }
    if let (Some(written), Endpoint::Http(http)) = (source.endpoint.http(), &spec.endpoint) {
        let headers = written.headers.iter();
        values.extend(headers.filter_map(|(name, template)| {
            let value = http.headers.get(name)?;
            Some(HostValue {
                what: format!("the value of the header `{name}`"),
                text: value.to_str().ok()?.to_owned(),
                kind: HostValueKind::from_secrecy(
                    is_secret_key(name) || is_secret_value(name, template.raw()),
                ),
            })
        }));
        let literals = written.literal_query_secrets().into_iter();
        values.extend(literals.map(|text| HostValue {
            what: "a secret in the query of a URL".to_owned(),
            text: text.to_owned(),
            kind: HostValueKind::Secret,
        }));
    }
    // Secrets first: of several texts in one place the worst is reported.
    values.sort_by_key(|one| one.kind != HostValueKind::Secret);
    values.retain(|one| one.text.len() >= 4);
    values
}

/// A text in a listing that should not be in a lock.
#[derive(Debug)]
pub(in crate::cli) struct Leak<'s> {
    /// The tool with the text; `None` for the instructions of the source.
    pub(in crate::cli) tool: Option<&'s LockedTool>,
    /// The JSON pointer of the place in it.
    pub(in crate::cli) pointer: String,
    /// An error for a secret, else a warning.
    pub(in crate::cli) problem: Diagnostic,
}

/// The findings in a source's tools and instructions: an error for a secret, a warning for a value that
/// differs elsewhere; one for each place.
pub(in crate::cli) fn find<'s>(source: &'s LockedSource, values: &[&HostValue]) -> Vec<Leak<'s>> {
    let own = source
        .instructions
        .as_deref()
        .map(|text| (None, "its instructions".to_owned(), Value::from(text)));
    let tools = source.exposed.iter().map(|tool| {
        (
            Some(tool),
            format!("its tool `{}`", tool.upstream_name),
            Value::Object(tool.raw.clone()),
        )
    });
    let mut found = Vec::new();
    for (tool, place, value) in own.into_iter().chain(tools) {
        let first = values
            .iter()
            .find_map(|one| Some((*one, pointer_of(&value, &one.text, String::new())?)));
        let Some((one, pointer)) = first else {
            continue;
        };
        let mut message = format!("`{}` put {} into {place}", source.path, one.what);
        if !pointer.is_empty() {
            message = format!("{message} at {pointer}");
        }
        let problem = match one.kind {
            HostValueKind::Secret => Diagnostic::error(DiagnosticCode::SourceSecret, message),
            HostValueKind::Machine => Diagnostic::warning(DiagnosticCode::MachineText, message),
            HostValueKind::Date => {
                let name = tool.map(|tool| tool.upstream_name.as_str());
                let volatile = dates::volatile_pointer(name, &pointer);
                Diagnostic::warning(DiagnosticCode::MachineText, message)
                    .help(dates::remedy(&source.path, &volatile))
            }
        };
        found.push(Leak {
            tool,
            pointer,
            problem,
        });
    }
    found
}

/// The first string that contains `text` as a whole word.
fn pointer_of(value: &Value, text: &str, pointer: String) -> Option<String> {
    match value {
        Value::String(string) => holds(string, text).then_some(pointer),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| pointer_of(item, text, format!("{pointer}/{index}"))),
        Value::Object(members) => members.iter().find_map(|(key, item)| {
            pointer_of(item, text, broker_model::json::child_pointer(&pointer, key))
        }),
        _ => None,
    }
}

fn holds(string: &str, text: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    string.match_indices(text).any(|(at, _)| {
        !string[..at].ends_with(word) && !string[at + text.len()..].starts_with(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn host_value_is_found_only_as_a_whole_word() {
        let value = json!({"a": ["in Europe/Paris now"], "b": "Europe/Parisian"});
        assert_eq!(
            pointer_of(&value, "Europe/Paris", String::new()).as_deref(),
            Some("/a/0")
        );
        assert_eq!(
            pointer_of(&json!("Europe/Parisian"), "Europe/Paris", String::new()),
            None
        );
    }
}

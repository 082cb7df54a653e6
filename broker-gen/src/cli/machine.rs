//! Points out what servers wrote of this machine into their tools: a lock that is made elsewhere
//! would differ.

use std::path::Path;

use broker_model::lock::LockedSource;
use broker_model::{Diagnostic, DiagnosticCode};
use serde_json::Value;

/// Texts that only this machine has, each with what it is.
pub(super) fn traits_of_this_machine(config_folder: &Path) -> Vec<(&'static str, String)> {
    let mut traits = Vec::new();
    let mut add = |what, text: Option<String>, least: usize| {
        traits.extend(
            text.filter(|text| text.len() >= least)
                .map(|text| (what, text)),
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
    // `UTC` stands in many descriptions; a zone of a place is this machine's.
    add(
        "the time zone",
        std::env::var("TZ")
            .ok()
            .or(zone)
            .filter(|zone| zone.contains('/')),
        4,
    );
    traits.retain(|(_, text)| text != "localhost");
    traits
}

/// One warning for each tool, or source, that carries such a text.
pub(super) fn point_out(
    sources: &[LockedSource],
    traits: &[(&'static str, String)],
) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for source in sources {
        let own = source
            .instructions
            .as_deref()
            .map(|text| ("its instructions".to_owned(), Value::from(text)));
        let tools = source.exposed.iter().map(|tool| {
            (
                format!("its tool `{}`", tool.upstream_name),
                Value::Object(tool.raw.clone()),
            )
        });
        for (place, value) in own.into_iter().chain(tools) {
            let found = traits
                .iter()
                .find_map(|(what, text)| Some((what, pointer_of(&value, text, String::new())?)));
            if let Some((what, pointer)) = found {
                let message = format!(
                    "`{}` wrote {what} into {place}{}",
                    source.path,
                    if pointer.is_empty() {
                        String::new()
                    } else {
                        format!(" at {pointer}")
                    }
                );
                warnings.push(Diagnostic::warning(DiagnosticCode::MachineText, message));
            }
        }
    }
    warnings
}

/// The first string that holds `text` as a whole word.
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
    fn whole_words_only() {
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

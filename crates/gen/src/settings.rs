//! The config fields that a lock of version 2 repeats, compared with the config if the lock is stale.

use crate::requested::{self, Requested};
use broker_config::{Backend, Config, Source};
use broker_model::lock::{LockedSource, SettingChange};
use broker_model::text::shown_line;
use broker_model::trust::TrustLevel;

/// Maximum length of the list of changes in a message, in characters.
const MAX_CHANGES_CHARS: usize = 600;

/// The changes of a source's config since it was locked, each in one sentence.
fn changes_since(config: &Config, source: &Source, locked: &LockedSource) -> Vec<String> {
    let now = config.lock_settings(source);
    let Some(before) = &locked.settings else {
        return Vec::new();
    };
    let changes = before.changes(&now).into_iter();
    let mut changes: Vec<_> = changes.map(|change| change.message).collect();
    changes.extend(hint_changes(source, locked));
    changes.extend(package_change(source, locked));
    if locked.volatile != source.volatile {
        changes.push("`volatile` has other pointers".to_owned());
    }
    if locked.backend != source.backend() {
        changes.push("it has another `backend`".to_owned());
    }
    if changes.is_empty() && locked.config_digest != source.digest() {
        changes.push(unshown_changes(source));
    }
    changes
}

/// The changes of the search hints of tools.
fn hint_changes(source: &Source, locked: &LockedSource) -> Vec<String> {
    let tools = locked.exposed.iter();
    let changes = tools.filter_map(|tool| {
        let own = source.overrides.get(&tool.upstream_name);
        let now = own.map(|own| own.compiled_hints(&tool.digest));
        let now = now.unwrap_or_default();
        SettingChange::from_search_hints(&tool.upstream_name, &tool.search_hints, &now)
    });
    changes.map(|change| change.message).collect()
}

/// The possible changes if all fields that the lock repeats are unchanged.
fn unshown_changes(source: &Source) -> String {
    let mut changes = match source.backend() {
        Backend::Stdio => "`env` or `inherit_env` has other names",
        Backend::Http => "`auth` or `allow_plain_http` is another one",
    }
    .to_owned();
    if source.exposure.level() == TrustLevel::Untrusted {
        changes.push_str(", or `trust.sensitive` has other words");
    }
    changes.push_str(", or prompts, resources or their filters or aliases are other ones");
    changes
}

/// Returns the changes for the end of a message: `: ` and the sentences, or an empty text for a lock of version 1.
pub fn shown_changes(config: &Config, source: &Source, locked: &LockedSource) -> String {
    let changes = changes_since(config, source, locked);
    if changes.is_empty() {
        return String::new();
    }
    format!(": {}", shown_line(&changes.join("; "), MAX_CHANGES_CHARS))
}

/// The package that the command names now, if it is not the one that ran.
fn package_change(source: &Source, locked: &LockedSource) -> Option<String> {
    let package = locked.package.as_ref()?;
    let (name, version) = match requested::request(&source.process()?.command)?.what {
        Requested::Npm { name, version, .. } | Requested::Pypi { name, version, .. } => {
            (name, version.exact().map(str::to_owned))
        }
        Requested::Image { name, tag, .. } => (name, tag),
        _ => return None,
    };
    let other_version = version.is_some() && version != package.version;
    if name == package.name && !other_version {
        return None;
    }
    let mut named = format!("`{}`", shown_line(&name, 200));
    if let Some(version) = version {
        named = format!("{named} {}", shown_line(&version, 100));
    }
    Some(format!(
        "the lock has the {package}, and the command names {named}"
    ))
}

//! Whether a lock was made for a config, and what has changed since.

use broker_config::Config;
use broker_model::lock::{Lock, LockedAccess};
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode};

use crate::settings;

/// Checks that the lock was made for this config, and names the sources that changed, are missing, or are
/// left over.
pub fn check_fresh(config: &Config, lock: &Lock) -> Result<(), Vec<Diagnostic>> {
    let mut problems: Vec<_> = access_change(config, lock).into_iter().collect();
    if lock.config_digest == config.digest() && problems.is_empty() {
        return check_search_hints(config, lock);
    }
    for source in config.sources() {
        let left_out = lock.left_out_source(&source.path);
        if left_out.is_some_and(|known| known.config_digest == source.digest()) {
            continue;
        }
        let message = match lock.source(source.path.as_str()) {
            None if left_out.is_some() => format!(
                "the config of the source `{}`, which the lock leaves out, has changed",
                source.path
            ),
            None => format!("the source `{}` is not in the lock", source.path),
            Some(locked) if locked.config_digest != source.digest() => {
                format!(
                    "the config of the source `{}` has changed since it was locked{}",
                    source.path,
                    settings::shown_changes(config, source, locked)
                )
            }
            Some(_) => continue,
        };
        problems.push(
            config.place(Diagnostic::error(DiagnosticCode::LockStale, message).at(&source.pointer)),
        );
    }
    let locked = lock.sources.iter().map(|locked| &locked.path);
    let left_out = lock.left_out.iter().map(|left_out| &left_out.path);
    for path in locked
        .chain(left_out)
        .filter(|path| config.source(path).is_none())
    {
        let message = match config.disabled.contains(path) {
            true => format!("the lock has the source `{path}`, which is disabled"),
            false => format!("the lock has the source `{path}`, which the config does not have"),
        };
        problems.push(Diagnostic::error(DiagnosticCode::LockOrphan, message));
    }
    if problems.is_empty() {
        let message = format!(
            "the lock was made for a config with the digest {}, this one has {}",
            lock.config_digest,
            config.digest()
        );
        problems.push(Diagnostic::error(DiagnosticCode::LockStale, message).in_file(&config.file));
    }
    Err(problems)
}

/// Returns the problem of access rules that differ from the rules of the lock, if the lock records them.
fn access_change(config: &Config, lock: &Lock) -> Option<Diagnostic> {
    let change = match (lock.access(), config.access_digest()) {
        (LockedAccess::NotRecorded, _) | (LockedAccess::Absent, None) => return None,
        (LockedAccess::Rules(locked), Some(now)) if *locked == now => return None,
        (LockedAccess::Rules(_), Some(_)) => "has changed since it was locked",
        (LockedAccess::Rules(_), None) => "was removed since it was locked",
        (LockedAccess::Absent, Some(_)) => "is new since the config was locked",
    };
    let message = format!("the section `access` {change}");
    Some(config.place(Diagnostic::error(DiagnosticCode::LockStale, message).at("/access")))
}

/// Checks that the lock repeats the search hints of the config.
fn check_search_hints(config: &Config, lock: &Lock) -> Result<(), Vec<Diagnostic>> {
    let mut problems = Vec::new();
    for locked in &lock.sources {
        let overrides = config.source(&locked.path).map(|source| &source.overrides);
        for tool in &locked.exposed {
            let own = overrides.and_then(|own| own.get(&tool.upstream_name));
            let hints = own.map(|own| own.compiled_hints(&tool.digest));
            if hints.unwrap_or_default() != tool.search_hints {
                let message = format!(
                    "the lock has other `search_hints` of `{}` of `{}` than the config",
                    shown_line(&tool.upstream_name, 80),
                    locked.path
                );
                problems.push(
                    Diagnostic::error(DiagnosticCode::LockStale, message).in_file(&config.file),
                );
            }
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems),
    }
}

//! The sources that a lock takes over without launching them: with `--source`, all others as they are locked.

use broker_build::settings;
use broker_model::lock::{LeftOutSource, Lock, LockedSource};
use broker_model::{Diagnostic, DiagnosticCode, LeftOutCode};

use super::draft::Draft;
use crate::cli::LockArgs;
use crate::cli::input::Input;
use crate::cli::lock::partial;

/// Returns the draft before a launch. With `--source` it has the other sources as they are locked: they must match the
/// config. Sources that were never locked are left out.
pub(super) fn begin(
    args: &LockArgs,
    input: &Input,
    old: Option<&Lock>,
) -> Result<Draft, Vec<Diagnostic>> {
    let mut draft = Draft::default();
    if args.config.sources.is_empty() {
        return Ok(draft);
    }
    let mut problems = Vec::new();
    let is_asked = |path: &str| args.config.sources.iter().any(|asked| asked == path);
    for source in input.config.sources() {
        if is_asked(source.path.as_str()) {
            continue;
        }
        match old.and_then(|old| old.source(source.path.as_str())) {
            Some(locked) if locked.config_digest == source.digest() => draft.add(locked.clone()),
            Some(locked) => {
                let message = format!(
                    "the config of the source `{}` has changed since it was locked, so the others cannot be locked alone{}",
                    source.path,
                    settings::shown_changes(&input.config, source, locked)
                );
                let help = format!("Add `--source {}`, or lock all.", source.path);
                problems.push(Diagnostic::error(DiagnosticCode::LockStale, message).help(help));
            }
            None => {
                let known = old.and_then(|old| old.left_out_source(&source.path));
                let known = known.filter(|known| known.config_digest == source.digest());
                let code = LeftOutCode::NotLocked;
                draft
                    .left_out
                    .push(known.cloned().unwrap_or_else(|| LeftOutSource {
                        path: source.path.clone(),
                        code,
                        place: String::new(),
                        reason: code.cause().to_owned(),
                        config_digest: source.digest(),
                        digest: None,
                    }));
            }
        }
    }
    draft.left_out.sort_by(|a, b| a.path.cmp(&b.path));
    match problems.is_empty() {
        true => Ok(draft),
        false => Err(problems),
    }
}

/// With `--tool`: the one locked source that gets single tools from the launch.
pub(super) fn one_source(
    args: &LockArgs,
    input: &Input,
    old: Option<&Lock>,
) -> Result<Option<LockedSource>, Vec<Diagnostic>> {
    if args.tools.is_empty() {
        return Ok(None);
    }
    let [spec] = input.specs.as_slice() else {
        let message = "`--tool` needs exactly one `--source`";
        let help = "Lock the tools of one source, then those of the next.";
        return Err(vec![
            Diagnostic::error(DiagnosticCode::PathInvalid, message).help(help),
        ]);
    };
    let Some(lock) = old else {
        // The error says why.
        return input.read_lock().map(|_| None);
    };
    let source = input
        .config
        .source(&spec.source)
        .expect("only sources of the config are launched");
    Ok(Some(
        partial::locked_source(lock, &input.config, source)?.clone(),
    ))
}

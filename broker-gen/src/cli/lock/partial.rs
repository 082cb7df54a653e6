//! `lock --source S --tool T`: updates these tools and keeps everything else of the source as it is locked.

use broker_build::plan::nearest;
use broker_build::settings;
use broker_config::{Config, Source};
use broker_model::left_out::LeftOut;
use broker_model::lock::{HiddenTool, Lock, LockedSource, LockedTool};
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode, text};

use crate::cli::output::say;

/// The locked source, whose config must be unchanged.
pub(in crate::cli) fn locked_source<'a>(
    lock: &'a Lock,
    config: &Config,
    source: &Source,
) -> Result<&'a LockedSource, Vec<Diagnostic>> {
    match lock.source(source.path.as_str()) {
        Some(locked) if locked.config_digest == source.digest() => Ok(locked),
        other => {
            let changes = other.map(|locked| settings::shown_changes(config, source, locked));
            let message = format!(
                "the config of the source `{}` has changed since it was locked, so its tools cannot be locked one by one{}",
                source.path,
                changes.unwrap_or_default()
            );
            let help = format!(
                "Lock the whole source: `--source {}` without `--tool`.",
                source.path
            );
            Err(vec![
                Diagnostic::error(DiagnosticCode::LockStale, message).help(help),
            ])
        }
    }
}

/// The locked source with the current form of these tools. A tool is named by the server's name or by its
/// name in the tree.
pub(in crate::cli) fn take(
    old: &LockedSource,
    new: &LockedSource,
    names: &[String],
) -> Result<LockedSource, Vec<Diagnostic>> {
    let mut merged = old.clone();
    let mut problems = Vec::new();
    for name in names {
        match upstream(old, new, name) {
            Some(name) => replace(&mut merged, new, &name),
            None => problems.push(unknown(old, new, name)),
        }
    }
    if problems.is_empty() {
        Ok(merged)
    } else {
        Err(problems)
    }
}

fn upstream(old: &LockedSource, new: &LockedSource, name: &str) -> Option<String> {
    let exposed = || old.exposed.iter().chain(&new.exposed);
    let hidden = || old.hidden.iter().chain(&new.hidden);
    let left_out = || old.left_out.iter().chain(&new.left_out);
    let by_server = exposed().any(|tool| tool.upstream_name == name)
        || hidden().any(|tool| tool.name == name)
        || left_out().any(|record| key_of(record).as_deref() == Some(name));
    if by_server {
        return Some(name.to_owned());
    }
    let by_alias = exposed().find(|tool| tool.exposed_name == name);
    by_alias.map(|tool| tool.upstream_name.clone())
}

fn unknown(old: &LockedSource, new: &LockedSource, name: &str) -> Diagnostic {
    let tools = old.exposed.iter().chain(&new.exposed);
    let mut known: Vec<&str> = tools.map(|tool| tool.upstream_name.as_str()).collect();
    known.sort_unstable();
    known.dedup();
    let message = format!(
        "`{}` has no tool `{}`, neither now nor in the lock",
        new.path,
        shown_line(name, 100)
    );
    let help = format!("Did you mean {}?", nearest([name].into_iter(), &known, 3));
    Diagnostic::error(DiagnosticCode::PathInvalid, message).help(help)
}

/// The key of a part that is left out, if it has a name.
fn key_of(record: &LeftOut) -> Option<String> {
    Some(record.kind.key(record.name.as_deref()?))
}

fn replace(merged: &mut LockedSource, new: &LockedSource, name: &str) {
    let is_it = |record: &LeftOut| key_of(record).as_deref() == Some(name);
    merged.left_out.retain(|record| !is_it(record));
    let records: Vec<_> = new
        .left_out
        .iter()
        .filter(|one| is_it(one))
        .cloned()
        .collect();
    merged.leave_out(records);
    let exposed = |source: &LockedSource| -> Option<LockedTool> {
        let mut tools = source.exposed.iter();
        tools.find(|tool| tool.upstream_name == name).cloned()
    };
    let hidden = |source: &LockedSource| -> Option<HiddenTool> {
        source.hidden.iter().find(|tool| tool.name == name).cloned()
    };
    let (before, now) = (
        (exposed(merged), hidden(merged)),
        (exposed(new), hidden(new)),
    );
    let what = match (&before, &now) {
        _ if before == now => "is unchanged",
        ((None, None), _) => "is new",
        (_, (None, None)) => "is gone",
        _ => "changed",
    };
    say(text!("{}: `{}` {}", new.path, shown_line(name, 100), what));
    merged.exposed.retain(|tool| tool.upstream_name != name);
    merged.hidden.retain(|tool| tool.name != name);
    merged.exposed.extend(now.0);
    merged.hidden.extend(now.1);
    merged
        .exposed
        .sort_by(|a, b| a.upstream_name.cmp(&b.upstream_name));
    merged.hidden.sort_by(|a, b| a.name.cmp(&b.name));
}

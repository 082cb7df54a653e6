//! The lock of merged sources: compared with the config of the merge, and checked as `lock` checks what it writes.

use std::collections::BTreeSet;
use std::path::Path;

use broker_audits_file::Violations;
use broker_build::{describe, lock_file, plan, settings};
use broker_config::{Config, Source};
use broker_mcp::ConcurrencyLimits;
use broker_model::lock::{LOCK_VERSION, Lock, LockedAccess, PARTIAL_LOCK_VERSION};
use broker_model::text::shell_word;
use broker_model::{Diagnostic, DiagnosticCode, LeftOutCode, NodePath};

use super::three_way::{Conflict, MergedSources, Sides};
use crate::cli::input::Input;
use crate::cli::lock::checks::{Context, MERGE_CHECKS};
use crate::cli::lock::draft::{Draft, LeftOutOf};

/// A merged lock.
#[derive(Debug)]
pub(in crate::cli) struct Settled {
    pub(in crate::cli) lock: Lock,
    /// Sources of a side that the config does not have.
    pub(in crate::cli) gone: Vec<NodePath>,
    /// The parts that the lock leaves out since names of both sides clash.
    pub(in crate::cli) left_out: Vec<(NodePath, LeftOutOf)>,
    /// The warnings of the checks.
    pub(in crate::cli) warnings: Vec<Diagnostic>,
}

/// Makes the lock of merged sources for this config. A conflict about a source that the config does not have is
/// settled by the config.
///
/// # Errors
///
/// Conflicts; sources whose config differs from both sides; errors of the config with these sources; parts that the
/// audits beside the config refuse.
pub(in crate::cli) fn settle(
    config: &Config,
    file: &Path,
    sides: &Sides<'_>,
    mut merged: MergedSources,
) -> Result<Settled, Vec<Diagnostic>> {
    let gone = remove_gone(config, &mut merged);
    let mut problems: Vec<_> = merged.conflicts.iter().map(conflict).collect();
    let conflicts: BTreeSet<_> = merged.conflicts.iter().map(|one| &one.path).collect();
    let others = config
        .sources()
        .filter(|one| !conflicts.contains(&one.path));
    problems.extend(others.filter_map(|source| not_of_config(config, source, &merged)));
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut draft = Draft {
        sources: merged.sources,
        left_out: merged.left_out,
        ..Draft::default()
    };
    let warnings = check(config, file, &mut draft)?;
    let left_out = std::mem::take(&mut draft.problems);
    let mut lock = draft.into_lock(config.digest(), config.access_digest());
    if lock.sources.iter().any(|one| one.settings.is_none()) {
        describe::describe(&mut lock, config);
    }
    lock.settle_version([sides.ours, sides.theirs]);
    refuse_violations(&lock, file)?;
    refuse_old_clashes(&lock, sides)?;
    plan::check_fresh(config, &lock)?;
    Ok(Settled {
        lock,
        gone,
        left_out,
        warnings,
    })
}

/// Makes the lock of merged sources if the config of the merge is not known, but is the config of the side `of_config`.
///
/// # Errors
///
/// Conflicts; sources of a lock of version 1, since only the config can describe them; access rules that no side
/// records; parts that the audits beside `file` refuse, if the name of the config is known.
pub(in crate::cli) fn settle_by_digest(
    of_config: &Lock,
    file: Option<&Path>,
    sides: &Sides<'_>,
    merged: MergedSources,
) -> Result<Lock, Vec<Diagnostic>> {
    if !merged.conflicts.is_empty() {
        return Err(merged.conflicts.iter().map(conflict).collect());
    }
    let draft = Draft {
        sources: merged.sources,
        left_out: merged.left_out,
        ..Draft::default()
    };
    let access = recorded_access(of_config, sides);
    let access_digest = match access {
        LockedAccess::Rules(digest) => Some(digest.clone()),
        LockedAccess::Absent | LockedAccess::NotRecorded => None,
    };
    let mut lock = draft.into_lock(of_config.config_digest.clone(), access_digest);
    lock.settle_version([sides.ours, sides.theirs]);
    // A lock of version 3 without the record would say that there are no rules.
    if lock.version == PARTIAL_LOCK_VERSION && access == LockedAccess::NotRecorded {
        let message = format!(
            "a side has format version {}, which does not record `access`, and the config of the merge is not known",
            of_config.version
        );
        return Err(vec![Diagnostic::error(
            DiagnosticCode::MergeConflict,
            message,
        )]);
    }
    let is_described =
        lock.version < LOCK_VERSION || lock.sources.iter().all(|source| source.settings.is_some());
    if !is_described {
        let message = "a side has format version 1, and the config of the merge is not known";
        return Err(vec![Diagnostic::error(
            DiagnosticCode::MergeConflict,
            message,
        )]);
    }
    if let Some(file) = file {
        refuse_violations(&lock, file)?;
    }
    refuse_old_clashes(&lock, sides)?;
    Ok(lock)
}

/// Refuses what the violations of the audits beside the config refuse. A merge keeps everything that the sides locked,
/// so it names the part and the command that leaves it out.
fn refuse_violations(lock: &Lock, file: &Path) -> Result<(), Vec<Diagnostic>> {
    let shown = file.to_string_lossy();
    let refused = Violations::check(&lock.sources, file, &shown);
    if refused.is_empty() {
        return Ok(());
    }
    let help = format!(
        "Run `broker-gen lock --merge --config {} --source PATH` with the path of its source: it leaves the part out.",
        shell_word(&shown)
    );
    let with_help = |problem: Diagnostic| match problem.code == DiagnosticCode::Violation {
        true => problem.help(help.as_str()),
        false => problem,
    };
    Err(refused.into_iter().map(with_help).collect())
}

/// The error for a conflict.
pub(in crate::cli) fn conflict(conflict: &Conflict) -> Diagnostic {
    let path = &conflict.path;
    let help = format!(
        "Lock it again with `broker-gen lock --merge --source {path}`, or take one side with `--ours {path}` or `--theirs {path}`."
    );
    Diagnostic::error(DiagnosticCode::MergeConflict, conflict.to_string()).help(help)
}

/// Removes the sources that the config does not have, with their conflicts; their paths.
pub(super) fn remove_gone(config: &Config, merged: &mut MergedSources) -> Vec<NodePath> {
    let is_there = |path: &NodePath| config.source(path).is_some();
    let all = merged.sources.iter().map(|one| &one.path);
    let all = all.chain(merged.left_out.iter().map(|one| &one.path));
    let all = all.chain(merged.conflicts.iter().map(|one| &one.path));
    let gone: BTreeSet<_> = all.filter(|path| !is_there(path)).cloned().collect();
    merged.sources.retain(|one| is_there(&one.path));
    merged.left_out.retain(|one| is_there(&one.path));
    merged.conflicts.retain(|one| is_there(&one.path));
    gone.into_iter().collect()
}

/// Returns the problem of a source whose config differs from the config of the merged state.
fn not_of_config(config: &Config, source: &Source, merged: &MergedSources) -> Option<Diagnostic> {
    let path = &source.path;
    let locked = merged.sources.iter().find(|one| one.path == *path);
    let left_out = merged.left_out.iter().find(|one| one.path == *path);
    let digest = locked
        .map(|one| &one.config_digest)
        .or(left_out.map(|one| &one.config_digest));
    let message = match digest {
        Some(digest) if *digest == source.digest() => return None,
        Some(_) => {
            let changes = locked.map(|locked| settings::shown_changes(config, source, locked));
            format!(
                "the config of the source `{path}` is not the one of the merged lock{}",
                changes.unwrap_or_default()
            )
        }
        None => format!("the config has the source `{path}`, and neither lock has it"),
    };
    let help = format!("Lock it too: `broker-gen lock --merge --source {path}`.");
    let problem = Diagnostic::error(DiagnosticCode::LockStale, message).help(help);
    Some(config.place(problem.at(&source.pointer)))
}

/// Repeats the checks that see several sources at once.
fn check(
    config: &Config,
    file: &Path,
    draft: &mut Draft,
) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let input = Input {
        config: config.clone(),
        lock_path: lock_file(file),
        specs: Vec::new(),
        unresolved: Vec::new(),
        concurrency: ConcurrencyLimits::new(),
    };
    let context = Context {
        input: &input,
        config_file: file,
        old: None,
        strict: false,
        names_sources: false,
        is_lock: true,
    };
    let mut warnings = Vec::new();
    for check in MERGE_CHECKS {
        let mut result = check.run(&context, draft);
        warnings.append(&mut result.warnings);
        draft.apply(check.name, result, config);
    }
    match std::mem::take(&mut draft.refused) {
        none if none.is_empty() => Ok(warnings),
        refused => Err(refused),
    }
}

/// Returns the record of a lock for the same config as `of_config` about its access rules.
fn recorded_access<'a>(of_config: &'a Lock, sides: &Sides<'a>) -> LockedAccess<'a> {
    let others = [Some(sides.ours), Some(sides.theirs), sides.base];
    let others = others.into_iter().flatten();
    let same = others.filter(|one| one.config_digest == of_config.config_digest);
    let mut records = same.map(Lock::access);
    let known = records.find(|access| *access != LockedAccess::NotRecorded);
    known.unwrap_or_else(|| of_config.access())
}

/// A name that clashed with one of another source may be free now, and no side has what was left out.
fn refuse_old_clashes(lock: &Lock, sides: &Sides<'_>) -> Result<(), Vec<Diagnostic>> {
    let is_of_a_side = [sides.ours, sides.theirs]
        .iter()
        .any(|side| side.sources == lock.sources && side.left_out == lock.left_out);
    let of_sides = [sides.ours, sides.theirs].map(Lock::left_out_parts);
    let parts = lock.left_out_parts();
    let old = parts.iter().filter(|part| {
        part.code == LeftOutCode::PathClash && of_sides.iter().any(|parts| parts.contains(part))
    });
    let sources: BTreeSet<_> = old.map(|part| part.source).collect();
    if is_of_a_side || sources.is_empty() {
        return Ok(());
    }
    let problem = |path: &&NodePath| {
        let message = format!(
            "a side leaves out tools of the source `{path}` whose names clashed, and the other side changed sources"
        );
        let help = format!("Lock it again with `broker-gen lock --merge --source {path}`.");
        Diagnostic::error(DiagnosticCode::MergeConflict, message).help(help)
    };
    Err(sources.iter().map(problem).collect())
}

//! A lock whose only fault is sources that are gone from the config. It is corrected without launching a source; the
//! other sources stay byte for byte.

use broker_build::plan;
use broker_model::lock::{LOCK_VERSION, Lock};
use broker_model::{DiagnosticCode, LeftOutCode, NodePath, text};

use super::checks::{CHECKS, Context};
use super::draft::Draft;
use crate::cli::LockArgs;
use crate::cli::input::Input;
use crate::cli::output::{self, say};

/// The lock without the sources that are gone, and their paths.
pub(super) struct Corrected {
    pub(super) lock: Lock,
    pub(super) gone: Vec<NodePath>,
}

/// Corrects the lock, if sources that are gone are its only fault and the rest passes every check that needs no
/// server. Otherwise the sources have to be launched.
pub(super) fn without_gone(args: &LockArgs, input: &Input, old: &Lock) -> Option<Corrected> {
    if !args.config.sources.is_empty() || args.pin {
        return None;
    }
    let problems = plan::check_fresh(&input.config, old).err()?;
    let is_gone = |code| code == DiagnosticCode::LockOrphan;
    if !problems.iter().all(|problem| is_gone(problem.code)) {
        return None;
    }
    let corrected = remove(input, old)?;
    passes(args, input, &corrected.lock).then_some(corrected)
}

fn remove(input: &Input, old: &Lock) -> Option<Corrected> {
    let config = &input.config;
    // A tool whose name clashed with one that is gone could be locked now, and the lock does not have it.
    let clashes = |lock: &Lock| {
        let parts = lock.left_out_parts();
        parts.iter().any(|part| part.code == LeftOutCode::PathClash)
    };
    let mut lock = old.clone();
    lock.sources
        .retain(|source| config.source(&source.path).is_some());
    lock.left_out
        .retain(|source| config.source(&source.path).is_some());
    let all = old.sources.iter().map(|source| &source.path);
    let all = all.chain(old.left_out.iter().map(|source| &source.path));
    let gone = all.filter(|path| config.source(path).is_none());
    let gone: Vec<_> = gone.cloned().collect();
    if clashes(&lock) || gone.is_empty() {
        return None;
    }
    lock.config_digest = config.digest();
    // A lock of version 1 keeps it: the other sources have no members of version 2.
    if old.version >= LOCK_VERSION {
        lock.access_digest = config.access_digest();
        lock.version = lock.new_version();
    }
    plan::check_fresh(config, &lock).ok()?;
    Some(Corrected { lock, gone })
}

/// Whether the checks leave out no other part. Their warnings are printed.
fn passes(args: &LockArgs, input: &Input, lock: &Lock) -> bool {
    let draft = Draft {
        sources: lock.sources.clone(),
        left_out: lock.left_out.clone(),
        ..Draft::default()
    };
    let context = Context {
        input,
        config_file: &args.config.file.config,
        old: None,
        strict: args.strict,
        names_sources: false,
        is_lock: true,
    };
    let mut warnings = Vec::new();
    for check in CHECKS {
        let result = check.run(&context, &draft);
        if !result.left_out.is_empty() || !result.refused.is_empty() {
            return false;
        }
        warnings.extend(result.warnings);
    }
    output::diagnostics(&warnings);
    true
}

/// Names the sources that are gone.
pub(super) fn report(gone: &[NodePath]) {
    for path in gone {
        say(text!(
            "{}: the config no longer has it, so the lock has not either",
            path
        ));
    }
    say(text!(
        "the other sources stay as they are locked; no source was launched"
    ));
}

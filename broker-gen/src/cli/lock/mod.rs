//! `lock`: launches the sources and writes the snapshots of what is sound into the lock. What is not sound is left
//! out, and shown with its reason and remedy.

use std::path::PathBuf;

use broker_audits_file::Violations;
use broker_build::left_out_audits::LeftOutAudits;
use broker_build::plan;
use broker_embed::Models;
use broker_model::exit::Exit;
use broker_model::lock::{Lock, LockedSource};
use broker_model::{Diagnostic, DiagnosticCode, NodePath};
use broker_review::provenance;

use super::input::Input;
use super::interrupts::{Interrupts, launching};
use super::output::{self, say};
use super::{LockArgs, vectors};

pub(super) mod args;
mod begin;
pub(super) mod checks;
mod client_file;
pub(super) mod draft;
mod gone;
mod launched;
pub(super) mod merge;
mod partial;
mod pin;
mod table;
mod write;

use checks::violations::take_refused;
use checks::{CHECKS, Context};
use draft::{CheckResult, Draft, LeftOutOf};
use launched::Listed;
use write::Before;

/// The result of a run.
struct Outcome {
    /// The lock of the file; `None` if it would only be written.
    lock: Option<Lock>,
    /// [`Exit::Partial`] if something is left out that no entry of the audits accepts.
    exit: Exit,
}

/// Runs the merge driver of git.
pub(super) fn merge_driver(files: &[PathBuf]) -> Exit {
    merge::driver::run(files)
}

/// Merges two locks or audits. Sources that `--source` names are launched.
pub(super) fn merge_sides(args: &LockArgs, interrupts: Interrupts) -> Exit {
    if args.config.sources.is_empty() {
        return merge::run(args);
    }
    match merge::before_launch(args) {
        Ok(merged) => launching(interrupts, run(args, Some(merged))),
        Err(problems) => output::diagnostics(&problems),
    }
}

/// Locks the sources. `merged` is the lock of both sides of a merge. Sources that are not launched are taken from it.
pub(super) async fn run(args: &LockArgs, merged: Option<Lock>) -> Exit {
    let locked = async {
        let mut input = Input::read(&args.config)?;
        let violations = Violations::read(&args.config.file.config)?;
        let shown = args.config.file.config.to_string_lossy();
        let refused = take_refused(&mut input, &violations, &shown);
        let mut input = pin::input_with_pins(args, input).await?;
        // With pins it was read again.
        take_refused(&mut input, &violations, &shown);
        if !args.tools.is_empty() {
            // The other tools of the source stay as they are locked, so all are hidden by one list.
            match &merged {
                Some(lock) => input.use_word_lists_of(lock),
                None => input.use_word_lists_of(&input.read_lock()?.lock),
            }
        }
        client_file::report(&input);
        // A model that cannot be used fails before anything is launched.
        let models = vectors::open(&input.config, &args.config.file.config)?;
        let outcome = lock(args, &input, refused, merged).await?;
        Ok::<_, Vec<Diagnostic>>((input, models, outcome))
    };
    match locked.await {
        Ok((input, models, outcome)) => match models.zip(outcome.lock) {
            Some((models, lock)) => outcome.exit.or(embed(args, &input, &models, &lock).await),
            None => outcome.exit,
        },
        Err(problems) => {
            let exit = output::diagnostics(&problems);
            say("the lock was not written");
            exit
        }
    }
}

/// Makes the missing vectors of a lock that was written.
async fn embed(args: &LockArgs, input: &Input, models: &Models, lock: &Lock) -> Exit {
    let config = &input.config;
    let made = match plan::plan(config, &lock.sources) {
        Ok(plan) => vectors::update(config, &plan, models, &args.config.file.config).await,
        Err(problems) => Err(problems),
    };
    made.map_or_else(|problems| output::diagnostics(&problems), |()| Exit::Ok)
}

/// Writes the lock of what is sound. `refused` has the sources that are not launched.
async fn lock(
    args: &LockArgs,
    input: &Input,
    refused: CheckResult,
    merged: Option<Lock>,
) -> Result<Outcome, Vec<Diagnostic>> {
    // An unreadable lock cannot be compared with.
    let needs_old = !args.config.sources.is_empty() && input.lock_path.exists();
    let before = Before::read(input, needs_old && merged.is_none())?;
    let old = merged.as_ref().or(before.lock.as_ref());
    if let Some(corrected) = old.and_then(|old| gone::without_gone(args, input, old)) {
        return correct(args, input, &before, corrected);
    }
    let mut draft = begin::begin(args, input, old)?;
    let of_tools = begin::one_source(args, input, old)?;
    let audits = LeftOutAudits::read(&args.config.file.config)?;
    check_command_line(args, input)?;

    output::diagnostics(&refused.warnings);
    draft.apply("violations", refused, &input.config);
    let listed = add_launched(args, input, old, of_tools.as_ref(), &mut draft).await?;
    run_checks(args, input, old, &mut draft);
    launched::report(input, &draft, &listed, old);
    refuse(args, &mut draft)?;
    let problems = std::mem::take(&mut draft.problems);
    let lock = write::lock_of(draft, input, old);
    finish(args, input, &before, lock, problems, &audits)
}

/// Launches the sources, and adds the sources that listed their tools to the draft. If only some tools of one source are
/// updated, `of_tools` is the lock of this source.
async fn add_launched(
    args: &LockArgs,
    input: &Input,
    old: Option<&Lock>,
    of_tools: Option<&LockedSource>,
    draft: &mut Draft,
) -> Result<Vec<Listed>, Vec<Diagnostic>> {
    for (path, problems) in &input.unresolved {
        let locked = old.and_then(|old| old.source(path.as_str()));
        let check = launched::unresolved(input, path, problems, locked);
        draft.apply("start", check, &input.config);
    }
    let mut listed = Vec::new();
    for result in launched::launch(args, input, old).await {
        let locked = old.and_then(|old| old.source(result.source.as_str()));
        let (source, mut check) = launched::take(input, result, locked).await;
        if of_tools.is_some() && source.is_some() {
            // The other tools stay as they are locked.
            check.left_out.retain(|one| one.is_of_tools(&args.tools));
        }
        match (source, of_tools) {
            (Some((new, line)), None) => {
                draft.add(new);
                listed.push(line);
            }
            (Some((new, line)), Some(old)) => {
                draft.add(partial::take(old, &new, &args.tools)?);
                listed.push(line);
            }
            // Without this source, no tool of `--tool` can be locked.
            (None, Some(_)) => {
                let problems = check.left_out.into_iter();
                return Err(problems.map(|one| one.problem).collect());
            }
            (None, None) => {}
        }
        output::diagnostics(&check.warnings);
        draft.apply("start", check, &input.config);
    }
    Ok(listed)
}

/// Runs the checks of the list on the draft.
fn run_checks(args: &LockArgs, input: &Input, old: Option<&Lock>, draft: &mut Draft) {
    let context = Context {
        input,
        config_file: &args.config.file.config,
        old,
        strict: args.strict,
        names_sources: !args.config.sources.is_empty(),
        is_lock: true,
    };
    for check in CHECKS {
        let result = check.run(&context, draft);
        output::diagnostics(&result.warnings);
        draft.apply(check.name, result, &input.config);
    }
}

/// Writes the lock and shows what it leaves out.
fn finish(
    args: &LockArgs,
    input: &Input,
    before: &Before,
    lock: Lock,
    mut problems: Vec<(NodePath, LeftOutOf)>,
    audits: &LeftOutAudits,
) -> Result<Outcome, Vec<Diagnostic>> {
    let config = &args.config.file.config;
    let written = write::write(lock, input, config, before, args.dry_run)?;
    problems.extend(written.left_out);
    let exit = table::show(&written.lock, &problems, audits, config);
    Ok(Outcome {
        lock: written.is_in_file.then_some(written.lock),
        exit,
    })
}

/// Writes the lock without the sources that are gone from the config.
fn correct(
    args: &LockArgs,
    input: &Input,
    before: &Before,
    corrected: gone::Corrected,
) -> Result<Outcome, Vec<Diagnostic>> {
    let audits = LeftOutAudits::read(&args.config.file.config)?;
    gone::report(&corrected.gone);
    finish(args, input, before, corrected.lock, Vec::new(), &audits)
}

/// Warns about commands and texts of the config, and refuses unpinned packages with `--strict`.
fn check_command_line(args: &LockArgs, input: &Input) -> Result<(), Vec<Diagnostic>> {
    let unpinned = provenance::unpinned(&input.config, input.launched(), args.strict);
    if unpinned.iter().any(Diagnostic::is_error) {
        return Err(unpinned);
    }
    output::diagnostics(&unpinned);
    let (_, literal_secrets) = input.config.compiled();
    output::diagnostics(&literal_secrets);
    output::diagnostics(&input.config.literal_secrets_in_commands());
    Ok(())
}

/// Returns the errors that prevent a lock: the errors of the config and of `access`; with `--all-or-nothing` every
/// reason why a part is left out; and these reasons as well if no source is left.
fn refuse(args: &LockArgs, draft: &mut Draft) -> Result<(), Vec<Diagnostic>> {
    let mut problems = std::mem::take(&mut draft.refused);
    let nothing_is_left = draft.sources.is_empty() && !draft.left_out.is_empty();
    if args.all_or_nothing || nothing_is_left || !problems.is_empty() {
        let reasons = std::mem::take(&mut draft.problems).into_iter();
        problems.extend(reasons.map(|(_, one)| one.problem));
    }
    if args.all_or_nothing {
        problems.extend(listed_left_out(draft, &problems));
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems),
    }
}

/// Returns one error for each source with left-out parts that no check named: the listing has them.
fn listed_left_out(draft: &Draft, problems: &[Diagnostic]) -> Vec<Diagnostic> {
    if !problems.is_empty() {
        return Vec::new();
    }
    let sources = draft.sources.iter();
    let parts = sources.flat_map(|source| source.left_out_parts());
    let problem = |part: broker_model::lock::LeftOutPart<'_>| {
        let message = format!("{} {}: {}", table::shown(&part), part.state(), part.reason);
        Diagnostic::error(DiagnosticCode::SourceFailed, message).help(part.code.remedy())
    };
    parts.map(problem).collect()
}

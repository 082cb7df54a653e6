//! `lock`: launches the sources and writes their snapshots into the lock if all checks pass.

use std::fs;
use std::path::Path;

use broker_drift::{BetweenLocks, Report, SeenPackage, access_lines};

use broker_embed::Models;
use broker_model::config::Source;
use broker_model::exit::Exit;
use broker_model::item::ItemKind;
use broker_model::lock::Package;
use broker_model::lock::{LOCK_VERSION, Lock, LockedSource, MAX_BYTES, MIN_LOCK_VERSION};
use broker_model::text::{counted, shown_line};
use broker_model::trust::HiddenBy;
use broker_model::{Diagnostic, DiagnosticCode, text};
use broker_process::ProcessSpec;

use super::input::Input;
use super::live::TooLarge;
use super::lock_diff::diff_locks;
use super::output::{self, say};
use super::snapshot_all::{Failure, SnapshotJob, SnapshotResult, snapshot_all};
use super::whole_file::write_whole;
use super::{
    LockArgs, access_args, access_diff, host_leaks, lint, live, partial, provenance, schemas,
    type_notes, vectors,
};
use crate::{hint_audits, plan, settings};

/// Maximum number of shown changes of access.
const MAX_ACCESS_LINES: usize = 40;
/// Maximum number of tools of one source that are named because their names are sensitive.
const MAX_NAMED_HIDDEN: usize = 200;

pub(super) async fn run(args: &LockArgs) -> Exit {
    let locked = async {
        let input = Input::read(&args.config)?;
        // A model that cannot be used fails before anything is launched.
        let models = vectors::open(&input.config, &args.config.file.config)?;
        let lock = lock(args, &input).await?;
        Ok::<_, Vec<Diagnostic>>((input, models, lock))
    };
    match locked.await {
        Ok((input, Some(models), Some(lock))) => embed(args, &input, &models, &lock).await,
        Ok(_) => Exit::Ok,
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

/// Writes the lock, and returns it; `None` if it would only be written.
async fn lock(args: &LockArgs, input: &Input) -> Result<Option<Lock>, Vec<Diagnostic>> {
    // The kept sources of the old lock are checked before anything is launched.
    let kept = if args.config.sources.is_empty() {
        Vec::new()
    } else {
        kept_sources(input)?
    };
    let of_tools = one_source(args, input)?;
    let unpinned = provenance::unpinned(&input.config, &input.specs, args.strict);
    if unpinned.iter().any(Diagnostic::is_error) {
        return Err(unpinned);
    }
    output::diagnostics(&unpinned);
    let (_, literal_secrets) = input.config.compiled();
    output::diagnostics(&literal_secrets);
    output::diagnostics(&input.config.literal_secrets_in_commands());

    let jobs = input.specs.iter().map(|spec| {
        let volatile = input
            .config
            .source(&spec.source)
            .map(|source| source.volatile.iter().cloned().collect());
        SnapshotJob {
            spec: spec.clone(),
            era: None,
            volatile: volatile.unwrap_or_default(),
            twice: !args.once,
        }
    });
    let results = snapshot_all(jobs.collect()).await;

    let mut problems = Vec::new();
    let mut sources = kept;
    for result in results {
        match take(input, result).await {
            Ok(new) => match &of_tools {
                Some(old) => match partial::take(old, &new, &args.tools) {
                    Ok(source) => sources.push(source),
                    Err(found) => problems.extend(found),
                },
                None => sources.push(new),
            },
            Err(problem) => problems.push(*problem),
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    problems.extend(schemas::refuse(&sources));
    problems.extend(schemas::check_examples(&input.config, &sources));
    problems.extend(access_args::check(&input.config, &sources));
    match plan::plan(&input.config, &sources) {
        Ok(plan) => {
            output::diagnostics(&plan.warnings);
            type_notes::say_notes(&crate::types::types(&plan).fallbacks);
            let file = &args.config.file.config;
            let shown = file.to_string_lossy();
            problems.extend(hint_audits::check(&input.config, &plan, file, &shown));
        }
        Err(found) => problems.extend(found),
    }
    let folder = args.config.file.config.parent().unwrap_or(Path::new(""));
    let (secrets, warnings): (Vec<_>, Vec<_>) = not_theirs(input, &sources, folder)
        .into_iter()
        .partition(Diagnostic::is_error);
    output::diagnostics(&warnings);
    // A finding shows its text, so secrets are masked first.
    if secrets.is_empty() {
        problems.extend(lint::before_lock(input, &sources, args));
    }
    problems.extend(secrets);
    if !problems.is_empty() {
        return Err(problems);
    }

    let mut lock = Lock {
        version: MIN_LOCK_VERSION,
        config_digest: input.config.digest(),
        generator: concat!("broker-gen ", env!("CARGO_PKG_VERSION")).to_owned(),
        sources,
    };
    let shown = input.lock_path.display();
    // An unreadable lock cannot be compared with.
    let old = input.read_lock().ok().map(|file| file.lock);
    let was_version_1 = old.as_ref().is_some_and(|old| old.version < LOCK_VERSION);
    if let Some(old) = &old
        && old.version == lock.version
        && old.root_digest() == lock.root_digest()
    {
        say(text!("{} is up to date", shown));
        return Ok(Some(lock));
    }
    lock.version = LOCK_VERSION;
    settings::describe(&mut lock, &input.config);
    let text = lock.to_text();
    if text.len() > MAX_BYTES {
        let message = format!(
            "the lock would have {} bytes; at most {MAX_BYTES} are read",
            text.len()
        );
        let help = "Hide tools with `tool_filter`, or lock fewer sources in one config.";
        return Err(vec![
            Diagnostic::error(DiagnosticCode::FileWrite, message).help(help),
        ]);
    }
    if broker_files::holds(&input.lock_path, text.as_bytes()) {
        say(text!("{} is up to date", shown));
        return Ok(Some(lock));
    }
    if let Some(old) = &old {
        output::diagnostics(&provenance::swapped(old, &lock.sources));
    }
    if args.dry_run {
        would_write(input, &lock);
        return Ok(None);
    }
    if let Some(old) = &old {
        say_access(input, old, &lock);
    }
    write_whole(&input.lock_path, text.as_bytes()).map_err(|error| {
        vec![Diagnostic::error(
            DiagnosticCode::FileWrite,
            format!("`{shown}` cannot be written: {error}"),
        )]
    })?;
    say(text!("wrote {}: review and commit it, then build", shown));
    if was_version_1 {
        say(text!(
            "note: the lock had format version 1 and has version {} now, so its lines moved; `broker-gen diff --baseline git:HEAD` shows what changed",
            LOCK_VERSION
        ));
    }
    Ok(Some(lock))
}

/// Who gains or loses what by the new lock.
fn say_access(input: &Input, old: &Lock, new: &Lock) {
    let mut report = Report::default();
    access_diff::add(&mut report, &input.config, &old.sources, &new.sources);
    for line in access_lines(&report.access, MAX_ACCESS_LINES) {
        say(text!("access: {}", line));
    }
}

/// The changes of a dry run, as a report on two locks.
fn would_write(input: &Input, lock: &Lock) {
    let shown = input.lock_path.display();
    let why = match fs::metadata(&input.lock_path) {
        Err(_) => ", which does not exist yet",
        Ok(_) => match input.read_lock() {
            Ok(old) => {
                let mut report = diff_locks(&old.lock, lock);
                let (old, new) = (&old.lock.sources, &lock.sources);
                access_diff::add_between_locks(&mut report, &input.config, old, new);
                output::data(&BetweenLocks(&report).text());
                ""
            }
            Err(_) => "; the existing one cannot be read, so it is not compared",
        },
    };
    say(text!("would write {}{}", shown, why));
}

/// With `--tool`: the one locked source of which single tools are taken.
fn one_source(args: &LockArgs, input: &Input) -> Result<Option<LockedSource>, Vec<Diagnostic>> {
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
    let lock = input.read_lock()?.lock;
    let source = input
        .config
        .source(&spec.source)
        .expect("only sources of the config are launched");
    Ok(Some(
        partial::locked_source(&lock, &input.config, source)?.clone(),
    ))
}

/// Host-specific values and secrets in the tools of the launched servers.
fn not_theirs(input: &Input, sources: &[LockedSource], folder: &Path) -> Vec<Diagnostic> {
    let here = host_leaks::values_of_this_host(folder);
    let asked = input.specs.iter().filter_map(|spec| {
        let locked = sources.iter().find(|one| one.path == spec.source)?;
        Some((locked, input.config.source(&spec.source)?, spec))
    });
    asked
        .flat_map(|(locked, source, spec)| {
            let given = host_leaks::values_of_source(source, spec);
            let all: Vec<_> = given.iter().chain(&here).collect();
            host_leaks::find(locked, &all)
        })
        .collect()
}

/// With `--source`, the other sources keep their locked form, which must match the config.
fn kept_sources(input: &Input) -> Result<Vec<LockedSource>, Vec<Diagnostic>> {
    let old = input.read_lock()?.lock;
    let asked = |path: &str| input.specs.iter().any(|spec| spec.source.as_str() == path);
    let mut problems = Vec::new();
    let mut kept = Vec::new();
    for source in input
        .config
        .sources()
        .filter(|source| !asked(source.path.as_str()))
    {
        match old.source(source.path.as_str()) {
            Some(locked) if locked.config_digest == source.digest() => kept.push(locked.clone()),
            other => {
                let changes =
                    other.map(|locked| settings::shown_changes(&input.config, source, locked));
                let message = format!(
                    "the config of the source `{}` has changed since it was locked, so the others cannot be locked alone{}",
                    source.path,
                    changes.unwrap_or_default()
                );
                let help = format!("Add `--source {}`, or lock all.", source.path);
                problems.push(Diagnostic::error(DiagnosticCode::LockStale, message).help(help));
            }
        }
    }
    if problems.is_empty() {
        Ok(kept)
    } else {
        Err(problems)
    }
}

/// The number of exposed tools, then that of each other kind that is exposed.
fn counted_kinds(locked: &LockedSource) -> String {
    let count = |kind| {
        let of_kind = locked.exposed.iter().filter(|tool| tool.kind() == kind);
        counted(of_kind.count(), kind.as_str())
    };
    let is_exposed = |kind: &ItemKind| locked.exposed.iter().any(|tool| tool.kind() == *kind);
    let others = ItemKind::PREFIXED.into_iter().filter(is_exposed);
    let all: Vec<String> = [ItemKind::Tool]
        .into_iter()
        .chain(others)
        .map(count)
        .collect();
    all.join(", ")
}

/// Reports the result of one source and returns its snapshot.
async fn take(input: &Input, result: SnapshotResult) -> Result<LockedSource, Box<Diagnostic>> {
    let (path, took) = (&result.source, result.took.as_secs_f64());
    let snapshot = match result.outcome {
        Ok(snapshot) => snapshot,
        Err(Failure::Source(failed)) => {
            let (notes, remedy) = failed.explained(input.spec(path));
            let message = format!("`{path}` failed after {took:.1} s: {}", failed.message());
            let problem = Diagnostic::error(DiagnosticCode::SourceFailed, message);
            let challenge = failed.failure.challenge.iter();
            let notes = challenge.map(|line| format!("    {line}")).chain(notes);
            return Err(Box::new(problem.notes(notes).help(remedy)));
        }
        Err(Failure::Unstable(pointers)) => {
            let message = format!(
                "two launches of `{path}` gave different answers at {}",
                shown_pointers(&pointers)
            );
            // Hiding the tools would not help: the lock has digests of hidden tools as well.
            let of_tools = |pointer: &String| {
                pointer
                    .strip_prefix("/tools/")
                    .is_some_and(|rest| rest.contains('/'))
            };
            let help = if pointers.iter().all(of_tools) {
                format!("Name them in `volatile` of `{path}`.")
            } else {
                "Make the server return the same values at every start; only members of tools can be `volatile`.".to_owned()
            };
            return Err(Box::new(
                Diagnostic::error(DiagnosticCode::SourceUnstable, message).help(help),
            ));
        }
    };
    let source = input
        .config
        .source(path)
        .expect("only sources of the config are asked");
    let mut locked = live::locked(source, snapshot, &input.concurrency)
        .await
        .map_err(|too_large| {
            let problem = Diagnostic::error(DiagnosticCode::SourceFailed, too_large.message());
            Box::new(problem.help(TooLarge::HELP))
        })?;
    let process = input.spec(path).and_then(|spec| spec.endpoint.process());
    locked.package = process.and_then(|process| package(source, process));
    let how = if process.is_some_and(|process| process.shell) {
        ", run by /bin/sh"
    } else {
        ""
    };
    let (hidden, revision) = (locked.hidden.len(), &locked.protocol_version);
    say(text!(
        "{}: {} exposed, {} hidden (MCP {}, {} s{})",
        path,
        counted_kinds(&locked),
        hidden,
        revision,
        format!("{took:.1}"),
        how
    ));
    if let Some(package) = &locked.package {
        say(text!("{}: runs the {}", path, package));
    }
    say_sensitive(source, &locked);
    Ok(locked)
}

/// The tools that are hidden only because their names are sensitive.
fn say_sensitive(source: &Source, locked: &LockedSource) {
    let hidden = locked.hidden.iter().filter_map(|tool| {
        let by = source.exposure.hidden_by(&tool.name)?;
        matches!(by, HiddenBy::Word(_)).then_some((&tool.name, by))
    });
    let hidden: Vec<_> = hidden.collect();
    for (name, by) in hidden.iter().take(MAX_NAMED_HIDDEN) {
        say(text!(
            "{}: `{}` is {}",
            source.path,
            shown_line(name, 100),
            by
        ));
    }
    if hidden.is_empty() {
        return;
    }
    if let Some(more @ 1..) = hidden.len().checked_sub(MAX_NAMED_HIDDEN) {
        say(text!(
            "{}: and {} for such a word; `broker-gen tree --hidden` shows all of a lock",
            source.path,
            counted(more, "more tool")
        ));
    }
    let beside = match source.exposure.filter().has_positive() {
        true => "",
        // A filter whose only pattern is a name exposes nothing else.
        false => ", beside `*` for the other tools",
    };
    say(text!(
        "{}: to expose such a tool, write its name in `tool_filter`{}",
        source.path,
        beside
    ));
}

/// The package that a source ran. One that cannot be inspected does not fail the lock.
fn package(source: &Source, process: &ProcessSpec) -> Option<Package> {
    match provenance::look(source, process) {
        SeenPackage::Found(package) => Some(package),
        SeenPackage::Nothing => None,
        SeenPackage::Unseen(why) => {
            output::diagnostics(provenance::unseen(source, process, &why).as_slice());
            None
        }
    }
}

fn shown_pointers(pointers: &[String]) -> String {
    let shown: Vec<_> = pointers
        .iter()
        .take(5)
        .map(|pointer| format!("`{}`", broker_model::text::shown_line(pointer, 200)))
        .collect();
    match pointers.len().saturating_sub(5) {
        0 => shown.join(", "),
        more => format!("{} and {more} more places", shown.join(", ")),
    }
}

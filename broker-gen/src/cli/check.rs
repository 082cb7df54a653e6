//! `check`: the live sources against the lock. Never writes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use broker_build::build_script::checked_plan;
use broker_build::{lock_file, plan};
use broker_config::Config;
use broker_drift::{Class, LintResult, Report};
use broker_mcp::{EraHint, SourceSpec};
use broker_model::exit::Exit;
use broker_model::lock::{Lock, LockedSource};
use broker_model::public_names::PublicNames;
use broker_model::redact::Redactor;
use broker_model::{Diagnostic, DiagnosticCode, LeftOutCode, NodePath, SourceCause, text};
use broker_review::lock_diff::{access, left_out};
use broker_review::lock_file::LockFile;
use broker_review::report::{Problems, ReportView, Sides};
use broker_review::{dates, lint_report, lock_diff, provenance};
use broker_wire::Era;

use super::input::Input;
use super::lock::checks::{CHECKS, Context};
use super::lock::draft::Draft;
use super::report::{ReportArgs, show};
use super::{ConfigArgs, output};
use crate::cli::launch::live::{self, TooLarge};
use crate::cli::launch::snapshot_all::{Failure, SnapshotJob, snapshot_all};

pub(super) async fn run(args: &ConfigArgs, form: &ReportArgs) -> Exit {
    if let Err(exit) = form.make_folders() {
        return exit;
    }
    let config = &args.file.config;
    match checked(args, form.strict).await {
        Ok(mut outcome) => {
            if form.strict {
                outcome.report.strict();
            }
            let exit = form.deliver(&ReportView {
                report: &outcome.report,
                problems: &outcome.problems,
                linted: &outcome.linted,
                sides: Sides::Live,
                asked: Some(&outcome.asked),
                locked: &outcome.lock.sources,
                lock_path: &outcome.lock_path,
                config,
                lock_text: &outcome.lock_text,
            });
            // A check without sources must not succeed.
            match outcome.asked.is_empty() {
                true => exit.or(Exit::Unchecked),
                false => exit,
            }
        }
        Err(problems) => form.deliver_problems(&problems, Sides::Live, config, &lock_file(config)),
    }
}

/// The outcome of a check.
struct CheckOutcome {
    report: Report,
    /// The errors of the config itself.
    problems: Problems,
    linted: Vec<LintResult>,
    /// The checked sources.
    asked: Vec<NodePath>,
    lock: Arc<Lock>,
    lock_text: String,
    lock_path: PathBuf,
}

async fn checked(args: &ConfigArgs, strict: bool) -> Result<CheckOutcome, Vec<Diagnostic>> {
    let mut input = Input::read(args)?;
    let LockFile { lock, text } = input.read_lock()?;
    input.use_word_lists_of(&lock);
    let lock = Arc::new(lock);
    let file = &args.file.config;
    let mut problems = Problems::none();
    let is_stale = match plan::check_fresh(&input.config, &lock) {
        Ok(()) => {
            let plan = checked_plan(&input.config, &lock, file, &file.to_string_lossy())?;
            output::diagnostics(&plan.warnings);
            false
        }
        // The servers are compared nevertheless: their differences are what a reviewer of the new config needs.
        Err(stale) => {
            show(&mut problems, &stale);
            true
        }
    };
    show(
        &mut problems,
        &provenance::unpinned(&input.config, input.launched(), strict),
    );
    let job = |spec: SourceSpec| SnapshotJob {
        era: era(&input.config, &lock, &spec.source),
        spec,
        volatile: Vec::new(),
        twice: false,
    };
    let specs = input.specs.iter();
    let redactor = specs.fold(Redactor::default(), |known, spec| {
        known.merge(&spec.redactor)
    });
    // A source that was never locked, or that a violation refuses, is not compared unless it is named.
    let is_compared = |spec: &&SourceSpec| {
        let left_out = lock.left_out_source(&spec.source);
        !args.sources.is_empty()
            || left_out.is_none_or(|known| {
                ![LeftOutCode::NotLocked, LeftOutCode::Violation].contains(&known.code)
            })
    };
    let jobs: Vec<_> = input
        .specs
        .iter()
        .filter(is_compared)
        .cloned()
        .map(job)
        .collect();
    if jobs.is_empty() {
        output::diagnostics(&[Diagnostic::warning(
            DiagnosticCode::SourceFailed,
            "the config has no source, so nothing was checked",
        )]);
    }
    let mut report = Report::default();
    let mut answered = Vec::new();
    // The locked form of the live source: the lint reads the current texts, even without drift.
    let mut sources = lock.sources.clone();
    let specs = jobs.iter().map(|job| &job.spec);
    let asked: Vec<_> = specs.map(|spec| spec.source.clone()).collect();
    for (path, found) in &input.unresolved {
        match is_known_not_to_start(&lock, path) {
            true => output::say(text!("{}: not started, as when it was locked", path)),
            false => report.merge(unresolved(path, found)),
        }
    }
    for answer in snapshot_all(jobs).await {
        let snapshot = match answer.outcome {
            Ok(snapshot) => snapshot,
            Err(Failure::Source(_)) if is_known_not_to_start(&lock, &answer.source) => {
                output::say(text!(
                    "{}: not started, as when it was locked",
                    answer.source
                ));
                continue;
            }
            Err(Failure::Source(failed)) => {
                let (notes, remedy) = failed.explained(input.spec(&answer.source));
                let cause = failed.failure.cause;
                let mut found =
                    broker_drift::unchecked(&answer.source, cause, &failed.message(), &notes);
                found.set_remedy(&remedy);
                report.merge(found);
                continue;
            }
            // A check launches each source once.
            Err(Failure::Unstable(_)) => continue,
        };
        for warning in &snapshot.warnings {
            output::say(text!("{}: warning: {}", answer.source, warning));
        }
        answered.push(answer.source.clone());
        let Some(source) = input.config.source(&answer.source) else {
            continue;
        };
        let Some(locked) = lock.source(answer.source.as_str()) else {
            match live::locked(source, snapshot, &input.concurrency).await {
                Ok(live) => {
                    if lock.left_out_source(&answer.source).is_none() {
                        report.merge(lock_diff::compare_config(&input.config, None, &live));
                    }
                    sources.push(live);
                }
                Err(too_large) => show(&mut problems, &[unlinted(&too_large)]),
            }
            continue;
        };
        let Some((mut found, live)) =
            live::compared(source, &lock, snapshot, &input.concurrency).await
        else {
            continue;
        };
        match live {
            Ok(live) => {
                found.merge(lock_diff::compare_config(
                    &input.config,
                    Some(locked),
                    &live,
                ));
                sources.retain(|one| one.path != answer.source);
                sources.push(live);
            }
            Err(too_large) => show(&mut problems, &[unlinted(&too_large)]),
        }
        let spec = input.spec(&answer.source);
        let is_known = locked.kept == Some(LeftOutCode::PackageChanged);
        if let Some(process) = spec.and_then(|spec| spec.endpoint.process())
            && !is_known
        {
            found.add_package(locked, &provenance::look(source, process));
        }
        report.merge(found);
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    let draft = draft_of(&input, file, &lock, sources.clone(), strict);
    for source in &answered {
        let changes = left_out::describe_changes(&lock, (&draft.sources, &draft.left_out), source);
        report.merge(broker_drift::left_out_changed(source, &changes));
        // The classifier takes a part that is only counted for a new one.
        let counted = left_out::counted(&lock, &draft.sources, source);
        let is_counted = |of: &NodePath, key: &str| of == source && counted.contains(key);
        report
            .tools
            .retain(|tool| tool.class != Class::Added || !is_counted(&tool.source, &tool.tool));
        for one in &mut sources {
            let path = &one.path;
            one.exposed
                .retain(|tool| !is_counted(path, &tool.upstream_name));
        }
    }
    without_left_out(&mut sources, &lock);
    if is_stale {
        report.merge(lock_diff::raised_levels(&input.config, &lock, &answered));
    }
    broker_drift::name_moves(&mut report);
    dates::name_volatile(&mut report);
    let mut names = PublicNames::from_lock(&lock);
    names.extend(input.config.public_names());
    report.mask(&redactor, names.clone());
    report.name_config(&args.file.config.to_string_lossy());
    access::add(&mut report, &input.config, &lock.sources, &sources);
    let mut linted =
        lint_report::live_findings(&sources, &args.file.config, (&redactor, &names), strict)?;
    linted.retain(|one| {
        asked.contains(&one.source) && (lint_report::has_errors(one) || is_news(one, &lock))
    });
    lint_report::raise(&mut report, &linted, &lock.sources);
    Ok(CheckOutcome {
        report,
        problems,
        linted,
        asked,
        lock_path: input.lock_path,
        lock,
        lock_text: text,
    })
}

/// The report on a source that cannot be launched here, since a variable is not set.
fn unresolved(source: &NodePath, problems: &[Diagnostic]) -> Report {
    let messages: Vec<_> = problems.iter().map(Diagnostic::whole_message).collect();
    broker_drift::unchecked(source, SourceCause::EnvMissing, &messages.join("; "), &[])
}

/// Removes the parts that the lock leaves out: callers do not get them, so their access is not compared and their texts
/// are not linted.
fn without_left_out(sources: &mut Vec<LockedSource>, lock: &Lock) {
    sources.retain(|source| lock.left_out_source(&source.path).is_none());
    for source in sources {
        let Some(locked) = lock.source(source.path.as_str()) else {
            continue;
        };
        let names = locked.left_out.iter();
        let names = names.filter_map(|one| Some(one.kind.key(one.name.as_deref()?)));
        let names: BTreeSet<String> = names.collect();
        source
            .exposed
            .retain(|tool| !names.contains(&tool.upstream_name));
    }
}

/// The era of the locked revision. If the config of the source has changed since, its server may be another one.
fn era(config: &Config, lock: &Lock, path: &NodePath) -> EraHint {
    let Some(locked) = lock.source(path.as_str()) else {
        return EraHint::default();
    };
    let is_current = config
        .source(path)
        .is_some_and(|source| source.digest() == locked.config_digest);
    match Era::from_revision(&locked.protocol_version) {
        Some(era) if is_current => EraHint::known(era),
        Some(era) => EraHint::likely(era),
        None => EraHint::default(),
    }
}

/// Whether the lock says that the source does not start.
fn is_known_not_to_start(lock: &Lock, source: &NodePath) -> bool {
    let left_out = lock.left_out_source(source).map(|known| known.code);
    let kept = lock.source(source.as_str()).and_then(|locked| locked.kept);
    left_out.or(kept) == Some(LeftOutCode::NotStarted)
}

/// The live sources without the parts that a new lock would leave out.
fn draft_of(
    input: &Input,
    config_file: &Path,
    lock: &Lock,
    sources: Vec<LockedSource>,
    strict: bool,
) -> Draft {
    let mut draft = Draft {
        sources,
        ..Draft::default()
    };
    let context = Context {
        input,
        config_file,
        old: Some(lock),
        strict,
        names_sources: false,
        is_lock: false,
    };
    for check in CHECKS.iter().filter(|check| check.is_of_listing) {
        let result = check.run(&context, &draft);
        draft.apply(check.name, result, &input.config);
    }
    draft
}

/// Texts of a source that no lock could hold are not linted.
fn unlinted(too_large: &TooLarge) -> Diagnostic {
    let message = format!("{}, so its texts were not linted", too_large.message());
    Diagnostic::error(DiagnosticCode::SourceFailed, message).help(TooLarge::HELP)
}

/// Whether the lock has other bytes of it. Warnings about reviewed bytes were given when they were locked.
fn is_news(one: &LintResult, lock: &Lock) -> bool {
    let known = lock.source(one.source.as_str()).is_some_and(|source| {
        let mut tools = source.exposed.iter();
        match &one.tool {
            Some(_) => tools.any(|tool| tool.digest == one.digest),
            None => source.own_digest() == one.digest,
        }
    });
    !known
}

//! `check`: the live sources against the lock. Never writes.

use std::path::PathBuf;
use std::sync::Arc;

use broker_drift::{LintResult, Report};
use broker_mcp::SourceSpec;
use broker_model::exit::Exit;
use broker_model::lock::Lock;
use broker_model::redact::Redactor;
use broker_model::{Diagnostic, DiagnosticCode, NodePath};
use broker_wire::Era;

use super::input::{Input, LockFile};
use super::live::{self, TooLarge};
use super::lock_diff::raised_levels;
use super::report::{ReportArgs, ReportView, Sides};
use super::snapshot_all::{Failure, SnapshotJob, snapshot_all};
use super::{ConfigArgs, access_diff, lint, output, provenance};
use crate::build_script::checked_plan;
use crate::plan;

pub(super) async fn run(args: &ConfigArgs, form: &ReportArgs) -> Exit {
    match checked(args, form.strict).await {
        Ok(CheckOutcome {
            mut report,
            linted,
            asked,
            lock,
            lock_text,
            lock_path,
            refused,
        }) => {
            if form.strict {
                report.strict();
            }
            let exit = form.deliver(&ReportView {
                report: &report,
                linted: &linted,
                sides: Sides::Live,
                asked: Some(&asked),
                lock: &lock,
                lock_path: &lock_path,
                config: &args.file.config,
                lock_text: &lock_text,
            });
            // A check without sources must not succeed.
            if asked.is_empty() {
                exit.or(refused).or(Exit::Unchecked)
            } else {
                exit.or(refused)
            }
        }
        Err(problems) => output::diagnostics(&problems),
    }
}

/// The outcome of a check.
struct CheckOutcome {
    report: Report,
    linted: Vec<LintResult>,
    /// The checked sources.
    asked: Vec<NodePath>,
    lock: Arc<Lock>,
    lock_text: String,
    lock_path: PathBuf,
    /// The exit that the config itself asks for.
    refused: Exit,
}

async fn checked(args: &ConfigArgs, strict: bool) -> Result<CheckOutcome, Vec<Diagnostic>> {
    let input = Input::read(args)?;
    let LockFile { lock, text } = input.read_lock()?;
    let lock = Arc::new(lock);
    if let Err(stale) = plan::check_fresh(&input.config, &lock) {
        let mut report = raised_levels(&input.config, &lock);
        if report.sources.is_empty() {
            return Err(stale);
        }
        report.name_config(&args.file.config.to_string_lossy());
        // No server is compared with a stale lock.
        return Ok(CheckOutcome {
            report,
            linted: Vec::new(),
            asked: Vec::new(),
            refused: output::diagnostics(&stale),
            lock_path: input.lock_path,
            lock,
            lock_text: text,
        });
    }
    let file = &args.file.config;
    let plan = checked_plan(&input.config, &lock, file, &file.to_string_lossy())?;
    output::diagnostics(&plan.warnings);
    let unpinned = provenance::unpinned(&input.config, &input.specs, strict);
    let mut refused = output::diagnostics(&unpinned);
    let job = |spec: SourceSpec| {
        let revision = lock
            .source(spec.source.as_str())
            .map(|locked| locked.protocol_version.as_str());
        SnapshotJob {
            era: revision.and_then(Era::of_revision),
            spec,
            volatile: Vec::new(),
            twice: false,
        }
    };
    let specs = input.specs.iter();
    let redactor = specs.fold(Redactor::default(), |known, spec| {
        known.merge(&spec.redactor)
    });
    let jobs: Vec<_> = input.specs.iter().cloned().map(job).collect();
    if jobs.is_empty() {
        output::diagnostics(&[Diagnostic::warning(
            DiagnosticCode::SourceFailed,
            "the config has no source, so nothing was checked",
        )]);
    }
    let mut report = Report::default();
    // The locked form of the live source: the lint reads the current texts, even without drift.
    let mut sources = lock.sources.clone();
    let specs = jobs.iter().map(|job| &job.spec);
    let asked: Vec<_> = specs.map(|spec| spec.source.clone()).collect();
    for answer in snapshot_all(jobs).await {
        let snapshot = match answer.outcome {
            Ok(snapshot) => snapshot,
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
        // A fresh lock has every source of the config.
        let both = input.config.source(&answer.source);
        let Some((source, locked)) = both.zip(lock.source(answer.source.as_str())) else {
            continue;
        };
        let Some((mut found, live)) =
            live::compared(source, &lock, snapshot, &input.concurrency).await
        else {
            continue;
        };
        match live {
            Ok(live) => {
                sources.retain(|one| one.path != answer.source);
                sources.push(live);
            }
            Err(too_large) => refused = refused.or(output::diagnostics(&[unlinted(&too_large)])),
        }
        let spec = input.spec(&answer.source);
        if let Some(process) = spec.and_then(|spec| spec.endpoint.process()) {
            found.add_package(locked, &provenance::look(source, process));
        }
        report.merge(found);
    }
    broker_drift::name_moves(&mut report);
    report.mask(&redactor);
    report.name_config(&args.file.config.to_string_lossy());
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    access_diff::add(&mut report, &input.config, &lock.sources, &sources);
    let mut linted = lint::of_sources(&sources, &args.file.config, &redactor, strict)?;
    linted.retain(|one| {
        asked.contains(&one.source) && (lint::has_errors(one) || is_news(one, &lock))
    });
    Ok(CheckOutcome {
        report,
        linted,
        asked,
        lock_path: input.lock_path,
        lock,
        lock_text: text,
        refused,
    })
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

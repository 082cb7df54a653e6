//! `doctor`: starts every source once and reports what is wrong with it, with or without a lock. Never
//! writes.

use std::sync::Arc;

use broker_config::Source;
use broker_core::{ExamResult, StartedSource, ToolComparison};
use broker_doctor::Diagnosis;
use broker_drift::{Class, Report};
use broker_mcp::{ServerExam, SourceFailure, SourceSpec};
use broker_model::exit::Exit;
use broker_model::lock::Lock;
use broker_model::public_names::PublicNames;
use broker_model::snapshot::Snapshot;
use broker_model::terminal::Text;
use broker_model::text::shell_word;
use broker_model::{Diagnostic, DiagnosticCode, SourceCause, text};
use broker_process::StderrTail;
use broker_review::lock_file::read_lock;
use broker_wire::Era;
use clap::Args;

use super::input::Selection;
use super::output::{self, say};
use super::{ConfigArgs, Format};
use crate::cli::launch::launch_all::{launch_all, resume};

/// The command of this file, for remedies.
pub(super) const COMMAND: &str = "broker-gen doctor";

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// The format of the diagnosis on standard output.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

pub(super) async fn run(args: &DoctorArgs) -> Exit {
    let mut selection = match Selection::read(&args.config) {
        Ok((selection, problems)) if problems.is_empty() => selection,
        Ok((_, problems)) | Err(problems) => return output::diagnostics(&problems),
    };
    let config = &args.config.file.config;
    let lock = lock_of(&mut selection, &shell_word(&config.to_string_lossy()));
    let lock = Arc::new(lock);
    let mut jobs = Vec::new();
    let mut all = Vec::new();
    for (path, spec) in selection.specs {
        let source = selection.config.source(&path);
        let source = source
            .expect("only sources of the config are selected")
            .clone();
        let mut examined = ExamResult {
            path: path.as_str().to_owned(),
            required: source.required,
            locked_revision: revision(&lock, &source).map(str::to_owned),
            outcome: Err(Vec::new()),
        };
        match spec {
            Ok(spec) => jobs.push((all.len(), source, spec)),
            Err(problems) => examined.outcome = Err(problems),
        }
        all.push(examined);
    }
    let places: Vec<_> = jobs
        .iter()
        .map(|(at, _, spec)| (*at, spec.clone()))
        .collect();
    let name = config.to_string_lossy().into_owned();
    let examined = launch_all(
        jobs,
        |(_, _, spec)| spec,
        |(_, source, spec), tail| examine(source, spec, Arc::clone(&lock), name.clone(), tail),
    );
    for ((at, spec), started) in places.into_iter().zip(examined.await) {
        // A failed task must not drop its source silently.
        all[at].outcome = Ok(started.unwrap_or_else(|| StartedSource::new(spec, lost(), None)));
    }
    let shown = config.display().to_string();
    let all: Vec<_> = all
        .into_iter()
        .map(|one| Diagnosis::new(one, &shown, COMMAND))
        .collect();
    match args.format {
        Format::Human => output::data(&broker_doctor::human(&all)),
        Format::Json => output::document(&Text::json(&broker_doctor::json(&all, None))),
    }
    if broker_doctor::attention(&all) == 0 {
        Exit::Ok
    } else {
        Exit::Failure
    }
}

/// Returns the lock without the sources whose config has changed since; reports the tools that are not compared.
fn lock_of(selection: &mut Selection, config: &str) -> Option<Lock> {
    if !selection.lock_path.exists() {
        say(text!(
            "note: {} does not exist, so the tools are not compared with a lock",
            selection.lock_path.display()
        ));
        return None;
    }
    let mut lock = match read_lock(&selection.lock_path) {
        Ok(file) => file.lock,
        Err(problems) => {
            output::diagnostics(&problems);
            say("note: the tools are not compared with the lock, which cannot be read");
            return None;
        }
    };
    selection.use_word_lists_of(&lock);
    for (path, _) in &selection.specs {
        let source = selection.config.source(path);
        let locked = lock.source(path.as_str());
        let is_current = source
            .zip(locked)
            .is_some_and(|(source, locked)| locked.config_digest == source.digest());
        if !is_current {
            let why = match locked {
                Some(_) => {
                    format!("the config of the source `{path}` has changed since it was locked")
                }
                None => format!("the source `{path}` is not in the lock"),
            };
            let message = format!("{why}, so its tools are not compared");
            let help = format!("Run `broker-gen lock --config {config}`, and review the lock.");
            let stale = Diagnostic::warning(DiagnosticCode::LockStale, message);
            output::diagnostics(&[stale.help(help)]);
            lock.sources.retain(|source| source.path != *path);
        }
    }
    Some(lock)
}

fn revision<'a>(lock: &'a Option<Lock>, source: &Source) -> Option<&'a str> {
    let locked = lock.as_ref()?.source(source.path.as_str())?;
    Some(&locked.protocol_version)
}

async fn examine(
    source: Source,
    spec: SourceSpec,
    lock: Arc<Option<Lock>>,
    config: String,
    tail: StderrTail,
) -> StartedSource {
    let era = revision(&lock, &source).and_then(Era::from_revision);
    let exam = ServerExam::run(&spec, era, &tail).await;
    let redactor = spec.redactor.clone();
    let compared = spec.concurrency.parse_aside(move || {
        let listed = exam.outcome.as_ref().ok();
        let mut tools = listed.map(|(_, snapshot)| tools_of(&source, snapshot, (*lock).as_ref()));
        if let Some(tools) = &mut tools {
            let locked = (*lock)
                .as_ref()
                .and_then(|lock| lock.source(source.path.as_str()));
            let names = locked.map(PublicNames::from_source).unwrap_or_default();
            tools.report.mask(&redactor, names);
            tools.report.name_config(&config);
        }
        (exam, tools)
    });
    let (exam, tools) = compared.await.unwrap_or_else(resume);
    StartedSource::new(spec, exam, tools)
}

/// The tools that a source listed, compared with the lock if it has the source.
fn tools_of(source: &Source, snapshot: &Snapshot, lock: Option<&Lock>) -> ToolComparison {
    let listed = snapshot.tools.len();
    let admitted = snapshot.tools.iter();
    let admitted = admitted
        .filter(|tool| source.exposure.exposes(tool.name()))
        .count();
    let locked = lock.and_then(|lock| lock.source(source.path.as_str()));
    let Some(locked) = locked else {
        return ToolComparison {
            listed,
            exposed: admitted,
            hidden: listed - admitted,
            withdrawn: 0,
            report: Report::default(),
            notes: ToolComparison::notes_on(snapshot, &source.exposure),
        };
    };
    let report = broker_drift::classify(locked, snapshot, &source.exposure);
    let withdraws = |class: Class| class.withdraws();
    let withdrawn = if report.sources.iter().any(|one| withdraws(one.class)) {
        locked.exposed.len()
    } else {
        report
            .tools
            .iter()
            .filter(|one| withdraws(one.class))
            .count()
    };
    ToolComparison {
        listed,
        exposed: locked.exposed.len() - withdrawn,
        hidden: listed - admitted,
        withdrawn,
        report,
        notes: ToolComparison::notes_on(snapshot, &source.exposure),
    }
}

/// The exam of a source whose task failed.
fn lost() -> ServerExam {
    let failure = SourceFailure::new(SourceCause::ListFailed, "broker-gen failed meanwhile");
    ServerExam {
        outcome: Err(failure),
        took: std::time::Duration::ZERO,
        carrier: None,
        url_path: None,
        noise_lines: 0,
        noise: Vec::new(),
        invalid_utf8_lines: 0,
        stderr: Vec::new(),
        ending: None,
    }
}

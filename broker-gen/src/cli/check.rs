//! `check`: the live sources against the lock. Never writes.

use broker_model::drift::{self, Report};
use broker_model::exit::Exit;
use broker_model::mcp::Era;
use broker_model::redact::Redactor;
use broker_model::{Diagnostic, DiagnosticCode};

use super::input::Input;
use super::survey::{Failure, Question, survey};
use super::{ConfigArgs, Format, output};
use crate::plan;

pub(super) async fn run(args: &ConfigArgs, format: Format) -> Exit {
    match report(args).await {
        Ok((report, asked)) => {
            match format {
                Format::Human => output::data(&report),
                Format::Json => output::data_json(&report.to_json()),
            }
            // A check that looked at nothing is no success.
            let nothing = if asked == 0 {
                Exit::Unchecked
            } else {
                Exit::Ok
            };
            Exit::of_report(&report).or(nothing)
        }
        Err(problems) => output::diagnostics(&problems),
    }
}

/// The report, and how many sources were asked for it.
async fn report(args: &ConfigArgs) -> Result<(Report, usize), Vec<Diagnostic>> {
    let input = Input::read(args)?;
    let lock = input.read_lock()?;
    plan::check_fresh(&input.config, &lock)?;
    let plan = plan::plan(&input.config, &lock.sources)?;
    output::diagnostics(&plan.warnings);
    let question = |launch: broker_mcp::Launch| {
        let revision = lock
            .source(launch.source.as_str())
            .map(|locked| locked.protocol_version.as_str());
        Question {
            era: revision.and_then(Era::of_revision),
            launch,
            volatile: Vec::new(),
            twice: false,
        }
    };
    let launches = input.launches.iter();
    let redactor = launches.fold(Redactor::default(), |known, launch| {
        known.merge(&launch.redactor)
    });
    let questions: Vec<_> = input.launches.into_iter().map(question).collect();
    if questions.is_empty() {
        output::diagnostics(&[Diagnostic::warning(
            DiagnosticCode::SourceFailed,
            "the config has no source, so nothing was checked",
        )]);
    }
    let (mut report, asked) = (Report::default(), questions.len());
    for answer in survey(questions).await {
        let both = input
            .config
            .source(&answer.source)
            .zip(lock.source(answer.source.as_str()));
        report.merge(match (&answer.outcome, both) {
            (Ok(snapshot), Some((source, locked))) => {
                drift::classify(locked, snapshot, &source.filter)
            }
            (Err(Failure::Source(failure)), _) => {
                drift::unchecked(&answer.source, failure.cause, &with_stderr(failure))
            }
            // Fresh locks have every source of the config, and a check asks once.
            (Ok(_), None) | (Err(Failure::Unstable(_)), _) => Report::default(),
        });
    }
    drift::name_moves(&mut report);
    report.mask(&redactor);
    report.name_config(&args.file.config.to_string_lossy());
    Ok((report, asked))
}

/// What went wrong, and the last things that the server said, each once.
pub(super) fn with_stderr(failure: &broker_mcp::SourceFailure) -> String {
    let mut message = format!("{}: {}", failure.cause, failure.message);
    let mut lines = failure.stderr.as_slice();
    // The message of a failed start ends with the last line already.
    if let [before @ .., last] = lines
        && failure.message.contains(&format!("it last said: {last}"))
    {
        lines = before;
    }
    for line in lines.iter().rev().take(3).rev() {
        message.push_str("\n    stderr: ");
        message.push_str(line);
    }
    message
}

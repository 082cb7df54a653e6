//! `lint`: suspicious texts of the lock. Launches no source; `lock` runs it before it writes.

use std::cell::Cell;
use std::path::Path;

use crate::lint::lint;
use broker_drift::{Class, Finding, FindingSeverity, LintResult};
use broker_model::exit::Exit;
use broker_model::json::to_review_text;
use broker_model::lock::LockedSource;
use broker_model::public_names::PublicNames;
use broker_model::redact::Redactor;
use broker_model::terminal::Text;
use broker_model::text::{counted, shell_word};
use broker_model::{Diagnostic, DiagnosticCode, text};
use clap::Args;
use serde_json::Value;

use super::audits::{Audits, audits_file};
use super::input::read_lock;
use super::lock::checks::Context;
use super::{ConfigFile, Format, output, release_age};
use broker_build::lock_file;

pub(super) mod introduced;
mod show;

pub(super) use show::has_errors;
use show::{LintRun, accept, count, human, settle, summary, suppressions, to_json};

#[derive(Debug, Args)]
pub(super) struct LintArgs {
    #[command(flatten)]
    file: ConfigFile,
    /// Treat warnings as errors.
    #[arg(long)]
    strict: bool,
    /// Show every finding in full, also of a rule with many.
    #[arg(long)]
    all: bool,
    /// Let `npm` ask its registry for the age of releases, which it otherwise reads from its cache.
    #[arg(long)]
    online: bool,
    /// The format of the findings on standard output.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

pub(super) fn run(args: &LintArgs) -> Exit {
    let path = lock_file(&args.file.config);
    let lock = match read_lock(&path) {
        Ok(file) => file.lock,
        Err(problems) => return output::diagnostics(&problems),
    };
    let audits = match Audits::read(&args.file.config) {
        Ok(audits) => audits,
        Err(problems) => return output::diagnostics(&problems),
    };
    let (settled, suppressed) = (settled(&audits), Cell::new(0));
    let (mut linted, exit) = lint_sources(
        &lock.sources,
        &|one, finding| {
            let is = settled(one, finding);
            suppressed.set(suppressed.get() + usize::from(is));
            is
        },
        args.strict,
    );
    name_config(&mut linted, &args.file.config);
    let looked = LintRun {
        sources: lock.sources.len(),
        tools: lock.sources.iter().map(|source| source.exposed.len()).sum(),
        suppressed: suppressed.get(),
    };
    match args.format {
        Format::Human => {
            output::data(&human(&linted, &show_all(&args.file.config), args.all));
            output::data(&settle(&linted, &args.file.config));
            output::data(&summary(&linted, &looked));
            release_age::say_ages(&lock.sources, args.online);
        }
        Format::Json => output::document(&Text::json_text(&to_review_text(&to_json(
            &linted, &looked,
        )))),
    }
    let instructions = |source: &LockedSource| source.instructions.is_some();
    if looked.tools == 0 && !lock.sources.iter().any(instructions) {
        let message = "the lock has no tool and no instructions, so nothing was checked";
        output::diagnostics(&[Diagnostic::warning(DiagnosticCode::SourceFailed, message)]);
        return exit.or(Exit::Unchecked);
    }
    exit
}

/// Whether an audit settles a finding, as [`lint_sources`] asks.
pub(super) fn settled(audits: &Audits) -> impl Fn(&LintResult, &Finding) -> bool {
    |one, finding| {
        let (source, tool) = (one.source.as_str(), one.tool.as_deref());
        audits.suppresses(finding.rule, source, tool, &one.digest)
    }
}

/// The findings of the lint without suppressed ones, and the exit. With `strict`, warnings are errors.
pub(super) fn lint_sources(
    sources: &[LockedSource],
    suppressed: &dyn Fn(&LintResult, &Finding) -> bool,
    strict: bool,
) -> (Vec<LintResult>, Exit) {
    let mut linted = lint(sources);
    for one in &mut linted {
        let mut findings = std::mem::take(&mut one.findings);
        findings.retain(|finding| !suppressed(one, finding));
        for finding in findings.iter_mut().filter(|_| strict) {
            (finding.severity, finding.class) = (FindingSeverity::Error, Class::Security);
        }
        one.findings = findings;
    }
    linted.retain(|one| !one.findings.is_empty());
    let exit = if count(&linted, FindingSeverity::Error) > 0 {
        Exit::Lint
    } else {
        Exit::Ok
    };
    (linted, exit)
}

/// The findings in live texts, ready to be shown: without suppressed ones, and with the secrets of the
/// servers masked, except in public names.
pub(super) fn of_sources(
    sources: &[LockedSource],
    config: &Path,
    (redactor, names): (&Redactor, &PublicNames),
    strict: bool,
) -> Result<Vec<LintResult>, Vec<Diagnostic>> {
    let audits = Audits::read(config)?;
    let (mut linted, _) = lint_sources(sources, &settled(&audits), strict);
    mask(&mut linted, redactor, names);
    name_config(&mut linted, config);
    Ok(linted)
}

/// The report for people; empty without findings.
pub(super) fn report(linted: &[LintResult], config: &Path) -> Text {
    if linted.is_empty() {
        return Text::new();
    }
    let [errors, warnings] =
        [FindingSeverity::Error, FindingSeverity::Warning].map(|severity| count(linted, severity));
    text!(
        "{}{}lint: {}, {}\n",
        human(linted, "`--format json` has all", false),
        settle(linted, config),
        counted(errors, "error"),
        counted(warnings, "warning")
    )
}

/// Reports findings in the texts that would be locked; returns those with errors.
pub(super) fn before_lock(
    context: &Context<'_>,
    sources: &[LockedSource],
) -> Result<Vec<LintResult>, Vec<Diagnostic>> {
    let specs = context.input.specs.iter();
    let redactor = specs.fold(Redactor::default(), |known, spec| {
        known.merge(&spec.redactor)
    });
    let config = context.config_file;
    let names = PublicNames::of_config(&context.input.config);
    let linted = of_sources(sources, config, (&redactor, &names), context.strict)?;
    if context.is_lock {
        report_before_lock(&linted, config);
    }
    Ok(linted.into_iter().filter(has_errors).collect())
}

fn report_before_lock(linted: &[LintResult], config: &Path) {
    if linted.is_empty() {
        return;
    }
    output::say(human(linted, &show_all(config), false).trimmed());
    let refused: Vec<&LintResult> = linted.iter().filter(|one| has_errors(one)).collect();
    if refused.is_empty() {
        return output::say(settle(linted, config).trimmed());
    }
    // `accept` takes digests from a lock, and no lock has these.
    output::say(text!(
        "no lock has these bytes; to accept them, write into\n`{}`:\n{}",
        audits_file(config).display(),
        refused
            .iter()
            .map(|one| suppressions(one))
            .collect::<Text>()
            .trimmed()
    ));
}

/// The command that shows the findings that were folded.
fn show_all(config: &Path) -> String {
    format!(
        "`broker-gen lint --config {} --all` shows each",
        shell_word(&config.to_string_lossy())
    )
}

/// Masks secrets in shown text, except in public names.
fn mask(linted: &mut [LintResult], redactor: &Redactor, names: &PublicNames) {
    for finding in linted.iter_mut().flat_map(|one| &mut one.findings) {
        finding.message = redactor.redact_except(&finding.message, names);
        if let Some(Value::String(text)) = &mut finding.new {
            *text = redactor.redact(text);
        }
    }
}

/// Names the config in the commands of the remedies.
fn name_config(linted: &mut [LintResult], config: &Path) {
    for finding in linted.iter_mut().flat_map(|one| &mut one.findings) {
        finding.remedy = finding.remedy.replace("broker-gen accept", &accept(config));
    }
}

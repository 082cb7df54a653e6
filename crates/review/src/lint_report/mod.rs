//! Findings of the lint without those that audits settle, and their report.

use std::path::Path;

use broker_drift::{Class, Finding, FindingSeverity, LintResult};
use broker_model::Diagnostic;
use broker_model::exit::Exit;
use broker_model::lock::LockedSource;
use broker_model::public_names::PublicNames;
use broker_model::redact::Redactor;
use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::{counted, shell_word};
use serde_json::Value;

use crate::audits::Audits;
use crate::lint::lint;

mod introduced;
mod show;

pub use introduced::raise;
use show::accept;
pub use show::{LintRun, count, has_errors, human, settle, summary, suppressions, to_json};

/// Whether an audit settles a finding, as [`lint_sources`] asks.
pub fn settled(audits: &Audits) -> impl Fn(&LintResult, &Finding) -> bool {
    |one, finding| {
        let (source, tool) = (one.source.as_str(), one.tool.as_deref());
        audits.suppresses(finding.rule, source, tool, &one.digest)
    }
}

/// The findings of the lint without suppressed ones, and the exit. With `strict`, warnings are errors.
pub fn lint_sources(
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
pub fn live_findings(
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
pub fn report(linted: &[LintResult], config: &Path) -> Text {
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

/// The command that shows the findings that were folded.
pub fn show_all(config: &Path) -> String {
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
pub fn name_config(linted: &mut [LintResult], config: &Path) {
    for finding in linted.iter_mut().flat_map(|one| &mut one.findings) {
        finding.remedy = finding.remedy.replace("broker-gen accept", &accept(config));
    }
}

//! Leaves out tools with errors of the lint, and a source with errors in its own texts.

use std::path::Path;

use broker_drift::{FindingSeverity, LintResult};
use broker_model::lock::LockedSource;
use broker_model::redact::Redactor;
use broker_model::terminal::Text;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode, LeftOutCode, text};
use broker_review::audits::audits_file;
use broker_review::lint_report::{
    has_errors, human, live_findings, settle, show_all, suppressions,
};

use super::{CheckResult, Context, Draft};
use crate::cli::lock::draft::LeaveOut;
use crate::cli::output;

pub(super) fn check(context: &Context<'_>, draft: &Draft) -> CheckResult {
    let mut result = CheckResult::default();
    let refused = match before_lock(context, &draft.sources) {
        Ok(refused) => refused,
        // The audits file is not valid.
        Err(problems) => {
            result.refused = problems;
            return result;
        }
    };
    for one in refused {
        let errors = one.findings.iter();
        let errors = errors.filter(|finding| finding.severity == FindingSeverity::Error);
        let mut rules: Vec<&str> = errors.map(|finding| finding.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        let code = LeftOutCode::LintRefused;
        let reason = format!("the lint found {}", rules.join(", "));
        let message = format!(
            "the texts of `{}` are suspicious",
            shown_line(&one.path, 200)
        );
        let help = "Hide the tool with `tool_filter`, or suppress the findings as shown above.";
        let problem = Diagnostic::error(DiagnosticCode::LintRefused, message).help(help);
        result.left_out.push(match &one.tool {
            Some(tool) => {
                LeaveOut::tool(&one.source, tool, one.digest, (code, "", &reason), problem)
            }
            None => LeaveOut::source(&one.source, Some(one.digest), (code, "", &reason), problem),
        });
    }
    result
}

/// Reports findings in the texts that would be locked; returns those with errors.
fn before_lock(
    context: &Context<'_>,
    sources: &[LockedSource],
) -> Result<Vec<LintResult>, Vec<Diagnostic>> {
    let specs = context.input.specs.iter();
    let redactor = specs.fold(Redactor::default(), |known, spec| {
        known.merge(&spec.redactor)
    });
    let config = context.config_file;
    let names = context.input.config.public_names();
    let linted = live_findings(sources, config, (&redactor, &names), context.strict)?;
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

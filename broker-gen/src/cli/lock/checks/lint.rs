//! Leaves out tools with errors of the lint, and a source with errors in its own texts.

use broker_drift::FindingSeverity;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode, LeftOutCode};

use super::{CheckResult, Context, Draft};
use crate::cli::lint;
use crate::cli::lock::draft::LeaveOut;

pub(super) fn check(context: &Context<'_>, draft: &Draft) -> CheckResult {
    let mut result = CheckResult::default();
    let refused = match lint::before_lock(context, &draft.sources) {
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

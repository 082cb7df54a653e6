//! Keeps the locked state of a source that runs another package than its lock names, although its config is the
//! same. `lock --source` takes the new one: then a person asked for it.

use broker_model::{Diagnostic, LeftOutCode, Severity};
use broker_review::provenance;

use super::{CheckResult, Context, Draft};
use crate::cli::lock::draft::{LeaveOut, Part};

pub(super) fn check(context: &Context<'_>, draft: &Draft) -> CheckResult {
    let mut result = CheckResult::default();
    let Some(old) = context.old else {
        return result;
    };
    for (source, warning) in provenance::swapped(old, &draft.sources) {
        let before = old.source(source.as_str());
        let now = draft.sources.iter().find(|known| known.path == source);
        let same_config = before
            .zip(now)
            .filter(|(before, now)| before.config_digest == now.config_digest);
        let Some((before, _)) = same_config.filter(|_| !context.names_sources) else {
            result.warnings.push(warning);
            continue;
        };
        result.left_out.push(LeaveOut {
            part: Part::Current {
                code: LeftOutCode::PackageChanged,
                locked: Box::new(before.clone()),
            },
            problem: Diagnostic {
                severity: Severity::Error,
                ..warning
            }
            .help(format!(
                "Find out why; then lock it alone: `--source {source}`."
            )),
            source,
        });
    }
    result
}

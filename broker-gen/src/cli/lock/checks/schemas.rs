//! Leaves out tools whose schemas are too costly or do not compile.

use super::{CheckResult, Context, Draft};
use crate::cli::lock::draft::{LeaveOut, Part};
use crate::cli::schemas;

pub(super) fn check(_: &Context<'_>, draft: &Draft) -> CheckResult {
    let refused = schemas::refused(&draft.sources).into_iter();
    let left_out = refused.map(|tool| LeaveOut {
        source: tool.source,
        part: Part::Tool(tool.left_out),
        problem: tool.problem,
    });
    CheckResult {
        left_out: left_out.collect(),
        ..CheckResult::default()
    }
}

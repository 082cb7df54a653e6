//! Leaves out tools and items whose path or name another one has: every one of them, so that the order of the
//! sources does not matter.

use std::collections::BTreeSet;

use broker_build::plan;
use broker_model::{DiagnosticCode, LeftOutCode};

use super::{CheckResult, Context, Draft};
use crate::cli::lock::draft::LeaveOut;

pub(super) fn check(context: &Context<'_>, draft: &Draft) -> CheckResult {
    let mut result = CheckResult::default();
    let mut seen = BTreeSet::new();
    for clash in plan::clashes(&context.input.config, &draft.sources) {
        let code = match clash.problem.code == DiagnosticCode::AliasNeeded {
            true => LeftOutCode::NameInvalid,
            false => LeftOutCode::PathClash,
        };
        for (source, key) in &clash.parts {
            let locked = draft.sources.iter().find(|known| known.path == *source);
            let tool = locked.and_then(|locked| {
                let mut tools = locked.exposed.iter();
                tools.find(|tool| tool.upstream_name == *key)
            });
            let Some(tool) = tool.filter(|_| seen.insert((source.clone(), key.clone()))) else {
                continue;
            };
            result.left_out.push(LeaveOut::tool(
                source,
                key,
                tool.digest.clone(),
                (code, "", &clash.problem.message),
                clash.problem.clone(),
            ));
        }
    }
    result
}

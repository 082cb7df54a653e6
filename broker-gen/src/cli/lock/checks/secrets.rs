//! Leaves out tools that contain a secret, and a source with one in its instructions. Warns about values of this
//! machine.

use std::path::Path;

use broker_model::LeftOutCode;

use super::{CheckResult, Context, Draft};
use crate::cli::lock::checks::host_leaks::{self, Leak};
use crate::cli::lock::draft::LeaveOut;

pub(super) fn check(context: &Context<'_>, draft: &Draft) -> CheckResult {
    let mut result = CheckResult::default();
    let folder = context.config_file.parent().unwrap_or(Path::new(""));
    let here = host_leaks::values_of_this_host(folder);
    for spec in &context.input.specs {
        let locked = draft.sources.iter().find(|one| one.path == spec.source);
        let source = context.input.config.source(&spec.source);
        let Some((locked, source)) = locked.filter(|one| one.kept.is_none()).zip(source) else {
            continue;
        };
        let given = host_leaks::values_of_source(source, spec);
        let all: Vec<_> = given.iter().chain(&here).collect();
        for leak in host_leaks::find(locked, &all) {
            let Leak {
                tool,
                pointer,
                problem,
            } = leak;
            if !problem.is_error() {
                result.warnings.push(problem);
                continue;
            }
            let code = LeftOutCode::SecretListed;
            result.left_out.push(match tool {
                Some(tool) => LeaveOut::tool(
                    &locked.path,
                    &tool.upstream_name,
                    tool.digest.clone(),
                    (code, &pointer, code.cause()),
                    problem,
                ),
                None => LeaveOut::source(
                    &locked.path,
                    Some(locked.own_digest()),
                    (code, "/instructions", code.cause()),
                    problem,
                ),
            });
        }
    }
    result
}

//! Leaves out what the violations of the audits file refuse.

use broker_audits_file::{FileEntry, Violation, Violations, shown_source, shown_tool};
use broker_model::digest::Digest;
use broker_model::{Diagnostic, LeftOutCode, NodePath, Severity};

use super::{CheckResult, Context, Draft};
use crate::cli::input::Input;
use crate::cli::lock::draft::LeaveOut;

const CODE: LeftOutCode = LeftOutCode::Violation;

pub(super) fn check(context: &Context<'_>, draft: &Draft) -> CheckResult {
    let mut result = CheckResult::default();
    let violations = match Violations::read(context.config_file) {
        Ok(violations) => violations,
        Err(problems) => {
            result.refused = problems;
            return result;
        }
    };
    let config = context.config_file.to_string_lossy();
    for source in &draft.sources {
        let path = &source.path;
        if let Some(one) = violations.find_by_source(source) {
            // As of a source that is not launched, unless only these bytes are refused.
            let is_by_path = violations.find_by_path(path.as_str()).is_some();
            let digest = (!is_by_path).then(|| source.own_digest());
            result.leave_out_source(&violations, one, path, digest, &config);
            continue;
        }
        for tool in &source.exposed {
            let (name, digest) = (&tool.upstream_name, &tool.digest);
            if let Some(one) = violations.find_by_tool(path.as_str(), name, digest) {
                let problem = violations.problem(&shown_tool(name, path.as_str()), one, &config);
                result.warnings.push(warning(&problem));
                let reason = (CODE, "", CODE.cause());
                let left_out = LeaveOut::tool(path, name, digest.clone(), reason, problem);
                result.left_out.push(left_out);
            }
        }
    }
    result
}

/// Takes the sources out of the input that a violation refuses as a whole, so that they are not launched.
pub(in crate::cli::lock) fn take_refused(
    input: &mut Input,
    violations: &Violations,
    config: &str,
) -> CheckResult {
    let mut result = CheckResult::default();
    let specs = input.specs.iter().map(|spec| spec.source.clone());
    let unresolved = input.unresolved.iter().map(|(path, _)| path.clone());
    for path in specs.chain(unresolved).collect::<Vec<_>>() {
        if let Some(one) = violations.find_by_path(path.as_str()) {
            result.leave_out_source(violations, one, &path, None, config);
            input.specs.retain(|spec| spec.source != path);
            input.unresolved.retain(|(known, _)| *known != path);
        }
    }
    result
}

impl CheckResult {
    fn leave_out_source(
        &mut self,
        violations: &Violations,
        one: &FileEntry<Violation>,
        path: &NodePath,
        digest: Option<Digest>,
        config: &str,
    ) {
        let problem = violations.problem(&shown_source(path.as_str()), one, config);
        self.warnings.push(warning(&problem));
        let reason = (CODE, "", CODE.cause());
        let left_out = LeaveOut::source(path, digest, reason, problem);
        self.left_out.push(left_out);
    }
}

/// The problem as a warning of a lock that leaves the part out.
fn warning(problem: &Diagnostic) -> Diagnostic {
    Diagnostic {
        severity: Severity::Warning,
        help: None,
        ..problem.clone()
    }
}

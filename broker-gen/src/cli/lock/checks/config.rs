//! The checks of the config file with the sound parts of the draft. Their errors refuse the lock.

use broker_build::{hint_audits, plan};

use super::{CheckResult, Context, Draft};
use crate::cli::schemas::access_args;
use crate::cli::{schemas, type_notes};

/// Checks filters, aliases, overrides and access rules.
pub(super) fn check(context: &Context<'_>, draft: &Draft) -> CheckResult {
    let mut result = CheckResult::default();
    match plan::plan(&context.input.config, &draft.sources) {
        Ok(plan) => {
            type_notes::say_notes(&broker_build::types::types(&plan).fallbacks);
            result.warnings = schemas::unlisted(&plan);
            result.warnings.extend(plan.warnings);
        }
        Err(problems) => result.refused = problems,
    }
    result
}

/// Forms of schemas that are not of their dialect.
pub(super) fn check_schema_forms(_: &Context<'_>, draft: &Draft) -> CheckResult {
    CheckResult {
        warnings: schemas::notes(&draft.sources),
        ..CheckResult::default()
    }
}

/// Examples that the schemas of their tools refuse.
pub(super) fn check_examples(context: &Context<'_>, draft: &Draft) -> CheckResult {
    CheckResult {
        refused: schemas::check_examples(&context.input.config, &draft.sources),
        ..CheckResult::default()
    }
}

/// Checks the `args` of access rules.
pub(super) fn check_access(context: &Context<'_>, draft: &Draft) -> CheckResult {
    CheckResult {
        refused: access_args::check(&context.input.config, &draft.sources),
        ..CheckResult::default()
    }
}

/// Checks for hints of the config that claim more safety than the server's hints.
pub(super) fn check_hints(context: &Context<'_>, draft: &Draft) -> CheckResult {
    let config = &context.input.config;
    let shown = context.config_file.to_string_lossy();
    let mut result = CheckResult::default();
    // Its problems were reported before.
    if let Ok(plan) = plan::plan(config, &draft.sources) {
        result.refused = hint_audits::check(config, &plan, context.config_file, &shown);
    }
    result
}

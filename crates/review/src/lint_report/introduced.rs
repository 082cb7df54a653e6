//! Warnings of the lint that a change introduces: the reviewed texts do not have them, so they are part of the change and
//! raise its class, as invisible characters do. Errors need no class: they fail a command by themselves.

use std::collections::BTreeMap;

use broker_drift::{Class, Finding, FindingSeverity, LintResult, Report};
use broker_model::lock::LockedSource;

use crate::lint::lint;

/// Adds the warnings in changed texts that the reviewed sources do not have to the changes of the report, with the class
/// `security`.
pub fn raise(report: &mut Report, linted: &[LintResult], reviewed: &[LockedSource]) {
    let mut before: BTreeMap<_, usize> = BTreeMap::new();
    for one in lint(reviewed) {
        for finding in &one.findings {
            let key = (one.source.clone(), one.tool.clone(), finding.rule);
            *before.entry(key).or_default() += 1;
        }
    }
    for one in linted {
        let introduced = one.findings.iter().filter(|finding| {
            let key = (one.source.clone(), one.tool.clone(), finding.rule);
            // As many places as before are taken for the same ones.
            let is_known = before.get_mut(&key).is_some_and(|left| {
                let is_left = *left > 0;
                *left = left.saturating_sub(1);
                is_left
            });
            !is_known && finding.severity == FindingSeverity::Warning
        });
        for finding in introduced {
            let raised = Finding {
                class: Class::Security,
                severity: FindingSeverity::Error,
                ..finding.clone()
            };
            report.add_to_change(&one.source, one.tool.as_deref(), raised);
        }
    }
}

//! Whether every exposed tool is audited.

use std::path::Path;

use broker_config::Config;
use broker_model::lock::Lock;
use broker_model::text::{counted, shell_word, shown_line};
use broker_model::{Diagnostic, DiagnosticCode, NodePath};

use super::outcome::{Counts, Outcome};
use crate::audits::{Audit, AuditStatus, Audits, Date, Missing, subjects};
use crate::moved::{Comparison, Former};

/// Checks that every exposed tool is audited.
pub fn check(outcome: &mut Outcome, config: &Config, lock: &Lock, audits: &Audits, path: &Path) {
    let today = Date::today();
    let all = subjects(lock);
    let of = all.len();
    let needed = config.audits_required;
    let standings = || {
        all.iter()
            .map(|subject| audits.status(subject, today, needed))
    };
    let audited = standings()
        .filter(|one| *one == AuditStatus::Audited)
        .count();
    let exempt = standings()
        .filter(|one| matches!(one, AuditStatus::Exempt(_)))
        .count();
    let counts = Counts {
        people: needed,
        audited,
        exempt,
        of,
    };
    outcome.holds("audits", counts.to_string());
    outcome.audits = Some(counts);
    outcome.problems.extend(audits.stale(lock));
    let violations = audits.violations();
    outcome.problems.extend(violations.unmatched(lock));
    if violations.count() > 0 && violations.refused(&lock.sources, "").is_empty() {
        let entries = counted(violations.count(), "violation");
        outcome.holds("refused", format!("nothing in the lock, by {entries}"));
    }
    if needed > 0 {
        let missing = audits.missing(lock, today, needed);
        let former = Former::new(config, Some(lock), path, None);
        let problems = missing.iter().map(|one| {
            let moved = moved_from(one, audits, &former, today);
            problem_of(one, path, moved)
        });
        outcome.problems.extend(problems);
    }
}

/// An audit of the same bytes at another path.
enum MovedFrom {
    /// The source there is the same.
    Same(Audit),
    /// The source there is not known here.
    Unknown(Audit),
}

/// Finds an audit of the same bytes at a path that the source had before.
fn moved_from(
    missing: &Missing<'_>,
    audits: &Audits,
    former: &Former<'_>,
    today: Date,
) -> Option<MovedFrom> {
    let mut unknown = None;
    for audit in audits.at_other_paths(&missing.subject, today) {
        match former.compare(&audit.source, &missing.subject.source.path)? {
            Comparison::Same => return Some(MovedFrom::Same(audit.clone())),
            Comparison::Other { .. } => {}
            Comparison::Unknown(_) => unknown = unknown.or(Some(audit)),
        }
    }
    unknown.cloned().map(MovedFrom::Unknown)
}

/// The remedy for a node that was moved.
fn moved_help(moved: &MovedFrom, to: &NodePath, config: &str) -> String {
    let (MovedFrom::Same(audit) | MovedFrom::Unknown(audit)) = moved;
    let who = shown_line(&audit.who, 80);
    let (from, date) = (&audit.source, audit.date);
    let carry = format!("broker-gen accept --config {config} --moved {from} {to}");
    match moved {
        MovedFrom::Same(_) => format!(
            "The audit of {who} on {date} at `{from}` is of the same bytes of the same source: `{carry}` carries it over. Otherwise: "
        ),
        MovedFrom::Unknown(_) => format!(
            "The audit of {who} on {date} at `{from}` is of the same bytes: if the node was moved, `{carry} --baseline git:REV` carries it over, with a commit whose lock has `{from}`. Otherwise: "
        ),
    }
}

fn problem_of(missing: &Missing<'_>, config: &Path, moved: Option<MovedFrom>) -> Diagnostic {
    let subject = &missing.subject;
    let message = format!(
        "`{}` has no valid audit: {}; its digest is {}",
        subject.shown(),
        missing.why,
        subject.digest
    );
    let config = shell_word(&config.to_string_lossy());
    let mut accept = format!(
        "broker-gen accept --config {config} --source {}",
        subject.source.path
    );
    match subject.tool_name() {
        Some(tool) => accept.push_str(&format!(" --tool {}", shell_word(tool))),
        None => accept.push_str(" --itself"),
    }
    let moved = moved.map(|moved| moved_help(&moved, &subject.source.path, &config));
    let help = format!(
        "{}Run `broker-gen review --config {config}`, or, after you have read it elsewhere, `{}`; commit the audits.",
        moved.unwrap_or_default(),
        shown_line(&accept, 400)
    );
    Diagnostic::error(DiagnosticCode::AuditMissing, message).help(help)
}

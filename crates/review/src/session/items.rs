//! The items of a review: everything of a lock without an audit, with its changes since the baseline, the
//! worst first.

use std::cmp::Reverse;

use broker_drift::{Class, Finding, LintResult, Report};
use broker_model::lock::Lock;
use broker_model::text::shown_line;

use crate::audits::{AuditStatus, Audits, Date, Subject, subjects};
use crate::lock_diff::diff_locks;

/// One item to decide on.
#[derive(Debug)]
pub struct Item<'a> {
    pub subject: Subject<'a>,
    /// The class of the change; `None` if the baseline does not have the item.
    pub class: Option<Class>,
    pub findings: Vec<Finding>,
    /// Findings of the lint that no audit settles.
    pub linted: Vec<Finding>,
    /// The item in the baseline, if it has other bytes there.
    pub old: Option<Subject<'a>>,
    /// The reason why a decision is needed.
    pub status: AuditStatus,
    /// Whether the baseline's item was audited, so that only the change has to be reviewed.
    pub old_was_audited: bool,
}

/// Everything without a valid audit of each of `needed` people.
pub fn items<'a>(
    lock: &'a Lock,
    baseline: Option<&'a Lock>,
    audits: &Audits,
    today: Date,
    needed: u8,
    linted: &[LintResult],
) -> Vec<Item<'a>> {
    let report = baseline
        .map(|old| diff_locks(old, lock))
        .unwrap_or_default();
    let mut items = Vec::new();
    for subject in subjects(lock) {
        let status = audits.status(&subject, today, needed);
        if status == AuditStatus::Audited {
            continue;
        }
        let old = baseline.and_then(|lock| same_in(lock, &subject));
        let drift = drift_of(&report, &subject);
        let class = old
            .is_some()
            .then(|| drift.as_ref().map_or(Class::Same, |(class, _)| *class));
        let old = old.filter(|old| old.digest != subject.digest);
        items.push(Item {
            class,
            // A new item has no other finding.
            findings: drift
                .filter(|_| class.is_some())
                .map(|(_, findings)| findings)
                .unwrap_or_default(),
            linted: lint_of(linted, &subject),
            old_was_audited: old.as_ref().is_some_and(|old| audits.knows(old)),
            old,
            status,
            subject,
        });
    }
    // Stable, so that the lock's order is kept within a class.
    items.sort_by_key(|item| Reverse(rank(item.class)));
    items
}

/// Changes of the config's part for a source since the baseline, of its trust level and its package, safe to
/// show. They have no audit, but a reviewer of the tools has to know them.
pub fn changed_sources(lock: &Lock, baseline: Option<&Lock>) -> Vec<String> {
    let report = baseline
        .map(|old| diff_locks(old, lock))
        .unwrap_or_default();
    let of_config = |finding: &&Finding| {
        matches!(
            finding.rule,
            "source-config-changed" | "access-changed" | "trust-raised"
        ) || finding.rule.starts_with("package-")
    };
    let sources = report.sources.iter();
    sources
        .flat_map(|drift| {
            let findings = drift.findings.iter().filter(of_config);
            findings.map(|finding| {
                let message = shown_line(&finding.message, 600);
                let rule = match finding.class == Class::Security {
                    true => format!("security[{}] ", finding.rule),
                    false => String::new(),
                };
                match finding.rule {
                    "access-changed" => message,
                    _ => format!("{}: {rule}{message}", drift.source),
                }
            })
        })
        .collect()
}

/// Tools of the baseline that the lock no longer has, safe to show.
pub fn left(lock: &Lock, baseline: Option<&Lock>) -> Vec<String> {
    let of_baseline = baseline.map(subjects).unwrap_or_default();
    of_baseline
        .iter()
        .filter(|old| same_in(lock, old).is_none())
        .map(Subject::shown)
        .collect()
}

/// The subject of the same name in another lock.
fn same_in<'a>(lock: &'a Lock, subject: &Subject<'_>) -> Option<Subject<'a>> {
    let source = lock.source(subject.source.path.as_str())?;
    match subject.tool_name() {
        None => source
            .instructions
            .is_some()
            .then(|| Subject::itself(source)),
        Some(name) => source
            .exposed
            .iter()
            .find(|tool| tool.upstream_name == name)
            .map(|tool| Subject::tool(source, tool)),
    }
}

fn drift_of(report: &Report, subject: &Subject<'_>) -> Option<(Class, Vec<Finding>)> {
    let path = &subject.source.path;
    match subject.tool_name() {
        None => report
            .sources
            .iter()
            .find(|drift| drift.source == *path)
            .map(|drift| (drift.class, drift.findings.clone())),
        Some(name) => report
            .tools
            .iter()
            .find(|drift| drift.source == *path && drift.tool == name)
            .map(|drift| (drift.class, drift.findings.clone())),
    }
}

fn lint_of(linted: &[LintResult], subject: &Subject<'_>) -> Vec<Finding> {
    let path = &subject.source.path;
    let of_it = linted
        .iter()
        .find(|one| one.source == *path && one.tool.as_deref() == subject.tool_name());
    of_it.map(|one| one.findings.clone()).unwrap_or_default()
}

/// Items that need the most care have the highest rank. A new item has to be read in full, so it ranks above a change
/// that is proven safe.
fn rank(class: Option<Class>) -> u8 {
    match class {
        Some(Class::Security) => 8,
        Some(Class::Gone) => 7,
        Some(Class::Breaking) => 6,
        Some(Class::Unknown | Class::Unchecked) => 5,
        None | Some(Class::Added) => 4,
        Some(Class::Compatible) => 3,
        Some(Class::Text) => 2,
        Some(Class::Equivalent) => 1,
        Some(Class::Same) => 0,
    }
}

impl Item<'_> {
    /// Its class, for people.
    pub fn class_name(&self) -> &'static str {
        self.class.map_or("new", Class::as_str)
    }

    /// Whether it may not be accepted without being shown: the texts of a source itself, an item with a finding
    /// of the lint, and a change that is worse than one of a text.
    pub fn has_to_be_shown(&self) -> bool {
        let is_harmless = match self.class {
            None | Some(Class::Added | Class::Same | Class::Equivalent | Class::Text) => true,
            Some(
                Class::Compatible
                | Class::Unknown
                | Class::Breaking
                | Class::Security
                | Class::Gone
                | Class::Unchecked,
            ) => false,
        };
        self.subject.tool.is_none() || !self.linted.is_empty() || !is_harmless
    }

    /// The shown members: the changed ones, or all.
    pub fn members(&self, whole: bool) -> Vec<String> {
        let new = self.subject.reviewed();
        let old = match &self.old {
            Some(old) if !whole => old.reviewed(),
            _ => return new.keys().map(|key| shown_line(key, 100)).collect(),
        };
        let keys: std::collections::BTreeSet<_> = old.keys().chain(new.keys()).collect();
        keys.into_iter()
            .filter(|key| old.get(*key) != new.get(*key))
            .map(|key| shown_line(key, 100))
            .collect()
    }
}

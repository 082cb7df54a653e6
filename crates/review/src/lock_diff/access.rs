//! The access that callers gain or lose by a changed lock: the access rules of a config, applied to the tools of both
//! sides.

use broker_config::Config;
use broker_drift::{
    AccessTool, AccessTools, Class, Finding, FindingSeverity, Report, SourceDrift, access_changes,
    access_lines,
};
use broker_model::NodePath;
use broker_model::access::{Hints, reviewed_annotations};
use broker_model::item::readable_path;
use broker_model::lock::{Lock, LockedAccess, LockedSource};
use serde_json::json;

/// Maximum number of changes that the message of a finding names.
const MAX_NAMED: usize = 3;

/// Adds the access changes to a report. Without `access` in the config, access does not change.
pub fn add(report: &mut Report, config: &Config, old: &[LockedSource], new: &[LockedSource]) {
    if let Some(access) = &config.access {
        report.access = access_changes(access, &tools(config, old), &tools(config, new));
    }
}

/// The same for a report on two locks: a lock that gives callers more needs the review of a changed filter, so that each
/// source with such tools has a finding.
pub fn add_between_locks(
    report: &mut Report,
    config: &Config,
    old: &[LockedSource],
    new: &[LockedSource],
) {
    add(report, config, old, new);
    for source in new {
        let wider = report.access.iter();
        let wider = wider.filter(|one| one.is_wider() && one.source == source.path);
        let wider: Vec<_> = wider.cloned().collect();
        if wider.is_empty() {
            continue;
        }
        let message = access_lines(&wider, MAX_NAMED).join("; ");
        let paths: Vec<_> = wider.iter().map(|one| one.path.as_str()).collect();
        let finding = Finding {
            rule: "access-widened",
            class: Class::Unknown,
            severity: FindingSeverity::Error,
            pointer: String::new(),
            old: None,
            new: Some(json!(paths)),
            witness: None,
            message: format!("callers may use more than before: {message}"),
            remedy: "review who may use the tools (`broker-gen access`), or correct the rules; it is accepted once the new lock is committed and built".to_owned(),
        };
        let mut sources = report.sources.iter_mut();
        match sources.find(|drift| drift.source == source.path) {
            Some(drift) => {
                drift.class = drift.class.max(finding.class);
                drift.findings.push(finding);
            }
            None => report.sources.push(SourceDrift {
                source: source.path.clone(),
                class: finding.class,
                findings: vec![finding],
            }),
        }
    }
}

/// Adds the finding that the access rules themselves changed between two locks, if both record them. The finding
/// belongs to the root, since rules have no source.
pub fn add_changed_rules(report: &mut Report, old: &Lock, new: &Lock) {
    let change = match (old.access(), new.access()) {
        (LockedAccess::NotRecorded, _)
        | (LockedAccess::Absent, LockedAccess::Absent | LockedAccess::NotRecorded) => return,
        (LockedAccess::Rules(before), LockedAccess::Rules(now)) if before == now => return,
        (LockedAccess::Rules(_), LockedAccess::Rules(_)) => "has changed",
        (LockedAccess::Rules(_), LockedAccess::Absent) => "was removed",
        (LockedAccess::Absent, LockedAccess::Rules(_)) => "is new",
        (LockedAccess::Rules(_), LockedAccess::NotRecorded) => {
            "was removed, or the new lock is too old to record it"
        }
    };
    let digest = |lock: &Lock| lock.access_digest.as_ref().map(|one| json!(one.as_str()));
    report.sources.push(SourceDrift {
        source: NodePath::root(),
        class: Class::Unknown,
        findings: vec![Finding {
            rule: "access-changed",
            class: Class::Unknown,
            severity: FindingSeverity::Error,
            pointer: String::new(),
            old: digest(old),
            new: digest(new),
            witness: None,
            message: format!("the section `access` of the config {change}"),
            remedy: "compare the configs, and review who may use what (`broker-gen access`); it is accepted once the new lock is committed and built".to_owned(),
        }],
    });
}

/// The exposed tools of locked sources, with the hints of the config.
fn tools(config: &Config, sources: &[LockedSource]) -> AccessTools {
    let mut tools = AccessTools::new();
    for locked in sources {
        let source = config.sources().find(|one| one.path == locked.path);
        for tool in &locked.exposed {
            let Ok(path) = locked.path.join(&tool.exposed_name) else {
                continue;
            };
            let said = source.and_then(|source| source.overrides.get(&tool.upstream_name));
            let hints = said.and_then(|said| said.annotations.as_ref());
            let annotations = reviewed_annotations(tool.raw.get("annotations"), hints);
            let tool = AccessTool {
                source: locked.path.clone(),
                readable: readable_path(path.as_str(), &tool.upstream_name),
                hints: Hints::read(annotations.as_ref()),
            };
            tools.insert(path.as_str().to_owned(), tool);
        }
    }
    tools
}

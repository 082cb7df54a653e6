//! Who gains or loses what by a changed lock: the rules of access of a config, applied to the tools of both sides.

use broker_drift::{
    AccessTool, AccessTools, Class, Finding, FindingSeverity, Report, SourceDrift, access_changes,
    access_lines,
};
use broker_model::access::{Hints, reviewed_annotations};
use broker_model::alias::readable_path;
use broker_model::config::Config;
use broker_model::lock::LockedSource;
use serde_json::json;

/// Maximum number of changes that the message of a finding names.
const MAX_NAMED: usize = 3;

/// Adds the changes of access to a report. Without `access` in the config there are none.
pub(super) fn add(
    report: &mut Report,
    config: &Config,
    old: &[LockedSource],
    new: &[LockedSource],
) {
    if let Some(access) = &config.access {
        report.access = access_changes(access, &tools(config, old), &tools(config, new));
    }
}

/// The same for a report on two locks: a lock that gives callers more needs the review of a changed filter, so that each
/// source with such tools has a finding.
pub(super) fn add_between_locks(
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
                hints: Hints::of(annotations.as_ref()),
            };
            tools.insert(path.as_str().to_owned(), tool);
        }
    }
    tools
}

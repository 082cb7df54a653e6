//! Log lines about drift, and the changes that an observer learns of: one for each tool that was withdrawn or restored, and one for each difference without a
//! withdrawal. Text of a server is escaped to one line.

use broker_drift::{Class, Report};
use broker_model::path::NodePath;
use broker_model::text::shown_line;

use crate::catalog::Catalog;
use crate::sources::change_observer::{Change, ChangeObserver, ChangedItem};
use crate::sources::reason::MAX_MESSAGE;
use crate::view::View;

/// The target of log lines about drift.
pub const DRIFT_LOG: &str = module_path!();

/// Logs the withdrawn and the restored tools of a source, and tells the observer.
pub(crate) fn withdrawals(
    catalog: &Catalog,
    source: usize,
    before: &View,
    now: &View,
    observer: Option<&dyn ChangeObserver>,
) {
    let tell = |change: &Change<'_>| {
        if let Some(observer) = observer {
            observer.observe(change);
        }
    };
    let tools = catalog.sources[source].items.iter();
    for at in tools.filter(|tool| !now.is_hidden(**tool)) {
        let tool = catalog.item(*at);
        let path = catalog.entry(tool.entry).path;
        let item = ChangedItem {
            path,
            source: catalog.sources[source].path,
            id: tool.id,
            digest: tool.digest,
        };
        match (before.withdrawn(*at), now.withdrawn(*at)) {
            (before, Some(now)) if before.is_none_or(|before| !before.same_reason(now)) => {
                tracing::warn!(
                    source = catalog.sources[source].path,
                    path,
                    class = now.class.as_str(),
                    rules = ?now.rules,
                    expected = tool.digest,
                    found = now.found.as_deref(),
                    reason = now.reason.internal,
                    "tool withdrawn"
                );
                tell(&Change::Withdrawn {
                    item,
                    class: now.class,
                    rule: now.rules.first().copied().unwrap_or_default(),
                    found: now.found.as_deref(),
                });
            }
            (Some(_), None) => {
                tracing::info!(
                    source = catalog.sources[source].path,
                    path,
                    digest = tool.digest,
                    "tool restored"
                );
                tell(&Change::Restored { item });
            }
            _ => {}
        }
    }
}

/// Logs the differences without a withdrawal, and tells the observer; withdrawals have separate lines.
pub(crate) fn differences(report: &Report, observer: Option<&dyn ChangeObserver>) {
    let about_tools = report
        .tools
        .iter()
        .filter(|tool| !tool.class.withdraws())
        .flat_map(|tool| {
            let findings = tool.findings.iter();
            findings.map(move |finding| (&tool.source, tool.path.as_str(), finding))
        });
    let about_sources = report.sources.iter().flat_map(|one| {
        let findings = one.findings.iter();
        findings.map(move |finding| (&one.source, one.source.as_str(), finding))
    });
    for (source, path, finding) in about_tools.chain(about_sources) {
        if let Some(observer) = observer {
            observer.observe(&Change::Differs {
                source: source.as_str(),
                path,
                class: finding.class,
                rule: finding.rule,
            });
        }
        let path = shown_line(path, MAX_MESSAGE);
        // Not `message`: the event has that field already.
        let reason = shown_line(&finding.message, MAX_MESSAGE);
        let (rule, class) = (finding.rule, finding.class);
        let class = class.as_str();
        if finding.class == Class::Unchecked {
            tracing::warn!(%source, rule, reason, "source not checked: its calls fail until it is compared with the lock");
        } else if finding.class.refuses() {
            tracing::warn!(%source, path, class, rule, reason, "source differs from the lock");
        } else {
            tracing::info!(%source, path, class, rule, reason, "source has changes that do not affect calls");
        }
    }
}

/// Logs that a source matches the lock again.
pub(crate) fn matches_again(source: &NodePath) {
    tracing::info!(%source, "source matches the lock again");
}

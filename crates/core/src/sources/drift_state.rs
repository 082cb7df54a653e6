//! Compares what a source lists with what was reviewed of it, withdraws and restores its tools, and
//! tells the gate. Reads each source's lock out of the catalog when it is needed and keeps none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use broker_drift::{Class, Report, ToolDrift};
use broker_mcp::{SourceFailure, Verdict};
use broker_model::config::TextDrift;
use broker_model::digest::Digest;
use broker_model::filter::ToolFilter;
use broker_model::lock::{LockedSource, strip_volatile};
use broker_model::path::NodePath;
use broker_model::redact::Redactor;
use broker_model::snapshot::ListedTool;
use broker_model::text::shown_line;
use broker_model::{Snapshot, SourceCause};
use serde_json::Value;

use crate::catalog::{Catalog, Kind};
use crate::listing::view::{View, Withdrawn};
use crate::sources::drift_log;
use crate::sources::reason::{self, Reason};
use crate::sources::startup_gate::StartupGate;
use crate::sources::time::rfc3339;

/// The longest message that replies and logs show, in characters.
pub(crate) const MAX_MESSAGE: usize = 300;

/// What is known of all sources against the lock.
#[derive(Debug)]
pub(crate) struct DriftState {
    pub(crate) catalog: &'static Catalog,
    pub(crate) view: ArcSwap<View>,
    pub(crate) gate: StartupGate,
    sources: Box<[ArcSwap<Reviewed>]>,
    /// The latest report of each source. Held while a verdict is taken in, so that one is at a time.
    reports: Mutex<Box<[Option<Report>]>>,
}

/// What a verdict on one source needs to know of it.
#[derive(Debug)]
pub(crate) struct Reviewed {
    pub(crate) path: NodePath,
    pub(crate) filter: ToolFilter,
    pub(crate) redactor: Redactor,
    pub(crate) text_drift: TextDrift,
}

/// What a listing means; nothing has changed by it yet.
#[derive(Clone, Debug)]
pub(crate) struct Assessment {
    pub(crate) verdict: Verdict,
    pub(crate) report: Report,
    /// The tools that may not be served, hidden ones included.
    pub(crate) withdrawn: BTreeMap<u32, Arc<Withdrawn>>,
    /// The tools that are served or not as the config says: their texts changed.
    pub(crate) changed_texts: BTreeMap<u32, Arc<Withdrawn>>,
}

impl Assessment {
    /// Whether the whole source may not be served.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.verdict, Verdict::WithdrawSource { .. })
    }

    /// The tools that may not be served under a config that says this of changed texts.
    pub(crate) fn withdrawn_by(&self, text_drift: TextDrift) -> BTreeMap<u32, Arc<Withdrawn>> {
        let mut withdrawn = match text_drift {
            TextDrift::Serve => BTreeMap::new(),
            TextDrift::Withdraw => self.changed_texts.clone(),
        };
        withdrawn.extend(self.withdrawn.clone());
        withdrawn
    }
}

impl DriftState {
    pub(crate) fn new(
        catalog: &'static Catalog,
        view: View,
        gate: StartupGate,
        sources: Vec<Reviewed>,
    ) -> Self {
        Self {
            catalog,
            view: ArcSwap::from_pointee(view),
            gate,
            reports: Mutex::new(sources.iter().map(|_| None).collect()),
            sources: sources.into_iter().map(ArcSwap::from_pointee).collect(),
        }
    }

    /// Knows every source's secrets.
    pub(crate) fn redactor(&self) -> Redactor {
        let sources = self.sources.iter();
        sources.fold(Redactor::default(), |known, source| {
            known.merge(&source.load().redactor)
        })
    }

    /// What a listing means for a source, with what it is judged by now or will be judged by.
    pub(crate) fn assess(
        &self,
        source: usize,
        reviewed: Option<&Reviewed>,
        snapshot: &Snapshot,
    ) -> Assessment {
        let now = self.sources[source].load();
        let reviewed = reviewed.unwrap_or(&now);
        let (report, withdrawn, changed_texts) = match self.locked(source) {
            Ok(locked) => {
                let mut report = broker_drift::classify(&locked, snapshot, &reviewed.filter);
                report.mask(&reviewed.redactor);
                report.name_config(self.catalog.config_name);
                // Of hidden tools as well: a reload may bring them back.
                let withdrawn = self.withdrawn(source, &report, &locked, snapshot);
                let changed_texts = self.changed_texts(source, &report, &locked, snapshot);
                (self.without_hidden(report), withdrawn, changed_texts)
            }
            // What cannot be compared is not served.
            Err(problem) => {
                let report = broker_drift::unchecked(
                    &reviewed.path,
                    SourceCause::DriftSource,
                    &problem,
                    &[],
                );
                let reason = Reason::own(&problem);
                let withdrawn = self.all_of(source, Class::Unknown, "lock-unreadable", &reason);
                (report, withdrawn, BTreeMap::new())
            }
        };
        let against = |class| class == Class::Security || class == Class::Unchecked;
        let verdict = match report.sources.iter().find(|about| against(about.class)) {
            Some(about) => Verdict::WithdrawSource {
                message: Reason::of_source(about).public,
            },
            None => Verdict::Serve,
        };
        Assessment {
            verdict,
            report,
            withdrawn,
            changed_texts,
        }
    }

    /// Lets what was found count.
    pub(crate) fn accept(&self, source: usize, assessment: Assessment) {
        let withdrawn = self.withdrawals(source, &assessment);
        self.take_in(source, &assessment.report, withdrawn);
        if self.gate.settle(source, &assessment.report) {
            // Until now a refusal could have said all this; it did not come.
            self.gate
                .first_of_required()
                .for_each(drift_log::differences);
        }
    }

    /// The tools that may not be served under the config that is in force.
    pub(crate) fn withdrawals(
        &self,
        source: usize,
        assessment: &Assessment,
    ) -> BTreeMap<u32, Arc<Withdrawn>> {
        assessment.withdrawn_by(self.sources[source].load().text_drift)
    }

    /// From now on a source is judged with this.
    pub(crate) fn set_reviewed(&self, source: usize, reviewed: Reviewed) {
        self.sources[source].store(Arc::new(reviewed));
    }

    /// From now on exactly the tools in `hidden` are left out.
    pub(crate) fn hide(&self, hidden: BTreeSet<u32>) {
        let _one_at_a_time = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        let view = self.view.load_full();
        if !view.hides_exactly(&hidden) {
            self.view
                .store(Arc::new(view.with_hidden(self.catalog, hidden)));
        }
    }

    /// Takes in that a source could not be started or listed. Only the first outcome of a source
    /// counts; its tools stay as they are.
    pub(crate) fn failed(&self, source: usize, failure: &SourceFailure) {
        let mut message = shown_line(&failure.message, MAX_MESSAGE);
        if let Some(last) = failure.stderr.last()
            && !failure.message.contains(last.as_str())
        {
            message = format!(
                "{message}; its last line on stderr: {}",
                shown_line(last, MAX_MESSAGE)
            );
        }
        let reviewed = self.sources[source].load();
        let path = &reviewed.path;
        if !self.gate.is_settled(source) && !self.gate.is_strict(source) {
            tracing::warn!(source = %path, cause = %failure.cause, reason = message, "source not checked");
        }
        let report = broker_drift::unchecked(path, failure.cause, &message, &[]);
        self.gate.settle(source, &report);
    }

    /// How many of these tools the config's filter leaves out.
    pub(crate) fn left_out(&self, source: usize, snapshot: &Snapshot) -> usize {
        let reviewed = self.sources[source].load();
        let names = snapshot.tools.iter().map(ListedTool::name);
        names.filter(|name| !reviewed.filter.admits(name)).count()
    }

    fn locked(&self, source: usize) -> Result<LockedSource, String> {
        let text = self.catalog.text(self.catalog.sources[source].lock);
        let value: Value = serde_json::from_str(text)
            .map_err(|error| format!("the compiled lock cannot be read: {error}"))?;
        // The build verified the digests of what it compiled in.
        LockedSource::from_verified(&value).map_err(|problems| {
            let first = problems.first().map(|problem| problem.message.as_str());
            format!(
                "the compiled lock cannot be read: {}",
                first.unwrap_or("no reason given")
            )
        })
    }

    /// The report without tools that this config leaves out.
    fn without_hidden(&self, mut report: Report) -> Report {
        let view = self.view.load();
        report.tools.retain(|tool| {
            tool.class == Class::Added || self.tool_at(tool).is_none_or(|at| !view.is_hidden(at))
        });
        report
    }

    fn tool_at(&self, drift: &ToolDrift) -> Option<u32> {
        match self.catalog.entry(self.catalog.find(&drift.path)?).kind {
            Kind::Tool(tool) => Some(tool),
            Kind::Node { .. } => None,
        }
    }

    /// The withdrawals that a report asks for.
    fn withdrawn(
        &self,
        source: usize,
        report: &Report,
        locked: &LockedSource,
        snapshot: &Snapshot,
    ) -> BTreeMap<u32, Arc<Withdrawn>> {
        if let Some(about) = report.sources.iter().find(|s| s.class == Class::Security) {
            let rule = reason::worst(about).map_or("source-changed", |finding| finding.rule);
            return self.all_of(source, about.class, rule, &Reason::of_source(about));
        }
        let drifted = report.tools.iter().filter(|tool| tool.class.withdraws());
        let withdrawn = drifted.filter_map(|drift| {
            // An added tool may want the path of another; what is not of this source is not touched.
            let at = self.tool_at(drift)?;
            let reviewed = locked
                .exposed
                .iter()
                .find(|tool| tool.upstream_name == drift.tool);
            let reason = Reason::of_tool(drift, reviewed.map(|tool| &tool.raw));
            Some((at, of_tool(drift, drift.class, reason, locked, snapshot)))
        });
        withdrawn.collect()
    }

    /// The tools that a report would withdraw over texts alone.
    fn changed_texts(
        &self,
        source: usize,
        report: &Report,
        locked: &LockedSource,
        snapshot: &Snapshot,
    ) -> BTreeMap<u32, Arc<Withdrawn>> {
        let of_source = report.sources.iter().flat_map(|about| &about.findings);
        if let Some(finding) = of_source
            .into_iter()
            .find(|finding| finding.is_text_drift())
        {
            let reason = Reason::changed_text_of_source(finding);
            return self.all_of(source, Class::Text, finding.rule, &reason);
        }
        let drifted = report.tools.iter().filter(|tool| tool.has_text_drift());
        let withdrawn = drifted.filter_map(|drift| {
            let at = self.tool_at(drift)?;
            let reason = Reason::changed_text(drift);
            Some((at, of_tool(drift, Class::Text, reason, locked, snapshot)))
        });
        withdrawn.collect()
    }

    fn all_of(
        &self,
        source: usize,
        class: Class,
        rule: &'static str,
        reason: &Reason,
    ) -> BTreeMap<u32, Arc<Withdrawn>> {
        let withdrawn = Arc::new(Withdrawn::new(
            class,
            vec![rule],
            reason.clone(),
            rfc3339(SystemTime::now()),
            None,
        ));
        let tools = self.catalog.sources[source].tools.iter();
        tools.map(|tool| (*tool, withdrawn.clone())).collect()
    }

    /// Makes the view follow a verdict. The view is replaced only where it changes, so that kept
    /// replies survive the re-checks that find nothing.
    fn take_in(
        &self,
        source: usize,
        report: &Report,
        mut withdrawn: BTreeMap<u32, Arc<Withdrawn>>,
    ) {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        let view = self.view.load_full();
        let mut changed = false;
        for tool in self.catalog.sources[source].tools {
            let (before, now) = (view.withdrawn(*tool), withdrawn.get_mut(tool));
            match (before, now) {
                // Withdrawn for the same reason: since then, not since now.
                (Some(before), Some(now)) if before.same_reason(now) => *now = before.clone(),
                (None, None) => {}
                _ => changed = true,
            }
        }
        if changed {
            let next = view.with_source(self.catalog, source, withdrawn);
            if !self.gate.is_strict(source) {
                drift_log::withdrawals(self.catalog, source, &view, &next);
            }
            self.view.store(Arc::new(next));
        }
        let last = reports[source].replace(report.clone());
        if !self.gate.is_strict(source) && last.as_ref() != Some(report) {
            drift_log::differences(report);
            if last.is_some_and(|last| last.has_drift()) && !report.has_drift() {
                drift_log::matches_again(&self.sources[source].load().path);
            }
        }
    }
}

/// The reason why one tool is out of service, with the digest of the tool that the server lists
/// instead.
fn of_tool(
    drift: &ToolDrift,
    class: Class,
    reason: Reason,
    locked: &LockedSource,
    snapshot: &Snapshot,
) -> Arc<Withdrawn> {
    let listed = snapshot.tools.iter().find(|tool| tool.name() == drift.tool);
    let found = listed.map(|tool| {
        let mut raw = tool.read();
        strip_volatile(&mut raw, &locked.volatile);
        Digest::of_tool(&raw).as_str().to_owned()
    });
    let since = rfc3339(SystemTime::now());
    Arc::new(Withdrawn::new(class, drift.rules(), reason, since, found))
}

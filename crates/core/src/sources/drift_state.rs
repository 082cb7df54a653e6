//! Drift of all sources: compares the tools that a source lists with the lock, withdraws and restores
//! tools, and reports outcomes to the startup gate. The lock of a source is read from the catalog for
//! each comparison and is not kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use broker_config::TextDrift;
use broker_drift::{Class, Report, ToolDrift};
use broker_mcp::{SourceFailure, Verdict};
use broker_model::digest::Digest;
use broker_model::lock::{LockedSource, strip_volatile};
use broker_model::path::NodePath;
use broker_model::public_names::PublicNames;
use broker_model::redact::Redactor;
use broker_model::snapshot::ListedTool;
use broker_model::text::shown_line;
use broker_model::trust::Exposure;
use broker_model::{Snapshot, SourceCause};
use tokio::sync::watch;

use crate::catalog::{Catalog, EntryKind};
use crate::clock::Clock;
use crate::sources::change_observer::{Change, ChangeObserver};
use crate::sources::drift_log;
use crate::sources::listing_notes::{AllListingNotes, ListingNotes};
use crate::sources::live_resources::{LiveList, LiveResources};
use crate::sources::reason::{self, MAX_MESSAGE, Reason};
use crate::sources::startup_gate::{REACH_TIMEOUT, StartupGate};
use crate::sources::time::rfc3339;
use crate::view::{View, Withdrawal};

/// The differences of all sources from the lock, and what follows from them.
#[derive(Debug)]
pub(crate) struct DriftState {
    pub(crate) catalog: &'static Catalog,
    pub(crate) view: ArcSwap<View>,
    pub(crate) gate: StartupGate,
    sources: Box<[ArcSwap<CheckSettings>]>,
    /// The resources that sources list now and that are not compared with the lock.
    pub(crate) live: LiveResources,
    /// The unused parts of the latest listings.
    pub(crate) notes: AllListingNotes,
    /// The latest report of each source. Locked from the gate's decision on a verdict until the view has
    /// it, so that verdicts are applied one at a time.
    reports: Mutex<Box<[Option<Report>]>>,
    clock: Arc<dyn Clock>,
    /// Grows when the set of served tools changes, or what `tools/list` says about one.
    tool_changes: watch::Sender<u64>,
    observer: Option<Arc<dyn ChangeObserver>>,
}

/// The settings of one source that its check needs.
#[derive(Debug)]
pub(crate) struct CheckSettings {
    pub(crate) path: NodePath,
    pub(crate) exposure: Exposure,
    pub(crate) redactor: Redactor,
    pub(crate) text_drift: TextDrift,
}

/// The result of comparing a listing with the lock, before it takes effect.
#[derive(Clone, Debug)]
pub(crate) struct Assessment {
    pub(crate) verdict: Verdict,
    pub(crate) report: Report,
    /// The tools that may not be served, hidden ones included.
    pub(crate) withdrawn: BTreeMap<u32, Arc<Withdrawal>>,
    /// The tools whose texts changed; the config decides whether they are served.
    pub(crate) changed_texts: BTreeMap<u32, Arc<Withdrawal>>,
    /// The resources that are not compared.
    pub(crate) live: Arc<LiveList>,
    /// The unused parts of the listing.
    pub(crate) notes: Arc<ListingNotes>,
}

impl Assessment {
    /// Whether the whole source may not be served.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.verdict, Verdict::WithdrawSource { .. })
    }

    /// Returns the tools that must not be served if the config has this `on_text_drift`.
    pub(crate) fn withdrawn_by(&self, text_drift: TextDrift) -> BTreeMap<u32, Arc<Withdrawal>> {
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
        sources: Vec<CheckSettings>,
        clock: Arc<dyn Clock>,
        tool_changes: watch::Sender<u64>,
    ) -> Self {
        Self {
            catalog,
            clock,
            view: ArcSwap::from_pointee(view),
            gate,
            reports: Mutex::new(sources.iter().map(|_| None).collect()),
            live: LiveResources::new(sources.len()),
            notes: AllListingNotes::new(sources.len()),
            sources: sources.into_iter().map(ArcSwap::from_pointee).collect(),
            tool_changes,
            observer: None,
        }
    }

    /// Sets what learns of changes.
    pub(crate) fn observed_by(mut self, observer: Option<Arc<dyn ChangeObserver>>) -> Self {
        self.observer = observer;
        self
    }

    /// Tells the observer a change of a source.
    pub(crate) fn tell(&self, source: usize, change: impl FnOnce(&'static str) -> Change<'static>) {
        if let Some(observer) = &self.observer {
            observer.observe(&change(self.catalog.sources[source].path));
        }
    }

    /// Returns a redactor that knows the secrets of every source.
    pub(crate) fn redactor(&self) -> Redactor {
        let sources = self.sources.iter();
        sources.fold(Redactor::default(), |known, source| {
            known.merge(&source.load().redactor)
        })
    }

    /// Compares a listing with the lock, under the given settings or the current ones.
    pub(crate) fn assess(
        &self,
        source: usize,
        check_settings: Option<&CheckSettings>,
        snapshot: &Snapshot,
    ) -> Assessment {
        let now = self.sources[source].load();
        let check_settings = check_settings.unwrap_or(&now);
        let (report, withdrawn, changed_texts) = match self.catalog.locked(source) {
            Ok(locked) => {
                let mut report =
                    broker_drift::classify(&locked, snapshot, &check_settings.exposure);
                if !(report.tools.is_empty() && report.sources.is_empty()) {
                    report.mask(&check_settings.redactor, PublicNames::from_source(&locked));
                }
                report.name_config(self.catalog.config_name);
                // Includes hidden tools: a reload may expose them.
                let withdrawn = self.withdrawn(source, &report, &locked, snapshot);
                let changed_texts = self.changed_texts(source, &report, &locked, snapshot);
                let report = self.without_hidden(report, &check_settings.exposure);
                (report, withdrawn, changed_texts)
            }
            // A source that cannot be compared is not served.
            Err(problem) => {
                let report = broker_drift::unchecked(
                    &check_settings.path,
                    SourceCause::DriftSource,
                    &problem,
                    &[],
                );
                let reason = Reason::own(&problem);
                let withdrawn = self.all_of(source, Class::Unknown, "lock-unreadable", &reason);
                (report, withdrawn, BTreeMap::new())
            }
        };
        let mut sources = report.sources.iter();
        let verdict = match sources.find(|about| about.class.withdraws_source()) {
            Some(about) => Verdict::WithdrawSource {
                message: Reason::from_source(about).public,
            },
            None => Verdict::Serve,
        };
        Assessment {
            verdict,
            report,
            withdrawn,
            changed_texts,
            live: Arc::new(LiveList::new(
                check_settings.path.as_str(),
                &snapshot.resources,
                &check_settings.exposure,
            )),
            notes: Arc::new(ListingNotes::new(snapshot, &check_settings.exposure)),
        }
    }

    /// Applies an assessment.
    pub(crate) fn accept(&self, source: usize, assessment: Assessment) {
        let withdrawn = self.withdrawals(source, &assessment);
        self.live.store(source, assessment.live.clone());
        let path = self.catalog.sources[source].path;
        self.notes.store(source, path, assessment.notes.clone());
        let mut reports = self.reports();
        // The gate comes first: it decides whether the report is part of the start's report or is logged
        // here. A call that it admits now reads the view again once it has its session.
        let settlement = self.gate.settle(source, &assessment.report);
        let last = &mut reports[source];
        self.apply_report(
            source,
            &assessment.report,
            last,
            withdrawn,
            settlement.is_strict,
        );
        drop(reports);
        if settlement.opened {
            self.log_start();
        }
    }

    /// Lets the start go on without the sources that were not reached in time, where it can.
    pub(crate) fn stop_waiting(&self) {
        let message = format!(
            "the server has not listed its tools {} s after the start",
            REACH_TIMEOUT.as_secs()
        );
        let opened = self.gate.stop_waiting(|source| {
            let check_settings = self.sources[source].load();
            let cause = SourceCause::StartupTimeout;
            if !self.gate.is_strict(source) {
                tracing::warn!(source = %check_settings.path, "{message}; calls wait for it");
            }
            broker_drift::unchecked(&check_settings.path, cause, &message, &[])
        });
        if opened {
            self.log_start();
        }
    }

    /// Logs the differences of a start that was not refused.
    fn log_start(&self) {
        for report in self.gate.strict_reports() {
            drift_log::differences(&report, self.observer.as_deref());
        }
    }

    /// Returns the tools that must not be served under the current config.
    pub(crate) fn withdrawals(
        &self,
        source: usize,
        assessment: &Assessment,
    ) -> BTreeMap<u32, Arc<Withdrawal>> {
        assessment.withdrawn_by(self.sources[source].load().text_drift)
    }

    /// Returns the view, with every verdict that the gate knows.
    pub(crate) fn view_after_verdicts(&self) -> Arc<View> {
        let _no_verdict_is_applied = self.reports();
        self.view.load_full()
    }

    /// Returns the latest report of each source; `None` before its first verdict.
    pub(crate) fn reports(&self) -> MutexGuard<'_, Box<[Option<Report>]>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the filter of a source admits a URI.
    pub(crate) fn admits_uri(&self, source: usize, uri: &str) -> bool {
        let settings = self.sources[source].load();
        settings.exposure.items().resource_filter.admits(uri)
    }

    /// Replaces the check settings of a source.
    pub(crate) fn set_check_settings(&self, source: usize, check_settings: CheckSettings) {
        self.sources[source].store(Arc::new(check_settings));
    }

    /// Hides exactly the tools in `hidden`.
    pub(crate) fn hide(&self, hidden: BTreeSet<u32>) {
        let _one_at_a_time = self.reports();
        let view = self.view.load_full();
        if !view.hides_exactly(&hidden) {
            self.replace_view(&view, view.with_hidden(self.catalog, hidden));
        }
    }

    /// Returns a counter that grows when the set of served tools changes, or what `tools/list` says about one.
    #[inline]
    pub(crate) fn tool_changes(&self) -> watch::Receiver<u64> {
        self.tool_changes.subscribe()
    }

    /// Says that tools are listed differently.
    pub(crate) fn count_tool_change(&self) {
        self.tool_changes.send_modify(|count| *count += 1);
    }

    fn replace_view(&self, before: &View, after: View) {
        let is_change = !after.serves_the_same(before, self.catalog.items.len());
        self.view.store(Arc::new(after));
        if is_change {
            self.count_tool_change();
        }
    }

    /// Records that a source could not be started or listed. Only the first outcome of a source has an
    /// effect; its tools stay as they are.
    pub(crate) fn failed(&self, source: usize, failure: &SourceFailure) {
        let mut message = shown_line(&failure.message, MAX_MESSAGE);
        if let Some(last) = failure.stderr.last()
            && !failure.quotes_stderr
        {
            message = format!(
                "{message}; its last line on stderr: {}",
                shown_line(last, MAX_MESSAGE)
            );
        }
        let check_settings = self.sources[source].load();
        let path = &check_settings.path;
        let report = broker_drift::unchecked(path, failure.cause, &message, &[]);
        let settlement = self.gate.settle(source, &report);
        if settlement.is_first && !settlement.is_strict {
            tracing::warn!(source = %path, cause = %failure.cause, reason = message, "source not checked");
        }
        if settlement.opened {
            self.log_start();
        }
    }

    /// Returns the number of these tools that the config hides.
    pub(crate) fn hidden_count(&self, source: usize, snapshot: &Snapshot) -> usize {
        let check_settings = self.sources[source].load();
        let names = snapshot.tools.iter().map(ListedTool::name);
        names
            .filter(|name| !check_settings.exposure.exposes(name))
            .count()
    }

    /// Returns the report without tools that this config hides. A tool for pages only is invisible to callers, but
    /// stays in the report: the start is refused for it as for any other tool.
    fn without_hidden(&self, mut report: Report, exposure: &Exposure) -> Report {
        let view = self.view.load();
        let is_reported = |at: u32| {
            let tool = self.catalog.item(at);
            !view.is_hidden(at) || (tool.for_pages_only && exposure.exposes(tool.key))
        };
        report.tools.retain(|tool| {
            tool.class == Class::Added || self.tool_at(tool).is_none_or(is_reported)
        });
        report
    }

    fn tool_at(&self, drift: &ToolDrift) -> Option<u32> {
        match self.catalog.entry(self.catalog.find(&drift.path)?).kind {
            EntryKind::Item(tool) => Some(tool),
            EntryKind::Node { .. } => None,
        }
    }

    /// Returns the withdrawals that a report asks for.
    fn withdrawn(
        &self,
        source: usize,
        report: &Report,
        locked: &LockedSource,
        snapshot: &Snapshot,
    ) -> BTreeMap<u32, Arc<Withdrawal>> {
        let mut sources = report.sources.iter();
        if let Some(about) = sources.find(|about| about.class.withdraws_tools_of_source()) {
            let rule = reason::worst(about).map_or("source-changed", |finding| finding.rule);
            return self.all_of(source, about.class, rule, &Reason::from_source(about));
        }
        let drifted = report.tools.iter().filter(|tool| tool.class.withdraws());
        let withdrawn = drifted.filter_map(|drift| {
            // An added tool may have the path of another source's tool. The other tool must not be withdrawn.
            let at = self.tool_at(drift)?;
            let locked_tool = locked
                .exposed
                .iter()
                .find(|tool| tool.upstream_name == drift.tool);
            let reason = Reason::from_tool(drift, locked_tool.map(|tool| &tool.raw));
            Some((
                at,
                self.withdrawal(drift, drift.class, reason, locked, snapshot),
            ))
        });
        withdrawn.collect()
    }

    /// Returns the tools that a report would withdraw because of texts alone.
    fn changed_texts(
        &self,
        source: usize,
        report: &Report,
        locked: &LockedSource,
        snapshot: &Snapshot,
    ) -> BTreeMap<u32, Arc<Withdrawal>> {
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
            Some((
                at,
                self.withdrawal(drift, Class::Text, reason, locked, snapshot),
            ))
        });
        withdrawn.collect()
    }

    fn all_of(
        &self,
        source: usize,
        class: Class,
        rule: &'static str,
        reason: &Reason,
    ) -> BTreeMap<u32, Arc<Withdrawal>> {
        let withdrawn = Arc::new(Withdrawal::new(
            class,
            vec![rule],
            reason.clone(),
            rfc3339(self.clock.now()),
            None,
        ));
        let tools = self.catalog.sources[source].items.iter();
        tools.map(|tool| (*tool, withdrawn.clone())).collect()
    }

    /// Updates the view and the `last` report of the source after a verdict. The view is replaced only if it changes, so that cached
    /// replies survive a re-check without findings. The strict phase of a start does not log.
    fn apply_report(
        &self,
        source: usize,
        report: &Report,
        last: &mut Option<Report>,
        mut withdrawn: BTreeMap<u32, Arc<Withdrawal>>,
        is_strict: bool,
    ) {
        let view = self.view.load_full();
        let mut changed = false;
        for tool in self.catalog.sources[source].items {
            let (before, now) = (view.withdrawn(*tool), withdrawn.get_mut(tool));
            match (before, now) {
                // Withdrawn for the same reason: the earlier time stays.
                (Some(before), Some(now)) if before.same_reason(now) => *now = before.clone(),
                (None, None) => {}
                _ => changed = true,
            }
        }
        if changed {
            let next = view.with_source(self.catalog, source, withdrawn);
            if !is_strict {
                drift_log::withdrawals(
                    self.catalog,
                    source,
                    &view,
                    &next,
                    self.observer.as_deref(),
                );
            }
            self.replace_view(&view, next);
        }
        let last = last.replace(report.clone());
        if !is_strict && last.as_ref() != Some(report) {
            drift_log::differences(report, self.observer.as_deref());
            if last.is_some_and(|last| last.has_drift()) && !report.has_drift() {
                drift_log::matches_again(&self.sources[source].load().path);
            }
        }
    }

    /// Returns the withdrawal of one tool, with the digest of the tool that the server lists instead.
    fn withdrawal(
        &self,
        drift: &ToolDrift,
        class: Class,
        reason: Reason,
        locked: &LockedSource,
        snapshot: &Snapshot,
    ) -> Arc<Withdrawal> {
        let listed = snapshot.tools.iter().find(|tool| tool.name() == drift.tool);
        let found = listed.map(|tool| {
            let mut raw = tool.read();
            strip_volatile(tool.name(), &mut raw, &locked.volatile);
            Digest::from_tool(&raw).as_str().to_owned()
        });
        let since = rfc3339(self.clock.now());
        Arc::new(Withdrawal::new(class, drift.rules(), reason, since, found))
    }
}

//! Decides when calls are admitted: while a plain start may be refused, once every awaited source was
//! compared with the lock, otherwise for each source after its own verdict. Decides once whether a plain
//! start is refused.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use broker_config::StartRule;
use broker_drift::{Report, name_moves};
use tokio::sync::watch;

use crate::sources::start_refusal::StartRefusal;
use crate::{RefusalCause, StartMode, StartOutcome};

/// Maximum wait of the gate, from the start, for a source that need not be reached.
pub(crate) const REACH_TIMEOUT: Duration = Duration::from_secs(10);

/// The startup gate of a broker.
#[derive(Debug)]
pub(crate) struct StartupGate {
    mode: StartMode,
    rules: Box<[StartRule]>,
    /// By source: whether it was checked or failed.
    settled: Box<[AtomicBool]>,
    /// By source: whether it was compared with the lock.
    compared: Box<[AtomicBool]>,
    /// Whether [`REACH_TIMEOUT`] has passed.
    is_late: AtomicBool,
    open: AtomicBool,
    progress: Mutex<StartProgress>,
    refusal: OnceLock<StartRefusal>,
    /// Notified after each outcome of a source and after the decision on the start.
    changes: watch::Sender<()>,
    outcome: watch::Sender<Option<StartOutcome>>,
}

#[derive(Debug)]
struct StartProgress {
    /// The report that counts for the start, by source.
    reports: Box<[Option<Report>]>,
    is_decided: bool,
}

/// The state of the gate for the calls of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GateState {
    /// Calls are not admitted yet, or the start was refused.
    Closed,
    /// Calls are admitted.
    Open,
    /// Calls wait for the outcome of the source, whose drift only withdraws tools.
    Awaited,
    /// The start went on without the source. The source has no outcome yet; calls do not wait for it.
    Unreached,
}

/// The effect of an outcome of a source on the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settlement {
    /// Whether it is the first outcome of the source.
    pub(crate) is_first: bool,
    /// Whether the source was under the rules of a plain start.
    pub(crate) is_strict: bool,
    /// Whether it opened the gate of a plain start.
    pub(crate) opened: bool,
}

impl StartupGate {
    pub(crate) fn new(mode: StartMode, rules: Vec<StartRule>) -> Self {
        // The start cannot be refused.
        let is_open = match mode {
            StartMode::Tolerant => true,
            StartMode::Plain => rules.iter().all(|rule| !may_refuse(*rule)),
        };
        let gate = Self {
            mode,
            settled: rules.iter().map(|_| AtomicBool::new(false)).collect(),
            compared: rules.iter().map(|_| AtomicBool::new(false)).collect(),
            is_late: AtomicBool::new(false),
            open: AtomicBool::new(is_open),
            progress: Mutex::new(StartProgress {
                reports: rules.iter().map(|_| None).collect(),
                is_decided: false,
            }),
            refusal: OnceLock::new(),
            changes: watch::Sender::new(()),
            outcome: watch::Sender::new(None),
            rules: rules.into(),
        };
        gate.decide_if_complete(&mut gate.progress());
        gate
    }

    /// Records an outcome of a source. Until the start is decided, a comparison replaces an earlier
    /// failure of a source that need not be reached; otherwise only the first outcome counts.
    pub(crate) fn settle(&self, source: usize, report: &Report) -> Settlement {
        let mut progress = self.progress();
        let rule = self.rules[source];
        let is_strict = self.is_strict(source);
        if !report.has_unchecked() {
            self.compared[source].store(true, Ordering::Release);
        }
        let is_first = !self.settled[source].swap(true, Ordering::AcqRel);
        let counts = rule != StartRule::Optional
            && !progress.is_decided
            && match &progress.reports[source] {
                None => true,
                Some(known) => !must_be_reached(rule) && known.has_unchecked(),
            };
        if counts {
            progress.reports[source] = Some(report.clone());
        }
        let opened = self.decide_if_complete(&mut progress);
        drop(progress);
        self.changes.send_replace(());
        Settlement {
            is_first,
            is_strict,
            opened,
        }
    }

    /// Stops waiting for sources that need not be reached and have no outcome; `unreached` makes the
    /// report on one of them. Returns whether this opened the gate of a plain start.
    pub(crate) fn stop_waiting(&self, unreached: impl Fn(usize) -> Report) -> bool {
        let mut progress = self.progress();
        self.is_late.store(true, Ordering::Release);
        if progress.is_decided {
            return false;
        }
        for (source, rule) in self.rules.iter().enumerate() {
            if !must_be_reached(*rule) && *rule != StartRule::Optional {
                progress.reports[source].get_or_insert_with(|| unreached(source));
            }
        }
        let opened = self.decide_if_complete(&mut progress);
        drop(progress);
        self.changes.send_replace(());
        opened
    }

    /// Whether the start can go on without some source.
    pub(crate) fn has_time_limit(&self) -> bool {
        self.rules.iter().any(|rule| !must_be_reached(*rule))
    }

    /// Returns the reports that count for the start and are not logged when they arrive.
    pub(crate) fn strict_reports(&self) -> Vec<Report> {
        let progress = self.progress();
        let reports = self.rules.iter().zip(&progress.reports);
        let strict = reports.filter(|(rule, _)| must_match(**rule));
        strict.filter_map(|(_, report)| report.clone()).collect()
    }

    /// Whether a source was compared with the lock.
    pub(crate) fn is_compared(&self, source: usize) -> bool {
        self.compared[source].load(Ordering::Acquire)
    }

    /// Whether a source was checked or failed.
    pub(crate) fn is_settled(&self, source: usize) -> bool {
        self.settled[source].load(Ordering::Acquire)
    }

    /// Whether a source is under the rules of a plain start: any difference refuses the start.
    pub(crate) fn is_strict(&self, source: usize) -> bool {
        self.mode == StartMode::Plain && must_match(self.rules[source]) && !self.is_open()
    }

    /// Whether a failure of a source refuses the start, so that it is not started again.
    pub(crate) fn is_single_attempt(&self, source: usize) -> bool {
        self.mode == StartMode::Plain && must_be_reached(self.rules[source]) && !self.is_open()
    }

    /// Whether calls of a source are admitted. While the start may still be refused, no call is admitted.
    pub(crate) fn state(&self, source: usize) -> GateState {
        let (is_open, rule) = (self.is_open(), self.rules[source]);
        let waits = match rule {
            StartRule::Withdraw | StartRule::Reach => true,
            StartRule::Optional => is_open,
            StartRule::Match | StartRule::MatchIfReached => self.mode == StartMode::Tolerant,
        };
        if is_open && self.is_settled(source) {
            GateState::Open
        } else if waits {
            GateState::Awaited
        } else if is_open && !must_be_reached(rule) && self.is_late.load(Ordering::Acquire) {
            GateState::Unreached
        } else {
            GateState::Closed
        }
    }

    /// Changes whenever the state of a source may have changed.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Whether the start has succeeded.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_open() && self.outcome.borrow().is_some()
    }

    /// Returns the refusal of the start, if it was refused.
    pub(crate) fn refusal(&self) -> Option<&StartRefusal> {
        self.refusal.get()
    }

    /// Waits for the outcome of the start.
    pub(crate) async fn outcome(&self) -> StartOutcome {
        let mut outcome = self.outcome.subscribe();
        let known = outcome.wait_for(Option::is_some).await;
        known
            .ok()
            .and_then(|known| known.clone())
            .expect("the sender lives as long as the gate, and the value was waited for")
    }

    fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    fn progress(&self) -> MutexGuard<'_, StartProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides on the start once no source is awaited. Returns whether this opened the gate of a plain
    /// start.
    fn decide_if_complete(&self, progress: &mut StartProgress) -> bool {
        let mut sources = self.rules.iter().zip(&progress.reports);
        let is_awaited = |(rule, report): (&StartRule, &Option<Report>)| {
            *rule != StartRule::Optional && report.is_none()
        };
        if progress.is_decided || sources.any(is_awaited) {
            return false;
        }
        progress.is_decided = true;
        let refuse = match self.mode {
            StartMode::Tolerant => None,
            StartMode::Plain => self.refusal_cause(progress),
        };
        if refuse.is_some() {
            let refusing = self.rules.iter().zip(&progress.reports).enumerate();
            let refusing = refusing.filter_map(|(source, (rule, report))| {
                let report = report.as_ref()?;
                let refuses = (must_be_reached(*rule) && report.has_unchecked())
                    || (must_match(*rule) && report.has_drift());
                refuses.then_some((source, report))
            });
            // The gate decides once, so it is empty.
            let _ = self.refusal.set(StartRefusal::new(refusing));
        }
        let opened = refuse.is_none() && !self.open.swap(true, Ordering::AcqRel);
        let mut report = Report::default();
        for one in progress.reports.iter().flatten() {
            report.merge(one.clone());
        }
        // A tool that moved to another source is found only in the merged report.
        name_moves(&mut report);
        self.outcome
            .send_replace(Some(StartOutcome { report, refuse }));
        opened
    }

    fn refusal_cause(&self, progress: &StartProgress) -> Option<RefusalCause> {
        let reports = || self.rules.iter().zip(&progress.reports);
        let is_unchecked = |(rule, report): (&StartRule, &Option<Report>)| {
            must_be_reached(*rule) && report.as_ref().is_some_and(Report::has_unchecked)
        };
        if reports().any(is_unchecked) {
            return Some(RefusalCause::Unchecked);
        }
        let has_drift = |(rule, report): (&StartRule, &Option<Report>)| {
            must_match(*rule) && report.as_ref().is_some_and(Report::has_drift)
        };
        reports().any(has_drift).then_some(RefusalCause::Drift)
    }
}

/// Whether drift of a source with this rule refuses a plain start.
const fn must_match(rule: StartRule) -> bool {
    match rule {
        StartRule::Match | StartRule::MatchIfReached => true,
        StartRule::Reach | StartRule::Withdraw | StartRule::Optional => false,
    }
}

/// Whether a plain start is refused if a source with this rule cannot be reached.
const fn must_be_reached(rule: StartRule) -> bool {
    match rule {
        StartRule::Match | StartRule::Reach => true,
        StartRule::MatchIfReached | StartRule::Withdraw | StartRule::Optional => false,
    }
}

/// Whether a plain start may be refused because of a source with this rule.
const fn may_refuse(rule: StartRule) -> bool {
    must_match(rule) || must_be_reached(rule)
}

#[cfg(test)]
mod tests;

//! Decides when calls are admitted: in a plain start once every awaited source was compared with the lock,
//! otherwise for each source after its own verdict. Decides once whether a plain start is refused.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use broker_drift::{Report, name_moves};
use broker_model::config::StartRule;
use tokio::sync::watch;

use crate::sources::start_refusal::StartRefusal;
use crate::{RefusalCause, StartMode, StartOutcome};

/// Maximum time from the start for which the gate waits for a source that need not be reached.
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
    /// The start went on without the source, which has no outcome yet.
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
        let gate = Self {
            mode,
            settled: rules.iter().map(|_| AtomicBool::new(false)).collect(),
            compared: rules.iter().map(|_| AtomicBool::new(false)).collect(),
            is_late: AtomicBool::new(false),
            open: AtomicBool::new(mode == StartMode::Tolerant),
            progress: Mutex::new(StartProgress {
                reports: rules.iter().map(|_| None).collect(),
                is_decided: false,
            }),
            refusal: OnceLock::new(),
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
                Some(known) => rule == StartRule::MatchIfReached && known.has_unchecked(),
            };
        if counts {
            progress.reports[source] = Some(report.clone());
        }
        Settlement {
            is_first,
            is_strict,
            opened: self.decide_if_complete(&mut progress),
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
            if *rule == StartRule::MatchIfReached {
                progress.reports[source].get_or_insert_with(|| unreached(source));
            }
        }
        self.decide_if_complete(&mut progress)
    }

    /// Whether the start can go on without some source.
    pub(crate) fn has_time_limit(&self) -> bool {
        self.rules.iter().any(|rule| *rule != StartRule::Match)
    }

    /// The reports that count for the start, as far as they are known.
    pub(crate) fn reports(&self) -> Vec<Report> {
        self.progress().reports.iter().flatten().cloned().collect()
    }

    /// Whether a source was compared with the lock.
    pub(crate) fn is_compared(&self, source: usize) -> bool {
        self.compared[source].load(Ordering::Acquire)
    }

    /// Whether a source was checked or failed.
    pub(crate) fn is_settled(&self, source: usize) -> bool {
        self.settled[source].load(Ordering::Acquire)
    }

    /// Whether a source is under the rules of a plain start, in which any difference refuses the start.
    pub(crate) fn is_strict(&self, source: usize) -> bool {
        let is_open = self.open.load(Ordering::Acquire);
        self.mode == StartMode::Plain && self.rules[source] != StartRule::Optional && !is_open
    }

    /// Whether a failure of a source refuses the start, so that it is not started again.
    pub(crate) fn is_single_attempt(&self, source: usize) -> bool {
        self.is_strict(source) && self.rules[source] == StartRule::Match
    }

    /// Whether calls of a source are admitted.
    pub(crate) fn state(&self, source: usize) -> GateState {
        if !self.open.load(Ordering::Acquire) {
            GateState::Closed
        } else if self.is_settled(source) {
            GateState::Open
        } else if self.rules[source] != StartRule::Match && self.is_late.load(Ordering::Acquire) {
            GateState::Unreached
        } else {
            GateState::Closed
        }
    }

    /// Whether the start has succeeded.
    pub(crate) fn is_ready(&self) -> bool {
        self.open.load(Ordering::Acquire) && self.outcome.borrow().is_some()
    }

    /// Why the start was refused, if it was.
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
                (*rule == StartRule::Match || report.has_drift()).then_some((source, report))
            });
            // The gate decides once, so it is empty.
            let _ = self.refusal.set(StartRefusal::new(refusing));
        }
        let opened = self.mode == StartMode::Plain && refuse.is_none();
        if opened {
            self.open.store(true, Ordering::Release);
        }
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
            *rule == StartRule::Match && report.as_ref().is_some_and(Report::has_unchecked)
        };
        if reports().any(is_unchecked) {
            return Some(RefusalCause::Unchecked);
        }
        let mut known = reports().filter_map(|(_, report)| report.as_ref());
        known.any(Report::has_drift).then_some(RefusalCause::Drift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_drift::{Class, Finding, FindingSeverity, SourceDrift, ToolDrift, unchecked};
    use broker_model::{NodePath, SourceCause};

    use StartRule::{Match, MatchIfReached, Optional};

    impl StartupGate {
        fn admits(&self, source: usize) -> bool {
            self.state(source) == GateState::Open
        }
    }

    fn path() -> NodePath {
        NodePath::parse("/s").unwrap()
    }

    fn failed() -> Report {
        unchecked(&path(), SourceCause::SpawnNotFound, "no such command", &[])
    }

    fn of_class(class: Class) -> Report {
        let finding = Finding {
            rule: "r",
            class,
            severity: FindingSeverity::Note,
            pointer: String::new(),
            old: None,
            new: None,
            witness: None,
            message: String::new(),
            remedy: String::new(),
        };
        Report {
            sources: vec![SourceDrift {
                source: path(),
                class,
                findings: vec![finding],
            }],
            ..Report::default()
        }
    }

    async fn refusal(mode: StartMode, reports: [Report; 2]) -> (Option<RefusalCause>, bool) {
        let gate = StartupGate::new(mode, vec![Match, Match]);
        for (source, report) in reports.iter().enumerate() {
            gate.settle(source, report);
        }
        let outcome = gate.outcome().await;
        assert_eq!(
            outcome.report.sources.len(),
            reports.iter().map(|r| r.sources.len()).sum::<usize>()
        );
        (outcome.refuse, gate.admits(0))
    }

    #[tokio::test]
    async fn plain_start_is_refused_for_drift_and_first_for_unchecked() {
        use StartMode::Plain;
        let same = Report::default;
        assert_eq!(refusal(Plain, [same(), same()]).await, (None, true));
        assert_eq!(
            refusal(Plain, [of_class(Class::Same), of_class(Class::Added)]).await,
            (None, true)
        );
        for class in [Class::Equivalent, Class::Text, Class::Unknown, Class::Gone] {
            assert_eq!(
                refusal(Plain, [same(), of_class(class)]).await,
                (Some(RefusalCause::Drift), false),
                "{class:?}"
            );
        }
        assert_eq!(
            refusal(Plain, [failed(), of_class(Class::Gone)]).await,
            (Some(RefusalCause::Unchecked), false)
        );
    }

    #[tokio::test]
    async fn tool_moved_to_another_source_is_named_at_the_start() {
        let at = |source: &str, class, digest: &str| {
            let digest = Some(serde_json::json!({"digest": digest}));
            let (rule, old, new) = match class {
                Class::Gone => ("tool-gone", digest, None),
                _ => ("tool-added", None, digest),
            };
            let one = &of_class(class).sources[0].findings[0];
            Report {
                tools: vec![ToolDrift {
                    source: NodePath::parse(source).unwrap(),
                    tool: "t".to_owned(),
                    path: format!("{source}/t"),
                    class,
                    findings: vec![Finding {
                        rule,
                        old,
                        new,
                        ..one.clone()
                    }],
                }],
                ..Report::default()
            }
        };
        let gate = StartupGate::new(StartMode::Plain, vec![Match, Match]);
        gate.settle(0, &at("/a", Class::Gone, "sha256/1:0a"));
        gate.settle(1, &at("/b", Class::Added, "sha256/1:0a"));
        let outcome = gate.outcome().await;
        let found = &outcome.report.tools[0].findings[0];
        assert_eq!(found.rule, "tool-moved");
        assert!(found.message.contains("`/b/t`"), "{}", found.message);
        assert_eq!(outcome.refuse, Some(RefusalCause::Drift));
    }

    #[tokio::test]
    async fn tolerant_start_is_never_refused() {
        let outcome = refusal(StartMode::Tolerant, [failed(), of_class(Class::Gone)]).await;
        assert_eq!(outcome, (None, true));
    }

    #[test]
    fn startup_gate_in_plain_mode_waits_for_every_required_source() {
        let gate = StartupGate::new(StartMode::Plain, vec![Match, Match, Optional]);
        gate.settle(2, &failed());
        gate.settle(0, &Report::default());
        assert!(!gate.admits(0) && !gate.admits(2) && !gate.is_ready());
        gate.settle(1, &Report::default());
        assert!(gate.admits(0) && gate.admits(1) && gate.admits(2) && gate.is_ready());
        let gate = StartupGate::new(StartMode::Plain, vec![Match, Optional]);
        gate.settle(0, &Report::default());
        assert!(gate.admits(0) && !gate.admits(1));
        assert_eq!(gate.state(1), GateState::Closed);
        gate.stop_waiting(|_| failed());
        assert_eq!(gate.state(1), GateState::Unreached);
    }

    #[test]
    fn startup_gate_in_tolerant_mode_waits_for_the_source_of_a_call() {
        let gate = StartupGate::new(StartMode::Tolerant, vec![Match, Match]);
        assert!(!gate.admits(0));
        gate.settle(0, &failed());
        assert!(gate.admits(0) && !gate.admits(1) && !gate.is_ready());
    }

    #[tokio::test]
    async fn startup_gate_without_required_sources_is_open() {
        let gate = StartupGate::new(StartMode::Plain, vec![Optional]);
        assert!(gate.outcome().await.refuse.is_none());
        assert!(gate.is_ready());
    }

    /// The end of a start in which no source is awaited any longer: whether it is refused, and the
    /// state of the gate for each source.
    fn ended<const N: usize>(gate: &StartupGate) -> (Option<RefusalCause>, [GateState; N]) {
        let outcome = gate.outcome.borrow().clone().expect("it is decided");
        assert_eq!(gate.refusal().is_some(), outcome.refuse.is_some());
        (
            outcome.refuse,
            std::array::from_fn(|source| gate.state(source)),
        )
    }

    #[test]
    fn startup_gate_opens_without_sources_that_need_not_be_reached() {
        use GateState::{Closed, Open, Unreached};
        let rules = || vec![MatchIfReached, Match, MatchIfReached];
        let gate = StartupGate::new(StartMode::Plain, rules());
        gate.settle(0, &failed());
        gate.settle(1, &Report::default());
        assert!(!gate.is_ready() && !gate.is_single_attempt(0));
        assert_eq!(gate.state(1), Closed);
        assert!(gate.stop_waiting(|_| failed()));
        assert!(gate.is_ready());
        assert_eq!(ended(&gate), (None, [Open, Open, Unreached]));
        // Drift found later opens and refuses nothing.
        let late = gate.settle(2, &of_class(Class::Gone));
        assert_eq!((late.is_strict, late.opened), (false, false));
        assert_eq!(ended(&gate), (None, [Open, Open, Open]));

        // The start still needs the other source after that time.
        let gate = StartupGate::new(StartMode::Plain, rules());
        assert!(!gate.stop_waiting(|_| failed()));
        assert_eq!(gate.state(0), Closed);
        assert!(gate.settle(1, &Report::default()).opened);
        assert_eq!(ended(&gate), (None, [Unreached, Open, Unreached]));
    }

    #[test]
    fn startup_gate_is_refused_by_drift_that_is_found_before_it_opens() {
        let start = || StartupGate::new(StartMode::Plain, vec![MatchIfReached, Match]);
        // After a failure, and after the time for which the gate waits.
        for before in [
            |gate: &StartupGate| !gate.settle(0, &failed()).opened,
            |gate: &StartupGate| !gate.stop_waiting(|_| failed()),
        ] {
            let gate = start();
            assert!(before(&gate));
            assert!(gate.settle(0, &of_class(Class::Text)).is_strict);
            gate.settle(1, &Report::default());
            assert_eq!(ended::<0>(&gate).0, Some(RefusalCause::Drift));
        }
        // A failure does not replace a comparison.
        let gate = start();
        gate.settle(0, &of_class(Class::Text));
        gate.settle(0, &failed());
        gate.settle(1, &Report::default());
        assert_eq!(ended::<0>(&gate).0, Some(RefusalCause::Drift));
        // A source that must be reached refuses the start by its failure.
        let gate = start();
        gate.settle(0, &failed());
        gate.settle(1, &failed());
        assert_eq!(ended::<0>(&gate).0, Some(RefusalCause::Unchecked));
    }

    #[test]
    fn startup_gate_in_tolerant_mode_stops_waiting_for_sources_that_need_not_be_reached() {
        use GateState::{Closed, Unreached};
        let gate = StartupGate::new(StartMode::Tolerant, vec![MatchIfReached, Match]);
        assert_eq!(gate.state(0), Closed);
        gate.stop_waiting(|_| failed());
        assert_eq!((gate.state(0), gate.state(1)), (Unreached, Closed));
        gate.settle(1, &Report::default());
        assert!(gate.is_ready());
    }
}

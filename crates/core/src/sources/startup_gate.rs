//! Decides when calls are admitted: in a plain start after the verdict on every required source,
//! otherwise for each source after its own verdict. Decides once whether a plain start is refused.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use broker_drift::{Report, name_moves};
use tokio::sync::watch;

use crate::{RefusalCause, StartMode, StartOutcome};

/// The startup gate of a broker.
#[derive(Debug)]
pub(crate) struct StartupGate {
    mode: StartMode,
    /// The report on the first outcome of each source.
    first: Box<[OnceLock<Report>]>,
    required: Box<[bool]>,
    /// Required sources without an outcome.
    awaited: AtomicUsize,
    open: AtomicBool,
    outcome: watch::Sender<Option<StartOutcome>>,
}

impl StartupGate {
    pub(crate) fn new(mode: StartMode, required: Vec<bool>) -> Self {
        let awaited = required.iter().filter(|required| **required).count();
        let gate = Self {
            mode,
            first: required.iter().map(|_| OnceLock::new()).collect(),
            required: required.into(),
            awaited: AtomicUsize::new(awaited),
            open: AtomicBool::new(mode == StartMode::Tolerant),
            outcome: watch::Sender::new(None),
        };
        if awaited == 0 {
            gate.decide();
        }
        gate
    }

    /// Records the first outcome of a source; later ones have no effect. Returns whether it opened the
    /// gate of a plain start.
    pub(crate) fn settle(&self, source: usize, report: &Report) -> bool {
        let new = self.first[source].set(report.clone()).is_ok();
        if new && self.required[source] && self.awaited.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.decide();
            return self.mode == StartMode::Plain && self.open.load(Ordering::Acquire);
        }
        false
    }

    /// The first outcomes of the required sources, as far as they are known.
    pub(crate) fn first_of_required(&self) -> impl Iterator<Item = &Report> {
        let required = self.first.iter().zip(&self.required);
        required.filter_map(|(first, required)| first.get().filter(|_| *required))
    }

    /// Whether a source was checked or failed.
    pub(crate) fn is_settled(&self, source: usize) -> bool {
        self.first[source].get().is_some()
    }

    /// Whether a source is under the rules of a plain start: one attempt, and any difference refuses
    /// the start.
    pub(crate) fn is_strict(&self, source: usize) -> bool {
        self.mode == StartMode::Plain && self.required[source] && !self.open.load(Ordering::Acquire)
    }

    /// Whether calls of a source are admitted.
    pub(crate) fn admits(&self, source: usize) -> bool {
        self.open.load(Ordering::Acquire) && self.is_settled(source)
    }

    /// Whether the broker is ready, unless it is shutting down.
    pub(crate) fn is_ready(&self) -> bool {
        self.open.load(Ordering::Acquire) && self.awaited.load(Ordering::Acquire) == 0
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

    fn decide(&self) {
        let mut report = Report::default();
        for first in self.first_of_required() {
            report.merge(first.clone());
        }
        // A tool that moved to another source is found only in the merged report.
        name_moves(&mut report);
        let refuse = match self.mode {
            StartMode::Tolerant => None,
            StartMode::Plain if report.has_unchecked() => Some(RefusalCause::Unchecked),
            StartMode::Plain if report.has_drift() => Some(RefusalCause::Drift),
            StartMode::Plain => None,
        };
        if refuse.is_none() {
            self.open.store(true, Ordering::Release);
        }
        self.outcome
            .send_replace(Some(StartOutcome { report, refuse }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_drift::{Class, Finding, FindingSeverity, SourceDrift, ToolDrift, unchecked};
    use broker_model::{NodePath, SourceCause};

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
        let gate = StartupGate::new(mode, vec![true, true]);
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
        let gate = StartupGate::new(StartMode::Plain, vec![true, true]);
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
        let gate = StartupGate::new(StartMode::Plain, vec![true, true, false]);
        gate.settle(2, &failed());
        gate.settle(0, &Report::default());
        assert!(!gate.admits(0) && !gate.admits(2) && !gate.is_ready());
        gate.settle(1, &Report::default());
        assert!(gate.admits(0) && gate.admits(1) && gate.admits(2) && gate.is_ready());
        let gate = StartupGate::new(StartMode::Plain, vec![true, false]);
        gate.settle(0, &Report::default());
        assert!(gate.admits(0) && !gate.admits(1));
    }

    #[test]
    fn startup_gate_in_tolerant_mode_waits_for_the_source_of_a_call() {
        let gate = StartupGate::new(StartMode::Tolerant, vec![true, true]);
        assert!(!gate.admits(0));
        gate.settle(0, &failed());
        assert!(gate.admits(0) && !gate.admits(1) && !gate.is_ready());
    }

    #[tokio::test]
    async fn startup_gate_without_required_sources_is_open() {
        let gate = StartupGate::new(StartMode::Plain, vec![false]);
        assert!(gate.outcome().await.refuse.is_none());
        assert!(gate.is_ready());
    }
}

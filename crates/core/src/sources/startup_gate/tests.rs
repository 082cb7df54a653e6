//! The outcome of a start and the state of the gate, for reports in any order.

use super::*;
use broker_drift::{Class, Finding, FindingSeverity, SourceDrift, ToolDrift, unchecked};
use broker_model::{NodePath, SourceCause};

use StartRule::{Match, MatchIfReached, Optional, Reach, Withdraw};

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

/// Returns the outcome for the reports of two sources, `/s0` and `/s1`.
async fn refusal(mode: StartMode, mut reports: [Report; 2]) -> (Option<RefusalCause>, bool) {
    for (number, report) in reports.iter_mut().enumerate() {
        for one in &mut report.sources {
            one.source = NodePath::parse(&format!("/s{number}")).unwrap();
        }
    }
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
    assert_eq!(gate.state(1), GateState::Closed);
    gate.settle(0, &Report::default());
    assert!(gate.admits(0) && !gate.admits(1));
    assert_eq!(gate.state(1), GateState::Awaited);
    gate.stop_waiting(|_| failed());
    assert_eq!(gate.state(1), GateState::Awaited);
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

/// Returns the outcome of a start after the last awaited source: whether it is refused, and the state of the gate for
/// each source.
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
    // Drift found later neither opens the gate nor refuses the start.
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
    // After a failure, and after the wait of the gate.
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
    use GateState::Awaited;
    let gate = StartupGate::new(StartMode::Tolerant, vec![MatchIfReached, Match]);
    assert_eq!(gate.state(0), Awaited);
    gate.stop_waiting(|_| failed());
    assert_eq!((gate.state(0), gate.state(1)), (Awaited, Awaited));
    assert!(!gate.is_ready());
    gate.settle(1, &Report::default());
    assert!(gate.is_ready());
}

#[test]
fn startup_gate_that_only_withdraws_admits_each_source_by_its_verdict() {
    use GateState::{Awaited, Open};
    let gate = StartupGate::new(StartMode::Plain, vec![Withdraw, Withdraw, Optional]);
    assert!(!gate.settle(0, &of_class(Class::Gone)).is_strict);
    assert_eq!(gate.state(0), Open);
    assert_eq!((gate.state(1), gate.state(2)), (Awaited, Awaited));
    assert!(!gate.is_ready() && !gate.is_single_attempt(1));
    // It was open before, so this call does not open it.
    assert!(!gate.stop_waiting(|_| failed()));
    assert!(gate.is_ready());
    assert_eq!(ended(&gate), (None, [Open, Awaited, Awaited]));
    gate.settle(1, &failed());
    gate.settle(2, &of_class(Class::Text));
    assert_eq!(ended(&gate), (None, [Open, Open, Open]));
}

#[test]
fn startup_gate_stays_for_sources_that_withdraw_while_another_may_refuse() {
    use GateState::{Awaited, Open};
    let start = || StartupGate::new(StartMode::Plain, vec![Withdraw, Match]);
    let gate = start();
    gate.settle(0, &of_class(Class::Gone));
    assert_eq!(gate.state(0), Awaited, "a refused start executes nothing");
    assert!(gate.settle(1, &Report::default()).opened);
    assert_eq!(ended(&gate), (None, [Open, Open]));
    assert!(
        gate.strict_reports()
            .iter()
            .all(|report| !report.has_drift())
    );
    let gate = start();
    gate.settle(0, &of_class(Class::Gone));
    gate.settle(1, &of_class(Class::Text));
    assert_eq!(ended::<0>(&gate).0, Some(RefusalCause::Drift));
    assert_eq!(gate.state(0), Awaited);
}

#[test]
fn startup_gate_with_a_source_that_must_be_reached_ignores_its_drift_only() {
    use GateState::{Awaited, Open};
    let start = || StartupGate::new(StartMode::Plain, vec![Reach, Withdraw]);
    let gate = start();
    assert!(gate.is_single_attempt(0) && !gate.is_single_attempt(1));
    gate.stop_waiting(|_| failed());
    assert_eq!((gate.state(0), gate.state(1)), (Awaited, Awaited));
    assert!(gate.settle(0, &of_class(Class::Security)).opened);
    assert_eq!(ended(&gate), (None, [Open, Awaited]));
    let gate = start();
    gate.settle(1, &Report::default());
    gate.settle(0, &failed());
    assert_eq!(ended::<0>(&gate).0, Some(RefusalCause::Unchecked));
}

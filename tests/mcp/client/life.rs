//! A supervised source through any history of good and bad starts, calls, deaths, callers that leave,
//! announced changes and a stop in the middle of it all.

use std::sync::Arc;
use std::time::Duration;

use broker_mcp::{CallFailure, DriftCheck, Instance, ServerCall, State, Status, Verdict};
use broker_model::Snapshot;
use proptest::prelude::*;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use super::common::{ServerFixture, WAIT_TIMEOUT, is_alive};

/// Starts as `$DIR/mode` says; a call does what its arguments say.
const SERVER: &str = r#"
echo $$ >> $DIR/starts
case $(cat $DIR/mode) in
  broken) exit 4;;
  evil) tools='{"name":"evil","inputSchema":{"type":"object"}}';;
esac
call() {
  case $line in
    *die*) exit 9;;
    *hang*) :;;
    *news*) say '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'; ok '{}';;
    *) ok '{}';;
  esac
}
"#;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The behaviour of the next start.
    Mode(&'static str),
    /// So many calls at once, and all are waited for.
    Calls(&'static str, usize),
    /// A call whose caller goes away.
    Leave,
    Pause(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let mode = prop_oneof![3 => Just("good"), 1 => Just("broken"), 1 => Just("evil")];
    let act =
        prop_oneof![3 => Just("echo"), 2 => Just("die"), 1 => Just("hang"), 1 => Just("news")];
    let step = prop_oneof![
        2 => mode.prop_map(Step::Mode),
        4 => (act, 1usize..4).prop_map(|(act, count)| Step::Calls(act, count)),
        1 => Just(Step::Leave),
        1 => (0u64..60).prop_map(Step::Pause),
    ];
    prop::collection::vec(step, 1..10)
}

struct NoEvil;

impl DriftCheck for NoEvil {
    fn check(&self, snapshot: &Snapshot) -> Verdict {
        match snapshot.tools.iter().any(|tool| tool.name() == "evil") {
            true => Verdict::WithdrawSource {
                message: "it lists `evil`".to_owned(),
            },
            false => Verdict::Serve,
        }
    }
}

type Outcome = Result<String, CallFailure>;

/// One call with a unique number, which must end soon after its timeout.
fn call(source: &Instance, act: &str, number: u64) -> JoinHandle<Outcome> {
    let (source, args) = (
        source.clone(),
        format!("{{\"n\":{number},\"do\":\"{act}\"}}"),
    );
    let time = match act {
        "hang" => Duration::from_millis(150),
        _ => WAIT_TIMEOUT,
    };
    tokio::spawn(async move {
        let call = source.call(ServerCall::new("echo", args.as_bytes()), time);
        let result = tokio::time::timeout(time + WAIT_TIMEOUT, call).await;
        let result = result.expect("a call ends with its time")?;
        Ok(String::from_utf8(result.result.to_vec()).expect("results are UTF-8"))
    })
}

/// The conditions for every status.
fn check_status(status: &Status, before: &Status) {
    let state = status.state;
    assert!(
        before.state != State::Stopping || state == State::Stopping,
        "it came back"
    );
    assert!(status.attempts >= before.attempts && status.restarts >= before.restarts);
    assert!(status.verdicts >= before.verdicts && status.restarts <= status.attempts);
    match state {
        State::Ready => assert!(status.failure.is_none() && status.next_attempt.is_none()),
        State::Backoff => assert!(status.failure.is_some() && status.next_attempt.is_some()),
        State::Failed | State::Withdrawn => {
            assert!(status.failure.is_some() && status.next_attempt.is_none());
        }
        State::Starting | State::Stopping => assert!(status.next_attempt.is_none()),
    }
}

/// The conditions for a call, given the log of the servers.
fn check_call(number: u64, act: &str, outcome: &Outcome, log: &str) {
    let executed = log.matches(&format!("{{\"n\":{number},")).count();
    assert!(executed <= 1, "call {number} was sent {executed} times");
    match outcome {
        Ok(result) => assert_eq!((result.as_str(), executed), ("{}", 1)),
        Err(failure) => {
            assert!(
                failure.maybe_executed() || executed == 0,
                "{failure:?} was denied"
            );
            let fits = match failure {
                CallFailure::Timeout { .. } => act == "hang",
                CallFailure::Exited { .. }
                | CallFailure::Unavailable { .. }
                | CallFailure::Stopping => true,
                _ => false,
            };
            assert!(fits, "{act}: {failure:?}");
        }
    }
}

async fn play(steps: Vec<Step>) {
    let fixture = ServerFixture::new();
    let set_mode = |mode: &str| std::fs::write(fixture.file("mode"), mode).expect("it is written");
    set_mode("good");
    let tasks = TaskTracker::new();
    let source = Instance::start(fixture.server(SERVER), None, Arc::new(NoEvil), &tasks);
    let mut status = source.status();
    let watcher = tokio::spawn(async move {
        let mut before = status.borrow().clone();
        while status.changed().await.is_ok() {
            let now = status.borrow_and_update().clone();
            check_status(&now, &before);
            before = now;
        }
    });
    let (mut number, mut done) = (0, Vec::new());
    let mut next = || {
        number += 1;
        number
    };
    for step in steps {
        match step {
            Step::Mode(mode) => set_mode(mode),
            Step::Calls(act, count) => {
                let calls: Vec<_> = (0..count)
                    .map(|_| next())
                    .map(|number| (number, call(&source, act, number)))
                    .collect();
                for (number, task) in calls {
                    done.push((number, act, task.await.expect("it does not panic")));
                }
            }
            Step::Leave => {
                let task = call(&source, "hang", next());
                tokio::task::yield_now().await;
                task.abort();
            }
            Step::Pause(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
        }
    }
    let last: Vec<_> = ["hang", "echo", "die"]
        .map(|act| (next(), act))
        .into_iter()
        .map(|(number, act)| (number, act, call(&source, act, number)))
        .collect();
    let stopped = tokio::time::timeout(WAIT_TIMEOUT, source.stop()).await;
    stopped.expect("a stop is bounded");
    for (number, act, task) in last {
        done.push((number, act, task.await.expect("it does not panic")));
    }
    assert_eq!(source.status().borrow().state, State::Stopping);
    assert!(matches!(
        call(&source, "echo", next())
            .await
            .expect("it does not panic"),
        Err(CallFailure::Stopping)
    ));
    let log = fixture.read("log");
    for (number, act, outcome) in &done {
        check_call(*number, act, outcome, &log);
    }
    for pid in fixture.read("starts").lines() {
        assert!(!is_alive(pid), "process {pid} is left");
    }
    drop(source);
    let watched = tokio::time::timeout(WAIT_TIMEOUT, watcher).await;
    watched
        .expect("the status ends with the source")
        .expect("every status held");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        max_shrink_iters: 20,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn source_keeps_its_invariants_in_any_history(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(play(steps));
    }
}

//! A supervised source: checked, restarted, woken, checked again, stopped.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use broker_mcp::{
    CallFailure, ConcurrencyLimits, DriftCheck, Instance, ServerCall, SourceSpec, State, Status,
    Verdict,
};
use broker_model::{Snapshot, SourceCause};
use tokio_util::task::TaskTracker;

use super::common::{ServerFixture, WAIT_TIMEOUT, eventually, is_alive, process_mut};

/// Withdraws a source that lists a tool named `evil`.
#[derive(Default)]
struct NoEvil {
    checked: AtomicU64,
}

impl DriftCheck for NoEvil {
    fn check(&self, snapshot: &Snapshot) -> Verdict {
        self.checked.fetch_add(1, Ordering::SeqCst);
        if snapshot.tools.iter().any(|tool| tool.name() == "evil") {
            let message = "it lists `evil`".to_owned();
            return Verdict::WithdrawSource { message };
        }
        Verdict::Serve
    }
}

/// Counts the listings that are checked at one time. Each check waits a moment for a fifth one.
#[derive(Default)]
struct ConcurrentChecks {
    counts: Mutex<Counts>,
    entered: Condvar,
}

#[derive(Default)]
struct Counts {
    now: usize,
    most: usize,
}

impl DriftCheck for ConcurrentChecks {
    fn check(&self, _: &Snapshot) -> Verdict {
        let mut counts = self.counts.lock().expect("no test thread panics with it");
        counts.now += 1;
        counts.most = counts.most.max(counts.now);
        self.entered.notify_all();
        let moment = Duration::from_millis(300);
        let waited = self
            .entered
            .wait_timeout_while(counts, moment, |counts| counts.most <= 4);
        waited.expect("no test thread panics with it").0.now -= 1;
        Verdict::Serve
    }
}

fn start(launch: SourceSpec) -> Instance {
    Instance::start(
        launch,
        None,
        Arc::new(NoEvil::default()),
        &TaskTracker::new(),
    )
}

async fn until(source: &Instance, condition: impl FnMut(&Status) -> bool) -> Status {
    let mut status = source.status();
    let waiting = tokio::time::timeout(WAIT_TIMEOUT, status.wait_for(condition)).await;
    waiting
        .expect("in time")
        .expect("the source is there")
        .clone()
}

async fn call(source: &Instance) -> Result<String, CallFailure> {
    let result = source
        .call(ServerCall::new("echo", b"{}"), WAIT_TIMEOUT)
        .await?;
    Ok(String::from_utf8(result.result.to_vec()).expect("results are UTF-8"))
}

#[tokio::test]
async fn source_call_waits_for_the_start_and_stop_is_idempotent() {
    let fixture = ServerFixture::new();
    let source = start(fixture.server("echo $$ > $DIR/pid"));
    assert!(call(&source).await.unwrap().contains("hi"));
    let status = until(&source, |status| status.state == State::Ready).await;
    assert_eq!(
        (status.attempts, status.verdicts, status.restarts),
        (1, 1, 0)
    );
    assert_eq!(status.counters.calls(), 1);
    tokio::join!(source.stop(), source.stop());
    source.stop().await;
    assert!(!is_alive(&fixture.read("pid")));
    assert!(matches!(call(&source).await, Err(CallFailure::Stopping)));
    until(&source, |status| status.state == State::Stopping).await;
}

#[tokio::test]
async fn source_that_dies_is_restarted_and_checked_again() {
    let fixture = ServerFixture::new();
    let source = start(fixture.server("call() { case $line in *die*) exit 9;; esac; ok '{}'; }"));
    assert_eq!(call(&source).await.unwrap(), "{}");
    let failure = source
        .call(ServerCall::new("die", b"{}"), WAIT_TIMEOUT)
        .await
        .unwrap_err();
    let CallFailure::Exited {
        failure,
        maybe_executed: true,
    } = failure
    else {
        panic!("{failure:?}")
    };
    assert_eq!(failure.exit.unwrap().code, Some(9));
    assert_eq!(
        call(&source).await.unwrap(),
        "{}",
        "a call waits for the restart"
    );
    let status = until(&source, |status| status.state == State::Ready).await;
    assert_eq!(
        (status.attempts, status.verdicts, status.restarts),
        (2, 2, 1)
    );
    assert_eq!(status.counters.failures(), 1);
    source.stop().await;
    assert_eq!(
        fixture.read("log").matches("server/discover").count(),
        1,
        "the agreed era is tried first"
    );
}

#[tokio::test]
async fn source_in_a_crash_loop_backs_off_and_reports_the_cause() {
    let fixture = ServerFixture::new();
    let mut launch = fixture.launch("echo x >> $DIR/starts; echo broken >&2; exit 4");
    launch.timing.backoff = Duration::from_secs(3600);
    launch.timing.backoff_cap = Duration::from_secs(3600);
    let source = start(launch);
    let status = until(&source, |status| status.state == State::Backoff).await;
    assert_eq!((status.attempts, status.verdicts), (1, 0));
    assert!(status.next_attempt.is_some());
    let Err(CallFailure::Unavailable {
        failure,
        retry_after: Some(_),
    }) = call(&source).await
    else {
        panic!("not unavailable")
    };
    assert_eq!(failure.cause, SourceCause::ExitBeforeReady);
    assert_eq!(failure.stderr, ["broken"]);
    assert_eq!(
        fixture.read("starts").lines().count(),
        2,
        "one process for each era, then none"
    );
    source.stop().await;
}

#[tokio::test]
async fn source_call_too_short_for_a_restart_reports_the_cause() {
    let fixture = ServerFixture::new();
    let mut launch = fixture.launch("echo broken >&2; exit 4");
    // A call may wake it after about a second, for which one with more time would wait.
    launch.timing.backoff = Duration::from_millis(1200);
    let source = start(launch);
    for state in [State::Backoff, State::Starting, State::Backoff] {
        until(&source, |status| status.state == state).await;
    }
    let time = Duration::from_millis(200);
    let result = source.call(ServerCall::new("echo", b"{}"), time).await;
    let Err(CallFailure::Unavailable { failure, .. }) = result else {
        panic!("{result:?}")
    };
    assert_eq!(failure.cause, SourceCause::ExitBeforeReady);
    source.stop().await;
}

#[tokio::test]
async fn source_in_backoff_is_started_once_by_many_calls() {
    let fixture = ServerFixture::new();
    let mut launch = fixture.server("echo x >> $DIR/starts\n[ -e $DIR/fixed ] || exit 1");
    // Long enough that only a call can bring it back; the gap between wishes is five seconds at most.
    launch.timing.backoff = Duration::from_secs(3600);
    launch.timing.backoff_cap = Duration::from_secs(3600);
    launch.timing.close_grace = Duration::from_millis(10);
    let source = start(launch);
    until(&source, |status| status.state == State::Backoff).await;
    let before = fixture.read("starts").lines().count();
    std::fs::write(fixture.file("fixed"), "").unwrap();
    let woken = async {
        loop {
            match tokio::join!(call(&source), call(&source), call(&source)) {
                (Ok(a), Ok(b), Ok(c)) => return (a, b, c),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, woken)
        .await
        .expect("it is woken");
    assert_eq!(fixture.read("starts").lines().count(), before + 1);
    source.stop().await;
}

#[tokio::test]
async fn source_with_a_missing_command_is_not_retried() {
    let fixture = ServerFixture::new();
    let mut launch = fixture.launch("");
    process_mut(&mut launch).program = "no-such-server".to_owned();
    process_mut(&mut launch).search =
        vec![fixture.folder().to_owned(), fixture.folder().to_owned()];
    std::fs::write(fixture.file("no-such"), "").unwrap();
    std::fs::write(fixture.file("no-such-serve"), "").unwrap();
    let source = start(launch);
    let status = until(&source, |status| status.state == State::Failed).await;
    assert_eq!(status.next_attempt, None);
    let failure = status.failure.unwrap();
    assert_eq!(failure.cause, SourceCause::SpawnNotFound);
    assert!(
        failure.message.contains("did you mean `no-such-serve`?"),
        "{failure}"
    );
    let folder = fixture.folder().to_string_lossy().into_owned();
    assert_eq!(failure.message.matches(&folder).count(), 1, "{failure}");
    let result = call(&source).await;
    assert!(
        matches!(
            result,
            Err(CallFailure::Unavailable {
                retry_after: None,
                ..
            })
        ),
        "{result:?}"
    );
    source.stop().await;
}

#[tokio::test]
async fn source_with_announced_changes_is_withdrawn_and_restored() {
    let fixture = ServerFixture::new();
    let source = start(fixture.server(
        r#"changed() { say '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'; }
        call() { case $line in
            *'"turn"'*) tools='{"name":"evil"}'; changed;;
            *'"back"'*) tools='{"name":"echo"}';;
            *'"storm"'*) i=0; while [ $i -lt 200 ]; do changed; i=$((i+1)); done;;
        esac; ok '{}'; }
        other() { case $line in *'"cancelled"'*) ;; esac; }
        list() { ok "{\"tools\":[$tools]}"; case $tools in *evil*) tools='{"name":"echo"}'; sleep 0.3; changed;; esac; }"#,
    ));
    assert_eq!(call(&source).await.unwrap(), "{}");
    source
        .call(ServerCall::new("turn", b"{}"), WAIT_TIMEOUT)
        .await
        .unwrap();
    let status = until(&source, |status| status.state == State::Withdrawn).await;
    assert_eq!(status.failure.unwrap().cause, SourceCause::DriftSource);
    // The server says by itself that it is as before.
    let status = until(&source, |status| status.state == State::Ready).await;
    assert!(status.failure.is_none());
    let before = until(&source, |status| status.verdicts >= 3).await.verdicts;
    source
        .call(ServerCall::new("storm", b"{}"), WAIT_TIMEOUT)
        .await
        .unwrap();
    let after = until(&source, |status| status.verdicts > before).await;
    assert_eq!(after.restarts, 0);
    source.stop().await;
    let listed = fixture.read("log").matches("tools/list").count();
    assert!(
        listed < 100,
        "a storm is checked a few times only, not {listed}"
    );
}

#[tokio::test]
async fn source_with_an_invalid_list_is_not_served_and_keeps_its_process() {
    let fixture = ServerFixture::new();
    let source = start(fixture.server(
        r#"list() { [ -z "$odd" ] && ok '{"tools":[{"name":"echo"}]}' || ok '{}'; }
        call() { odd=1; say '{"method":"notifications/tools/list_changed"}'; ok '{}'; }"#,
    ));
    assert_eq!(call(&source).await.unwrap(), "{}");
    let status = until(&source, |status| status.failure.is_some()).await;
    assert_eq!(status.failure.unwrap().cause, SourceCause::ListInvalid);
    assert_eq!(status.restarts, 0);
    source.stop().await;
}

#[tokio::test]
async fn source_stopped_during_its_start_leaves_no_process() {
    let fixture = ServerFixture::new();
    let source =
        start(fixture.launch("echo $$ > $DIR/pid; trap '' TERM; while :; do sleep 1; done"));
    eventually("it runs", || is_alive(&fixture.read("pid"))).await;
    source.stop().await;
    assert!(!is_alive(&fixture.read("pid")));
}

#[tokio::test]
async fn source_stop_when_expedited_shortens_every_grace() {
    for hurry_first in [true, false] {
        let fixture = ServerFixture::new();
        // The server ignores the end of its input and TERM; so does what it left in its group.
        let mut launch = fixture.server(
            "trap '' TERM; echo $$ > $DIR/pid
            (while :; do sleep 1; done) & echo $! > $DIR/child
            after() { while :; do sleep 1; done; }",
        );
        launch.timing.close_grace = Duration::from_secs(3600);
        launch.timing.term_grace = Duration::from_secs(3600);
        let source = start(launch);
        call(&source).await.unwrap();
        let soon = source.stop_within(Duration::from_millis(300));
        let stopped = async {
            if hurry_first {
                soon.await;
            } else {
                let mut status = source.status();
                let stopping = async {
                    let began = status.wait_for(|status| status.state == State::Stopping);
                    began.await.expect("the source is there");
                    soon.await;
                };
                tokio::join!(source.stop(), stopping);
            }
        };
        tokio::time::timeout(WAIT_TIMEOUT, stopped)
            .await
            .expect("soon");
        for name in ["pid", "child"] {
            assert!(!is_alive(&fixture.read(name)), "{name}");
        }
    }
}

#[tokio::test]
async fn source_subscription_that_ends_is_renewed_and_the_list_checked() {
    let fixture = ServerFixture::new();
    // It ends the first one with an answer, the second with a cancellation, and keeps the third.
    let source = start(fixture.server(
        r#"discover() { modern; }
        other() { case $line in *'"subscriptions/listen"'*)
            n=$((n+1))
            case $n in
                1) sub=$id;;
                2) say "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":$id}}";;
            esac;;
        esac; }
        call() { ok '{"resultType":"complete"}'; [ -n "$sub" ] && id=$sub && sub= && ok '{"resultType":"complete"}'; }"#,
    ));
    call(&source).await.unwrap();
    // The first verdict, and one for each time that it was opened again.
    let status = until(&source, |status| status.verdicts >= 3).await;
    assert_eq!((status.state, status.restarts), (State::Ready, 0));
    let count = || fixture.read("log").matches("subscriptions/listen").count();
    eventually("it is open for the third time", || count() == 3).await;
    source.stop().await;
    assert_eq!(count(), 3);
}

#[tokio::test]
async fn source_subscription_that_always_ends_is_given_up() {
    let fixture = ServerFixture::new();
    let mut launch = fixture.server(
        r#"discover() { modern; }
        other() { case $line in *'"subscriptions/listen"'*) err -32601 'no such method';; esac; }"#,
    );
    launch.timing.backoff = Duration::from_millis(1);
    launch.timing.backoff_cap = Duration::from_millis(2);
    let source = start(launch);
    let count = || fixture.read("log").matches("subscriptions/listen").count();
    eventually("it was asked some times", || count() >= 9).await;
    assert!(call(&source).await.is_ok());
    source.stop().await;
    assert_eq!(count(), 9);
}

#[tokio::test]
async fn source_session_handle_never_reaches_the_next_process() {
    let fixture = ServerFixture::new();
    let source = start(fixture.server("call() { case $line in *die*) exit 9;; esac; ok '{}'; }"));
    let session = source.session(WAIT_TIMEOUT).await.unwrap();
    assert!(
        session
            .call(ServerCall::new("die", b"{}"), WAIT_TIMEOUT)
            .await
            .is_err()
    );
    until(&source, |status| {
        status.state == State::Ready && status.restarts == 1
    })
    .await;
    let result = session
        .call(ServerCall::new("echo", b"{}"), WAIT_TIMEOUT)
        .await;
    assert!(
        matches!(
            result,
            Err(CallFailure::Exited {
                maybe_executed: false,
                ..
            })
        ),
        "{result:?}"
    );
    assert!(source.ready().is_some());
    let status = source.status().borrow().clone();
    let counters = status.counters;
    assert_eq!((counters.calls(), counters.failures()), (2, 2));
    drop(session);
    source.stop().await;
    assert!(source.ready().is_none());
    assert!(matches!(
        source.session(WAIT_TIMEOUT).await,
        Err(CallFailure::Stopping)
    ));
}

#[tokio::test]
async fn source_call_waiting_for_a_failed_check_gets_its_failure() {
    let fixture = ServerFixture::new();
    let mut launch = fixture.server(
        r#"list() { [ -z "$dead" ] || exit 3; ok '{"tools":[{"name":"echo"}]}'; }
        call() { case $line in
            *turn*) dead=1; say '{"method":"notifications/tools/list_changed"}';;
        esac; }"#,
    );
    launch.max_in_flight = 1;
    let source = start(launch);
    let session = source.session(WAIT_TIMEOUT).await.unwrap();
    // One call is at the server, the other waits for its place.
    let (first, second) = tokio::join!(
        session.call(ServerCall::new("turn", b"{}"), WAIT_TIMEOUT),
        session.call(ServerCall::new("echo", b"{}"), WAIT_TIMEOUT)
    );
    for (result, executed) in [(first, true), (second, false)] {
        let Err(CallFailure::Exited {
            failure,
            maybe_executed,
        }) = result
        else {
            panic!("{result:?}")
        };
        assert_eq!(failure.cause, SourceCause::Exited, "{failure}");
        assert_eq!(maybe_executed, executed);
    }
    drop(session);
    source.stop().await;
}

#[tokio::test]
async fn source_result_with_invalid_utf8_is_repaired_and_marked() {
    let fixture = ServerFixture::new();
    let source = start(fixture.server(
        r#"call() { case $line in
            *bad*) printf '{"jsonrpc":"2.0","id":%s,"result":{"t":"\377"}}\n' "$id";;
            *) ok '{"t":"fine"}';;
        esac; }"#,
    ));
    let bad = source
        .call(ServerCall::new("bad", b"{}"), WAIT_TIMEOUT)
        .await
        .unwrap();
    assert_eq!(
        (&bad.result[..], bad.repaired),
        ("{\"t\":\"\u{fffd}\"}".as_bytes(), true)
    );
    let fine = source
        .call(ServerCall::new("echo", b"{}"), WAIT_TIMEOUT)
        .await
        .unwrap();
    assert!(!fine.repaired);
    assert_eq!(source.status().borrow().counters.invalid_utf8_lines(), 1);
    source.stop().await;
}

#[tokio::test]
async fn source_polls_wait_for_calls_of_a_sequential_server() {
    let fixture = ServerFixture::new();
    let mut launch =
        fixture.server(r#"call() { echo begun >> $LOG; sleep 2; echo ended >> $LOG; ok '{}'; }"#);
    launch.relist_interval = Some(Duration::from_millis(50));
    let source = start(launch);
    let (first, second) = tokio::join!(call(&source), call(&source));
    assert_eq!(
        (first.unwrap().as_str(), second.unwrap().as_str()),
        ("{}", "{}")
    );
    let verdicts = source.status().borrow().verdicts;
    let status = until(&source, |status| status.verdicts >= verdicts + 2).await;
    assert_eq!((status.state, status.restarts), (State::Ready, 0));
    source.stop().await;
    let log = fixture.read("log");
    let (_, within) = log.split_once("begun").unwrap();
    let (within, after) = within.rsplit_once("ended").unwrap();
    assert!(!within.contains("tools/list"), "{log}");
    assert!(after.contains("tools/list"), "{log}");
}

#[tokio::test]
async fn source_listings_are_checked_four_at_a_time() {
    let checks = Arc::new(ConcurrentChecks::default());
    let fixtures: Vec<_> = (0..8).map(|_| ServerFixture::new()).collect();
    let concurrency = ConcurrencyLimits::new();
    let sources: Vec<_> = fixtures
        .iter()
        .map(|fixture| {
            let mut spec = fixture.server("");
            spec.concurrency = concurrency.clone();
            Instance::start(spec, None, checks.clone(), &TaskTracker::new())
        })
        .collect();
    for source in &sources {
        until(source, |status| status.state == State::Ready).await;
        source.stop().await;
    }
    let most = checks.counts.lock().unwrap().most;
    assert!(most <= 4, "{most} listings were checked at one time");
}

//! A supervised source: judged, restarted, woken, checked again, stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use broker_mcp::{CallFailure, Judge, Launch, Source, State, Status, Verdict};
use broker_model::snapshot::tool_name;
use broker_model::{Snapshot, SourceCause};
use tokio_util::task::TaskTracker;

use crate::common::{PATIENCE, Scene, eventually, is_alive};

/// Withdraws a source that lists a tool named `evil`.
#[derive(Default)]
struct NoEvil {
    judged: AtomicU64,
}

impl Judge for NoEvil {
    fn judge(&self, snapshot: &Snapshot) -> Verdict {
        self.judged.fetch_add(1, Ordering::SeqCst);
        if snapshot.tools.iter().any(|tool| tool_name(tool) == "evil") {
            let message = "it lists `evil`".to_owned();
            return Verdict::WithdrawSource { message };
        }
        Verdict::Serve
    }
}

fn start(launch: Launch) -> Source {
    Source::start(
        launch,
        None,
        Arc::new(NoEvil::default()),
        &TaskTracker::new(),
    )
}

async fn until(source: &Source, condition: impl FnMut(&Status) -> bool) -> Status {
    let mut status = source.status();
    let waiting = tokio::time::timeout(PATIENCE, status.wait_for(condition)).await;
    waiting
        .expect("in time")
        .expect("the source is there")
        .clone()
}

async fn call(source: &Source) -> Result<String, CallFailure> {
    let result = source.call("echo", b"{}", PATIENCE).await?;
    Ok(String::from_utf8(result.to_vec()).expect("results are UTF-8"))
}

#[tokio::test]
async fn a_call_waits_for_the_start_and_stop_is_idempotent() {
    let scene = Scene::new();
    let source = start(scene.server("echo $$ > $DIR/pid"));
    assert!(call(&source).await.unwrap().contains("hi"));
    let status = until(&source, |status| status.state == State::Ready).await;
    assert_eq!(
        (status.attempts, status.verdicts, status.restarts),
        (1, 1, 0)
    );
    assert_eq!(status.counters.calls(), 1);
    tokio::join!(source.stop(), source.stop());
    source.stop().await;
    assert!(!is_alive(&scene.read("pid")));
    assert!(matches!(call(&source).await, Err(CallFailure::Stopping)));
    until(&source, |status| status.state == State::Stopping).await;
}

#[tokio::test]
async fn f_06_a_server_that_dies_is_started_and_judged_again() {
    let scene = Scene::new();
    let source = start(scene.server("call() { case $line in *die*) exit 9;; esac; ok '{}'; }"));
    assert_eq!(call(&source).await.unwrap(), "{}");
    let failure = source.call("die", b"{}", PATIENCE).await.unwrap_err();
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
        scene.read("log").matches("server/discover").count(),
        1,
        "the agreed era is tried first"
    );
}

#[tokio::test]
async fn f_27_a_crash_loop_backs_off_and_callers_learn_why() {
    let scene = Scene::new();
    let mut launch = scene.launch("echo x >> $DIR/starts; echo broken >&2; exit 4");
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
        scene.read("starts").lines().count(),
        2,
        "one process for each era, then none"
    );
    source.stop().await;
}

#[tokio::test]
async fn a_call_wakes_a_source_in_backoff_and_many_wake_it_once() {
    let scene = Scene::new();
    let mut launch = scene.server("echo x >> $DIR/starts\n[ -e $DIR/fixed ] || exit 1");
    // Long enough that only a call can bring it back; the gap between wishes is five seconds at most.
    launch.timing.backoff = Duration::from_secs(3600);
    launch.timing.backoff_cap = Duration::from_secs(3600);
    launch.timing.close_grace = Duration::from_millis(10);
    let source = start(launch);
    until(&source, |status| status.state == State::Backoff).await;
    let before = scene.read("starts").lines().count();
    std::fs::write(scene.file("fixed"), "").unwrap();
    let woken = async {
        loop {
            match tokio::join!(call(&source), call(&source), call(&source)) {
                (Ok(a), Ok(b), Ok(c)) => return (a, b, c),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, woken)
        .await
        .expect("it is woken");
    assert_eq!(scene.read("starts").lines().count(), before + 1);
    source.stop().await;
}

#[tokio::test]
async fn f_01_a_missing_command_is_not_tried_again_by_itself() {
    let scene = Scene::new();
    let mut launch = scene.launch("");
    launch.program = "no-such-server".to_owned();
    launch.search = vec![scene.folder().to_owned()];
    std::fs::write(scene.file("no-such-serve"), "").unwrap();
    let source = start(launch);
    let status = until(&source, |status| status.state == State::Failed).await;
    assert_eq!(status.next_attempt, None);
    let failure = status.failure.unwrap();
    assert_eq!(failure.cause, SourceCause::SpawnNotFound);
    assert!(
        failure.message.contains("did you mean `no-such-serve`?"),
        "{failure}"
    );
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
async fn f_33_announced_changes_are_checked_and_a_source_comes_and_goes_by_its_verdict() {
    let scene = Scene::new();
    let source = start(scene.server(
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
    source.call("turn", b"{}", PATIENCE).await.unwrap();
    let status = until(&source, |status| status.state == State::Withdrawn).await;
    assert_eq!(status.failure.unwrap().cause, SourceCause::DriftSource);
    // The server says by itself that it is as before.
    let status = until(&source, |status| status.state == State::Ready).await;
    assert!(status.failure.is_none());
    let before = until(&source, |status| status.verdicts >= 3).await.verdicts;
    source.call("storm", b"{}", PATIENCE).await.unwrap();
    let after = until(&source, |status| status.verdicts > before).await;
    assert_eq!(after.restarts, 0);
    source.stop().await;
    let listed = scene.read("log").matches("tools/list").count();
    assert!(
        listed < 100,
        "a storm is checked a few times only, not {listed}"
    );
}

#[tokio::test]
async fn a_source_that_can_no_longer_be_listed_is_not_served() {
    let scene = Scene::new();
    let source = start(scene.server(
        r#"call() { tools='{"name":""}'; say '{"method":"notifications/tools/list_changed"}'; ok '{}'; }"#,
    ));
    assert_eq!(call(&source).await.unwrap(), "{}");
    let status = until(&source, |status| status.failure.is_some()).await;
    assert_eq!(status.failure.unwrap().cause, SourceCause::ListInvalid);
    until(&source, |status| {
        status.state == State::Ready && status.restarts > 0
    })
    .await;
    source.stop().await;
}

#[tokio::test]
async fn stopping_in_the_middle_of_a_start_leaves_nothing_behind() {
    let scene = Scene::new();
    let source = start(scene.launch("echo $$ > $DIR/pid; trap '' TERM; while :; do sleep 1; done"));
    eventually("it runs", || is_alive(&scene.read("pid"))).await;
    source.stop().await;
    assert!(!is_alive(&scene.read("pid")));
}

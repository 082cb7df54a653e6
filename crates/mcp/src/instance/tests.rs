//! The times of repeated listings of a running source, and the state of a source whose listing fails: over scripted
//! servers, with a paused clock.

use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use broker_model::{Snapshot, SourceCause};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::TaskTracker;

use super::*;
use crate::Pipes;
use crate::test_spec::scripted_source;

const HOUR: Duration = Duration::from_secs(3600);
const STARTUP_TIMEOUT: Duration = Duration::from_secs(20);

/// The orders to a scripted server, and a record of its requests.
struct ScriptedServer {
    /// Whether listings are answered; unanswered ones are answered when this becomes true.
    lists: watch::Sender<bool>,
    /// Counts the announcements that it makes.
    announced: watch::Sender<u64>,
    /// Whether the server does not answer while it works on a call.
    one_at_a_time: bool,
    start: Instant,
    /// When it was asked for a listing, in seconds.
    asked: Mutex<Vec<f64>>,
}

impl ScriptedServer {
    fn new(one_at_a_time: bool) -> Arc<Self> {
        Arc::new(Self {
            lists: watch::Sender::new(true),
            announced: watch::Sender::new(0),
            one_at_a_time,
            start: Instant::now(),
            asked: Mutex::default(),
        })
    }

    fn asked(&self) -> Vec<f64> {
        self.asked.lock().unwrap().clone()
    }

    fn announce(&self) {
        self.announced.send_modify(|count| *count += 1);
    }

    async fn serve(self: Arc<Self>, pipes: Pipes) -> i32 {
        let mut lines = BufReader::new(pipes.input).lines();
        let (heard, mut requests) = tokio::sync::mpsc::channel::<Value>(64);
        let server = self.clone();
        // Requests are recorded when they arrive, also during a call.
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let line: Value = serde_json::from_str(&line).unwrap();
                if line["method"] == "tools/list" {
                    let now = server.start.elapsed().as_secs_f64();
                    server.asked.lock().unwrap().push(now);
                }
                if heard.send(line).await.is_err() {
                    return;
                }
            }
        });
        let (answers, mut answered) = tokio::sync::mpsc::channel::<Value>(64);
        let (mut lists, mut announced) = (self.lists.subscribe(), self.announced.subscribe());
        let mut output = pipes.output;
        let mut owed = Vec::new();
        loop {
            let mut say = tokio::select! {
                line = requests.recv() => match line {
                    Some(line) => self.take(line, &answers, &mut owed).await,
                    None => return 0,
                },
                answer = answered.recv() => answer.into_iter().collect(),
                _ = announced.changed() => {
                    vec![json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})]
                }
                _ = lists.changed() => Vec::new(),
            };
            if *self.lists.borrow() {
                say.extend(owed.drain(..).map(|id| answer(&id, listing())));
            }
            for message in say {
                let line = format!("{message}\n");
                if output.write_all(line.as_bytes()).await.is_err() {
                    return 0;
                }
            }
        }
    }

    async fn take(
        &self,
        line: Value,
        answers: &tokio::sync::mpsc::Sender<Value>,
        owed: &mut Vec<Value>,
    ) -> Vec<Value> {
        let id = line["id"].clone();
        match line["method"].as_str().unwrap() {
            "initialize" => vec![answer(
                &id,
                json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {"listChanged": true}},
                    "serverInfo": {"name": "scripted"},
                }),
            )],
            "server/discover" => {
                let error = json!({"code": -32601, "message": "no such method"});
                vec![json!({"jsonrpc": "2.0", "id": id, "error": error})]
            }
            "tools/list" => {
                owed.push(id);
                Vec::new()
            }
            "tools/call" => {
                let seconds = line["params"]["arguments"]["seconds"].as_u64().unwrap();
                let work = sleep(Duration::from_secs(seconds));
                let done = answer(&id, json!({"content": []}));
                if self.one_at_a_time {
                    work.await;
                    return vec![done];
                }
                let answers = answers.clone();
                tokio::spawn(async move {
                    work.await;
                    answers.send(done).await.ok();
                });
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}

fn answer(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn listing() -> Value {
    json!({"tools": [{"name": "work", "inputSchema": {"type": "object"}}]})
}

struct Accept;

impl DriftCheck for Accept {
    fn check(&self, _: &Snapshot) -> Verdict {
        Verdict::Serve
    }
}

/// A state and its cause.
type Shown = (State, Option<SourceCause>);

/// A source over a scripted server, and all its states since it was first ready.
struct SourceFixture {
    server: Arc<ScriptedServer>,
    source: Instance,
    states: Arc<Mutex<Vec<Shown>>>,
}

impl SourceFixture {
    async fn new(one_at_a_time: bool, relist_interval: Option<Duration>) -> Self {
        let server = ScriptedServer::new(one_at_a_time);
        let served = server.clone();
        let spec = SourceSpec {
            startup_timeout: STARTUP_TIMEOUT,
            relist_interval,
            ..scripted_source(move |pipes| served.clone().serve(pipes))
        };
        let source = Instance::start(spec, None, Arc::new(Accept), &TaskTracker::new());
        let mut status = source.status();
        let ready = status.wait_for(|status| status.state == State::Ready);
        timeout(HOUR, ready).await.unwrap().unwrap();
        let states = Arc::new(Mutex::new(vec![READY]));
        let seen = states.clone();
        tokio::spawn(async move {
            while status.changed().await.is_ok() {
                let status = status.borrow_and_update();
                let cause = status.failure.as_ref().map(|failure| failure.cause);
                let now = (status.state, cause);
                let mut seen = seen.lock().unwrap();
                if seen.last() != Some(&now) {
                    seen.push(now);
                }
            }
        });
        Self {
            server,
            source,
            states,
        }
    }

    fn call(&self, seconds: u64) -> JoinHandle<Result<RawResult, CallFailure>> {
        let source = self.source.clone();
        tokio::spawn(async move {
            let args = format!("{{\"seconds\":{seconds}}}");
            source
                .call(ServerCall::new("work", args.as_bytes()), HOUR)
                .await
        })
    }

    async fn until(&self, condition: impl FnMut(&Status) -> bool) -> Status {
        let mut status = self.source.status();
        let waiting = timeout(24 * HOUR, status.wait_for(condition)).await;
        waiting.expect("in time").unwrap().clone()
    }

    fn is_ready(&self) -> bool {
        self.source.status().borrow().state == State::Ready
    }

    fn states(&self) -> Vec<Shown> {
        self.states.lock().unwrap().clone()
    }
}

const READY: Shown = (State::Ready, None);
const PENDING: Shown = (State::Starting, Some(SourceCause::RecheckPending));

#[tokio::test(start_paused = true)]
async fn announced_listing_that_is_late_refuses_new_calls_and_loses_none() {
    let fixture = SourceFixture::new(false, None).await;
    let under_way = fixture.call(100);
    sleep(Duration::from_secs(1)).await;
    fixture.server.lists.send_replace(false);
    fixture.server.announce();
    let announced = Instant::now();
    sleep(Duration::from_secs(9)).await;
    assert!(
        fixture.call(0).await.unwrap().is_ok(),
        "for ten seconds calls are served on"
    );
    let status = fixture.until(Status::is_recheck_pending).await;
    assert_eq!(announced.elapsed().as_secs(), 10);
    assert_eq!(status.restarts, 0);
    let refused = fixture.call(0).await.unwrap();
    let Err(CallFailure::Unavailable {
        failure,
        retry_after: Some(_),
    }) = refused
    else {
        panic!("{refused:?}")
    };
    assert_eq!(failure.cause, SourceCause::RecheckPending);
    assert!(
        under_way.await.unwrap().is_ok(),
        "a call under way finishes"
    );
    assert!(fixture.source.status().borrow().is_recheck_pending());
    fixture.server.lists.send_replace(true);
    let status = fixture.until(|status| status.state == State::Ready).await;
    assert_eq!(
        (status.restarts, status.attempts, status.verdicts),
        (0, 1, 2)
    );
    assert!(fixture.call(0).await.unwrap().is_ok());
    fixture.source.stop().await;
}

#[tokio::test(start_paused = true)]
async fn announced_listing_that_is_late_ends_only_an_idle_process() {
    let fixture = SourceFixture::new(false, None).await;
    let under_way = fixture.call(600);
    sleep(Duration::from_secs(1)).await;
    fixture.server.lists.send_replace(false);
    fixture.server.announce();
    assert!(under_way.await.unwrap().is_ok());
    assert_eq!(
        fixture.states(),
        [READY, PENDING],
        "ten minutes later it runs on"
    );
    let idle = Instant::now();
    fixture.server.lists.send_replace(true);
    fixture.server.lists.send_replace(false);
    fixture.server.announce();
    let status = fixture.until(|status| status.state == State::Backoff).await;
    assert!(idle.elapsed() >= STARTUP_TIMEOUT, "{:?}", idle.elapsed());
    assert_eq!(status.failure.unwrap().cause, SourceCause::ListFailed);
    fixture.server.lists.send_replace(true);
    let status = fixture.until(|status| status.state == State::Ready).await;
    assert_eq!(status.restarts, 1);
    fixture.source.stop().await;
}

#[tokio::test(start_paused = true)]
async fn announcements_without_end_fall_to_a_listing_a_minute() {
    let fixture = SourceFixture::new(false, None).await;
    let until = Instant::now() + HOUR;
    while Instant::now() < until {
        fixture.server.announce();
        sleep(Duration::from_millis(500)).await;
        assert!(fixture.call(0).await.unwrap().is_ok());
    }
    let listings = fixture.server.asked().len();
    assert!(
        (140..=170).contains(&listings),
        "{listings} listings in an hour"
    );
    assert_eq!(fixture.states(), [READY]);
    fixture.source.stop().await;
}

#[tokio::test(start_paused = true)]
async fn poll_of_an_idle_source_repeats_every_five_minutes_with_jitter() {
    let interval = Duration::from_secs(300);
    let fixture = SourceFixture::new(true, Some(interval)).await;
    sleep(10 * HOUR).await;
    let asked = fixture.server.asked();
    let gaps: Vec<f64> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!((100..=150).contains(&gaps.len()), "{gaps:?}");
    assert!(
        gaps.iter().all(|gap| (239.9..=360.1).contains(gap)),
        "{gaps:?}"
    );
    let (least, most) = (
        gaps.iter().cloned().fold(f64::MAX, f64::min),
        gaps.iter().cloned().fold(0.0, f64::max),
    );
    assert!(most - least > 30.0, "from {least} to {most}");
    // A new interval takes effect at once; with no interval the source never polls.
    let settings = |relist_interval| SourceSettings {
        startup_timeout: STARTUP_TIMEOUT,
        relist_interval,
    };
    fixture.source.set(settings(None));
    let before = fixture.server.asked().len();
    sleep(10 * HOUR).await;
    assert_eq!(fixture.server.asked().len(), before);
    fixture.source.set(settings(Some(Duration::from_secs(10))));
    sleep(HOUR).await;
    assert!(fixture.server.asked().len() >= before + 250);
    assert_eq!(fixture.states(), [READY]);
    fixture.source.stop().await;
}

#[tokio::test(start_paused = true)]
async fn poll_of_a_sequential_server_loses_no_call() {
    let fixture = SourceFixture::new(true, Some(Duration::from_secs(1))).await;
    let mut busy = Vec::new();
    for _ in 0..50 {
        let began = fixture.server.start.elapsed().as_secs_f64();
        let call = fixture.call(30);
        assert!(call.await.unwrap().is_ok());
        busy.push((began, fixture.server.start.elapsed().as_secs_f64()));
        sleep(Duration::from_millis(2700)).await;
    }
    assert_eq!(fixture.states(), [READY]);
    let asked = fixture.server.asked();
    assert!(
        asked.len() > 50,
        "it was listed between the calls: {}",
        asked.len()
    );
    let within = |at: &&f64| {
        busy.iter()
            .any(|(from, to)| (from + 0.01..*to - 0.01).contains(*at))
    };
    let disturbed: Vec<_> = asked.iter().filter(within).collect();
    assert!(disturbed.is_empty(), "listed within a call: {disturbed:?}");
    fixture.source.stop().await;
}

#[tokio::test(start_paused = true)]
async fn poll_without_an_answer_ends_an_idle_process_after_three() {
    let fixture = SourceFixture::new(false, Some(Duration::from_secs(60))).await;
    fixture.server.lists.send_replace(false);
    // Polls with calls in flight do not count.
    for _ in 0..20 {
        let polls = fixture.server.asked().len();
        while fixture.server.asked().len() == polls {
            sleep(Duration::from_millis(100)).await;
        }
        assert!(fixture.call(1).await.unwrap().is_ok());
        sleep(Duration::from_secs(12)).await;
    }
    assert_eq!(fixture.states(), [READY]);
    let before = fixture.server.asked().len();
    while fixture.server.asked().len() < before + 3 {
        assert!(fixture.is_ready());
        sleep(Duration::from_millis(100)).await;
    }
    let status = fixture.until(|status| status.state == State::Backoff).await;
    assert_eq!(
        fixture.server.asked().len(),
        before + 3,
        "not a fourth time"
    );
    assert_eq!(status.failure.unwrap().cause, SourceCause::ListFailed);
    fixture.server.lists.send_replace(true);
    let status = fixture.until(|status| status.state == State::Ready).await;
    assert_eq!(status.restarts, 1);
    // An answered poll resets the count.
    for _ in 0..4 {
        for lists in [false, false, true] {
            fixture.server.lists.send_replace(lists);
            let polls = fixture.server.asked().len();
            while fixture.server.asked().len() == polls {
                sleep(Duration::from_millis(100)).await;
            }
            sleep(Duration::from_secs(12)).await;
        }
    }
    assert_eq!(fixture.source.status().borrow().restarts, 1);
    fixture.source.stop().await;
}

#[tokio::test(start_paused = true)]
async fn announcement_during_a_poll_causes_another_listing() {
    let fixture = SourceFixture::new(false, Some(Duration::from_secs(60))).await;
    fixture.server.lists.send_replace(false);
    let polls = fixture.server.asked().len();
    while fixture.server.asked().len() == polls {
        sleep(Duration::from_millis(100)).await;
    }
    fixture.server.announce();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(fixture.server.asked().len(), polls + 2, "listed again");
    fixture.until(Status::is_recheck_pending).await;
    fixture.server.lists.send_replace(true);
    fixture.until(|status| status.state == State::Ready).await;
    fixture.source.stop().await;
}

#[tokio::test(start_paused = true)]
async fn calls_that_choose_at_one_time_get_different_sessions() {
    let fixtures = [
        SourceFixture::new(true, None).await,
        SourceFixture::new(true, None).await,
    ];
    let sources = fixtures.each_ref().map(|fixture| fixture.source.clone());
    let handles = || {
        let sessions = sources.iter().map(|source| source.0.live().unwrap());
        sessions
            .map(|session| session.handles())
            .collect::<Vec<_>>()
    };
    let mut counts = Vec::new();
    let (choose, chosen) = (Barrier::new(2), Barrier::new(3));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    choose.wait();
                    let _handle = SessionHandle::least_busy(&sources).unwrap();
                    chosen.wait();
                    chosen.wait();
                }
            });
        }
        for _ in 0..1000 {
            chosen.wait();
            counts.push(handles());
            chosen.wait();
        }
    });
    assert!(counts.iter().all(|counts| *counts == [1, 1]), "{counts:?}");
    assert_eq!(handles(), [0, 0]);
    for fixture in fixtures {
        fixture.source.stop().await;
    }
}

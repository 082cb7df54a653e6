//! Progress and log messages of calls, over a scripted server with a paused clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use broker_model::redact::Redactor;
use broker_wire::LogLevel;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::*;
use crate::AskedLogLevel;
use crate::Pipes;
use crate::events::{CallEvent, CallEvents, WantedEvents};
use crate::opening::Opening;
use crate::test_spec::scripted_source;

/// A legacy server with logging. A call has in `steps` what it does: `[seconds, progress or level]`, each after
/// a wait; then it answers, unless `hang` is set.
async fn serve(pipes: Pipes, heard: Arc<Mutex<Vec<Value>>>) -> i32 {
    let mut lines = BufReader::new(pipes.input).lines();
    let (say, mut said) = mpsc::channel::<Value>(64);
    let mut output = pipes.output;
    tokio::spawn(async move {
        while let Some(message) = said.recv().await {
            if output
                .write_all(format!("{message}\n").as_bytes())
                .await
                .is_err()
            {
                return;
            }
        }
    });
    while let Ok(Some(line)) = lines.next_line().await {
        let line: Value = serde_json::from_str(&line).unwrap();
        heard.lock().unwrap().push(line.clone());
        let say = say.clone();
        tokio::spawn(async move {
            for message in answers(&line) {
                match message {
                    Ok(wait) => sleep(wait).await,
                    Err(message) => say.send(message).await.unwrap_or_default(),
                }
            }
        });
    }
    0
}

fn answers(line: &Value) -> Vec<Result<Duration, Value>> {
    let id = &line["id"];
    let answer = |result: Value| Err(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    match line["method"].as_str().unwrap() {
        "server/discover" => vec![Err(
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}),
        )],
        "initialize" => vec![answer(json!({"protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}, "logging": {}}, "serverInfo": {"name": "s"}}))],
        "logging/setLevel" => vec![answer(json!({}))],
        "tools/call" => {
            let params = &line["params"];
            let mut out = Vec::new();
            for step in params["arguments"]["steps"].as_array().unwrap() {
                out.push(Ok(Duration::from_secs(step[0].as_u64().unwrap())));
                let (method, params) = match step[1].as_str() {
                    Some(level) => ("message", json!({"level": level, "data": "text"})),
                    None => (
                        "progress",
                        json!({"progressToken": params["_meta"]["progressToken"], "progress": step[1]}),
                    ),
                };
                let method = format!("notifications/{method}");
                out.push(Err(
                    json!({"jsonrpc": "2.0", "method": method, "params": params}),
                ));
            }
            if params["arguments"].get("hang").is_none() {
                out.push(answer(json!({"content": []})));
            }
            out
        }
        _ => Vec::new(),
    }
}

struct Fixture {
    session: Session,
    asked: AskedLogLevel,
    heard: Arc<Mutex<Vec<Value>>>,
    counters: Arc<crate::Counters>,
}

async fn open() -> Fixture {
    let heard = Arc::<Mutex<Vec<Value>>>::default();
    let seen = heard.clone();
    let asked = AskedLogLevel::new();
    let spec = SourceSpec {
        log_level: asked.clone(),
        ..scripted_source(move |pipes| serve(pipes, seen.clone()))
    };
    let tail = StderrTail::new(Redactor::default());
    let counters = Arc::<crate::Counters>::default();
    let opening = Opening {
        tail: &tail,
        counters: &counters,
        tasks: &tokio_util::task::TaskTracker::new(),
        stop_deadline: &broker_process::StopDeadline::never(),
        second_try: true,
    };
    let session =
        Session::open_supervised(&spec, crate::EraHint::known(Era::Legacy), &opening).await;
    Fixture {
        session: session.unwrap(),
        asked,
        heard,
        counters,
    }
}

impl Fixture {
    async fn call(
        &self,
        args: Value,
        events: &CallEvents,
        time: CallTime,
    ) -> Result<RawResult, CallFailure> {
        let args = args.to_string();
        let call = ServerCall {
            events: Some(events),
            ..ServerCall::new("t", args.as_bytes())
        };
        self.session.call(call, time).await
    }
}

const ALL: WantedEvents = WantedEvents {
    progress: true,
    log: Some(LogLevel::Info),
};
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_TIMEOUT: Duration = Duration::from_secs(25);

fn time() -> CallTime {
    CallTime::new(TIMEOUT, TIMEOUT, MAX_TIMEOUT)
}

#[tokio::test(start_paused = true)]
async fn progress_extends_the_timeout_of_a_call_up_to_its_maximum() {
    let fixture = open().await;
    let (events, _received) = CallEvents::new(8, ALL);
    let within = json!({"steps": [[8, 1], [8, 2]]});
    fixture.call(within, &events, time()).await.unwrap();
    for (steps, seconds) in [
        (json!([[8, 1], [8, 2], [8, 3], [8, 4]]), 25),
        // The same value again is not progress.
        (json!([[8, 1], [8, 1], [8, 1]]), 18),
    ] {
        let failure = fixture
            .call(json!({"steps": steps, "hang": true}), &events, time())
            .await;
        let Err(CallFailure::Timeout {
            after, extended, ..
        }) = failure
        else {
            panic!("{failure:?}");
        };
        assert_eq!((after.as_secs(), extended), (seconds, true), "{steps}");
    }
    // Without a wish for progress there is none.
    let (silent, _received) = CallEvents::new(8, WantedEvents::default());
    let failure = fixture
        .call(json!({"steps": [[8, 1], [8, 2]]}), &silent, time())
        .await;
    assert!(
        matches!(
            failure,
            Err(CallFailure::Timeout {
                extended: false,
                ..
            })
        ),
        "{failure:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn log_message_is_passed_on_only_to_a_call_that_was_alone() {
    let fixture = open().await;
    let (events, mut received) = CallEvents::new(8, ALL);
    let steps = json!({"steps": [[1, "debug"], [1, "warning"]]});
    fixture.call(steps.clone(), &events, time()).await.unwrap();
    let Some(CallEvent::Log(message)) = received.try_recv() else {
        panic!("the message belongs to the call");
    };
    assert_eq!(
        (message.level, message.data.get()),
        (LogLevel::Warning, "\"text\"")
    );
    assert!(received.try_recv().is_none());
    assert_eq!(fixture.counters.dropped_log_messages(), 0);
    // Of two calls at one time, none gets a message.
    let (first, second) = tokio::join!(
        fixture.call(steps.clone(), &events, time()),
        fixture.call(steps.clone(), &events, time())
    );
    assert!(first.is_ok() && second.is_ok() && received.try_recv().is_none());
    assert_eq!(fixture.counters.dropped_log_messages(), 4);
    // A server may still work on a call that timed out.
    let hang = json!({"steps": [], "hang": true});
    fixture.call(hang, &events, time()).await.unwrap_err();
    fixture.call(steps, &events, time()).await.unwrap();
    assert!(received.try_recv().is_none());
    assert_eq!(fixture.counters.dropped_log_messages(), 6);
}

#[tokio::test(start_paused = true)]
async fn log_level_is_sent_to_a_legacy_server_when_it_is_lowered() {
    let fixture = open().await;
    let levels = || -> Vec<Value> {
        let heard = fixture.heard.lock().unwrap();
        let set = heard
            .iter()
            .filter(|line| line["method"] == "logging/setLevel");
        set.map(|line| line["params"]["level"].clone()).collect()
    };
    let follow = fixture.session.follow_log_level();
    let ask = async {
        sleep(Duration::from_secs(1)).await;
        assert!(levels().is_empty(), "no caller has asked");
        for level in [LogLevel::Error, LogLevel::Alert, LogLevel::Debug] {
            fixture.asked.ask(level);
            sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        never = follow => match never {},
        () = ask => {}
    }
    assert_eq!(levels(), ["error", "debug"]);
}

#[tokio::test(start_paused = true)]
async fn call_that_wants_log_messages_is_sent_after_the_log_level() {
    let fixture = open().await;
    let (events, mut received) = CallEvents::new(8, ALL);
    // Nothing has followed the level yet.
    fixture.asked.ask(LogLevel::Info);
    let steps = json!({"steps": [[0, "info"]]});
    for _ in 0..2 {
        fixture.call(steps.clone(), &events, time()).await.unwrap();
        let event = received.try_recv();
        assert!(matches!(event, Some(CallEvent::Log(_))), "{event:?}");
    }
    let heard = fixture.heard.lock().unwrap();
    let methods: Vec<_> = heard.iter().map(|line| line["method"].clone()).collect();
    let last = methods.len() - 3;
    assert_eq!(
        methods[last..],
        ["logging/setLevel", "tools/call", "tools/call"]
    );
}

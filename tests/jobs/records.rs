//! What the audit log and traces say of jobs.

use std::fs;

use harness::otlp::{OtlpReceiver, SpanKind};
use harness::{Bench, Broker, wait_until};
use serde_json::{Value, json};

use crate::stage::{Caller, bench, executed, kill, run, serve};

/// A folder with a durable store and an audit log.
fn audited(jobs: &Value) -> Bench {
    bench(jobs, &json!({"audit": {"file": "audit.jsonl"}}))
}

/// Ends a broker, and returns the lines that name a job, sorted: the kind, the outcome and the code. The log keeps the order
/// of the lines of one call only.
fn lines(bench: &Bench, broker: Broker, id: &str) -> Vec<(String, Value, Value)> {
    let (status, log) = broker.terminate();
    assert!(status.success(), "{log}");
    let text = fs::read_to_string(bench.path("audit.jsonl")).expect("the log");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut named: Vec<_> = lines
        .filter(|line| line["parent"]["job"] == id)
        .map(|line| {
            assert_eq!(line["actor"]["kind"], "anonymous", "{line}");
            assert!(
                line["target"]["path"]
                    .as_str()
                    .expect("a path")
                    .starts_with("/a/"),
                "{line}"
            );
            assert!(line["target"]["digest"].is_string(), "{line}");
            let kind = line["kind"].as_str().expect("a kind").to_owned();
            (kind, line["outcome"].clone(), line["code"].clone())
        })
        .collect();
    named.sort_by_key(|(kind, outcome, _)| (kind.clone(), outcome.to_string()));
    named
}

fn line(kind: &str, outcome: Value, code: Value) -> (String, Value, Value) {
    (kind.to_owned(), outcome, code)
}

#[test]
fn job_has_lines_from_its_creation_to_its_end() {
    let bench = audited(&json!({"store": "jobs.sqlite"}));
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    // A tool that changes nothing: its call has no begin line unless it is the run of a job.
    let id = caller.make("quick", json!({"n": 1}));
    assert_eq!(caller.end(&id)["status"], "succeeded");
    assert_eq!(
        lines(&bench, broker, &id),
        [
            line("call_begin", json!(null), json!(null)),
            line("call_end", json!("accepted"), json!(null)),
            line("call_end", json!("ok"), json!(null)),
            line("job_claimed", json!(null), json!(null)),
            line("job_ended", json!("succeeded"), json!(null)),
        ]
    );
}

#[test]
fn promoted_call_has_the_lines_of_a_job() {
    let bench = audited(&json!({"store": "jobs.sqlite", "promote_after": 1}));
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    let promoted = caller.call("long", json!({"args": {"n": 1}, "mode": "auto"}));
    assert_eq!(promoted.status, 202, "{}", promoted.text());
    let id = promoted.json()["job_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let cancelled = caller.send("DELETE", &format!("/jobs/{id}"), &[], "");
    assert_eq!(cancelled.status, 200, "{}", cancelled.text());
    caller.wait(&id, &["canceled"]);
    assert_eq!(
        lines(&bench, broker, &id),
        [
            line("call_end", json!("accepted"), json!(null)),
            line("job_claimed", json!(null), json!(null)),
            line("job_ended", json!("canceled"), json!(null)),
        ]
    );
}

#[test]
fn job_that_a_crash_lost_and_one_that_never_ran_have_an_end() {
    let bench = audited(&json!({"store": "jobs.sqlite"}));
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    let sent: Vec<_> = (0..4)
        .map(|n| caller.make("long", json!({"n": n})))
        .collect();
    wait_until("the server has the calls", || {
        executed(&bench, "long").len() == 4
    });
    let waiting = caller.make("long", json!({"n": 9}));
    let cancelled = caller.send("DELETE", &format!("/jobs/{waiting}"), &[], "");
    assert_eq!(cancelled.status, 200, "{}", cancelled.text());
    kill(broker);

    let broker = serve(&bench);
    Caller::of(&broker).wait(&sent[0], &["lost"]);
    let text = || fs::read_to_string(bench.path("audit.jsonl")).expect("the log");
    wait_until("the jobs that were lost have lines", || {
        text().matches("\"outcome\":\"lost\"").count() == 4
    });
    let of_lost = lines(&bench, broker, &sent[0]);
    assert!(
        of_lost.contains(&line("job_ended", json!("lost"), json!("job_lost"))),
        "{of_lost:?}"
    );
    let of_waiting = text();
    let of_waiting: Vec<&str> = of_waiting
        .lines()
        .filter(|line| line.contains(&format!("\"job\":\"{waiting}\"")))
        .collect();
    let is_claimed = |line: &&&str| line.contains("job_claimed") || line.contains("call_begin");
    assert_eq!(of_waiting.iter().filter(is_claimed).count(), 0);
    let is_cancelled = |line: &&&str| line.contains("job_ended") && line.contains("canceled");
    assert_eq!(of_waiting.iter().filter(is_cancelled).count(), 1);
}

#[test]
fn span_of_a_run_links_the_call_that_made_the_job() {
    let bench = bench(
        &json!({"store": "jobs.sqlite"}),
        &json!({"telemetry": {"otlp": true}}),
    );
    let receiver = OtlpReceiver::start();
    let broker = Broker::start_ready(
        run(&bench)
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url())
            .env("OTEL_BSP_SCHEDULE_DELAY", "20"),
    );
    let caller = Caller::of(&broker);
    let id = caller.make("quick", json!({"n": 1}));
    caller.end(&id);
    let spans = receiver.await_spans(3);
    let of = |kind: SpanKind| {
        spans
            .iter()
            .filter(move |span| span.kind == i32::from(kind))
    };
    let [made, run] = of(SpanKind::Server).collect::<Vec<_>>()[..] else {
        panic!("one span of the call and one of the run: {spans:#?}");
    };
    assert!(made.links.is_empty());
    assert_ne!(made.trace_id, run.trace_id);
    let [link] = &run.links[..] else {
        panic!("one link: {run:#?}");
    };
    assert_eq!(
        (&link.trace_id, &link.span_id),
        (&made.trace_id, &made.span_id)
    );
    let sent: Vec<_> = of(SpanKind::Client).collect();
    assert_eq!(sent.len(), 1, "the call that made the job was not sent");
    assert_eq!(sent[0].parent_span_id, run.span_id);
    let call = bench.journal("a", "call").pop().expect("a call");
    let traceparent = call["meta"]["traceparent"].as_str().expect("a context");
    let digits: String = run
        .trace_id
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert!(traceparent.contains(&digits), "{traceparent}");
}

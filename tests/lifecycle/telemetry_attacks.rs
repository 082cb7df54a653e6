//! What may not reach a span, a line or a metric, and callers and receivers that do harm to traces, metrics and their export.

use std::io::Read as _;
use std::net::TcpListener;
use std::thread;

use harness::mcp_http::modern;
use harness::otlp::{attribute, body};
use harness::{Broker, KeepAlive, request};
use serde_json::{Value, json};

use crate::traces::{CANARY, Stage, call, params, parent};

#[test]
fn canary_in_arguments_results_headers_keys_and_texts_reaches_no_span_log_or_metric() {
    let stage = Stage::new(&json!({"parent": "meta"}), |config| {
        config["audit"] = json!({"file": "audit.jsonl"});
    });
    let run = stage.run("127.0.0.1:0");
    let headers = format!("authorization={CANARY}-key");
    let broker = Broker::start_ready(run.env("OTEL_EXPORTER_OTLP_HEADERS", headers));
    let meta = json!({"traceparent": parent(1), "tracestate": format!("a={CANARY}"), "baggage": format!("b={CANARY}"), "x/y": CANARY});
    let bearer = format!("Bearer {CANARY}");
    let headers = [
        ("Content-Type", "application/json"),
        ("X-Other", CANARY),
        ("Tracestate", CANARY),
        ("Baggage", CANARY),
        ("User-Agent", CANARY),
    ];
    let ask = |path: &str, headers: &[(&str, &str)]| {
        let call = json!({"path": path, "args": {"text": CANARY}, "meta": meta}).to_string();
        request(
            broker.address(),
            "POST",
            "/meta_call",
            headers,
            call.as_bytes(),
        )
    };
    let answer = ask("/a/echo", &headers);
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains(CANARY), "the result has it");
    ask("/a/fail", &headers);
    let refused = ask(&format!("/a/{CANARY}"), &headers);
    assert_eq!(refused.status, 404);
    ask(
        "/a/echo",
        &[&headers[..], &[("Authorization", &bearer)]].concat(),
    );
    let error = json!({"rpc_error": {"code": -32000, "message": CANARY, "data": CANARY}});
    stage
        .chaos
        .script("a", &json!({"on_call": {"echo": error}}));
    ask("/a/echo", &headers);
    stage.receiver.await_spans(7);
    let (status, log) = broker.terminate();
    assert!(status.success(), "{log}");
    let received = stage.receiver.received();
    assert!(received.logs.len() > 5 && !received.metrics.is_empty());
    let spans = format!("{:?}{:?}", received.spans, received.metrics);
    assert!(!spans.contains(CANARY), "{spans}");
    // One place has it: the path of the call that named no entry. A refused call would otherwise not say what was tried.
    let lines = received.logs.iter().map(body);
    let with_it: Vec<_> = lines.filter(|line| line.contains(CANARY)).collect();
    let [line] = &with_it[..] else {
        panic!("one line has it: {with_it:#?}");
    };
    let mut line: Value = serde_json::from_str(line).expect("a line is JSON");
    assert_eq!(line["code"], "path_not_found");
    assert_eq!(line["target"], json!({"path": format!("/a/{CANARY}")}));
    line["target"] = Value::Null;
    assert!(!line.to_string().contains(CANARY), "{line}");
    let text = String::from_utf8_lossy(&received.bytes);
    assert_eq!(
        text.matches(CANARY).count(),
        1,
        "nothing else that was sent has it"
    );
    let in_log: Vec<_> = log.lines().filter(|line| line.contains(CANARY)).collect();
    let named = format!("path=\"/a/{CANARY}\"");
    for line in &in_log {
        assert_eq!(
            line.replace(&named, "").matches(CANARY).count(),
            0,
            "{line}"
        );
    }
}

/// The number of calls that fill the queue of spans, which has 4096 places, beside those that wait to be sent.
const FILLING_CALLS: usize = 4800;

#[test]
fn receiver_that_never_answers_fills_the_queue_and_holds_up_no_call() {
    let stage = Stage::new(&json!({}), |_| {});
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = silent.local_addr().expect("it is bound");
    // It takes connections and what they send, and never answers.
    thread::spawn(move || {
        for stream in silent.incoming().flatten() {
            thread::spawn(move || {
                let (mut stream, mut bytes) = (stream, [0; 4096]);
                while stream.read(&mut bytes).is_ok_and(|read| read > 0) {}
            });
        }
    });
    let run = stage
        .run("127.0.0.1:0")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"))
        .env("OTEL_METRICS_EXPORTER", "none");
    let broker = Broker::start_ready(run);
    let fill = || {
        let mut connection = KeepAlive::open(broker.address());
        for _ in 0..FILLING_CALLS / 4 {
            let answer = connection.post("/meta_call", &json!({"path": "/a/nothing"}));
            assert_eq!(answer.expect("an answer").status, 404);
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(fill);
        }
    });
    assert_eq!(call(&broker, "/a/echo", &[], None), 200);
    let page = broker.get("/metrics").text();
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix("mcp_broker_telemetry_dropped_total{what=\"spans\"} "));
    let dropped: usize = line.expect("the counter").parse().expect("a number");
    assert!(dropped > 0 && dropped <= FILLING_CALLS, "{dropped}");
    let (status, log) = broker.terminate();
    assert!(status.success(), "{log}");
    let named = log.matches("spans are dropped and counted").count();
    assert_eq!(named, 1, "the log names it once");
}

#[test]
fn hostile_contexts_are_not_accepted_and_end_no_call() {
    let stage = Stage::new(&json!({"parent": "meta"}), |_| {});
    let broker = stage.start();
    let long = "a".repeat(64 << 10);
    let good = parent(1);
    // Headers of this length are refused, or not read; in `_meta` the call goes on with what it has.
    for (name, value) in [
        ("Traceparent", long.clone()),
        ("Traceparent", format!("{good}-{}", "a".repeat(4000))),
        ("Tracestate", long.clone()),
        ("Baggage", format!("k={long}")),
    ] {
        let headers = [("Traceparent", good.as_str()), (name, value.as_str())];
        let headers = match name {
            "Traceparent" => &headers[1..],
            _ => &headers[..],
        };
        let status = call(&broker, "/a/echo", headers, None);
        assert!([200, 431].contains(&status), "{name}: {status}");
    }
    for meta in [
        json!({"traceparent": long}),
        json!({"traceparent": good, "tracestate": long, "baggage": long}),
        json!({"traceparent": "00-\u{0}\u{1b}[2J-00f067aa0ba902b7-01"}),
        json!({"traceparent": [good]}),
    ] {
        let status = call(&broker, "/a/echo", &[], Some(meta));
        assert!([200, 400].contains(&status), "{status}");
    }
    // An id of control characters is one visible line.
    let id = json!("\u{0}\u{1b}]0;x\u{7}\r\n\u{202e}\u{200b}");
    let answer = modern(
        broker.address(),
        "/mcp",
        &id,
        "tools/call",
        &params(json!({})),
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    let id_of = |span: &harness::otlp::Span| attribute(&span.attributes, "jsonrpc.request.id");
    harness::wait_until("the span with the id comes", || {
        let spans = stage.receiver.received().spans;
        spans.iter().any(|span| id_of(span).is_some())
    });
    let spans = stage.receiver.received().spans;
    for span in &spans {
        for text in span
            .attributes
            .iter()
            .filter_map(|it| attribute(&span.attributes, &it.key))
        {
            assert!(text.chars().count() <= 256 + 2048, "{text}");
            assert!(!text.chars().any(char::is_control), "{text:?}");
            assert!(!text.contains(['\u{202e}', '\u{200b}']), "{text:?}");
        }
        assert!(span.trace_state.len() <= 512);
    }
    assert_eq!(call(&broker, "/a/echo", &[], None), 200);
}

#[test]
fn ten_thousand_methods_make_no_series() {
    let stage = Stage::new(&json!({}), |_| {});
    let broker = stage.start();
    let address = broker.address();
    let page = || broker.get("/metrics").text();
    let series = |page: &str| page.lines().filter(|line| !line.starts_with('#')).count();
    let before = series(&page());
    thread::scope(|scope| {
        for part in 0..4 {
            scope.spawn(move || {
                let mut connection = KeepAlive::open(address);
                for number in 0..2500 {
                    let method = format!("m{part}-{number}");
                    let message = json!({"jsonrpc": "2.0", "id": number, "method": method});
                    let call = json!({"path": format!("/{method}"), "args": {}});
                    let answered = match number % 2 {
                        0 => connection.post("/mcp", &message),
                        _ => connection.post("/meta_call", &call),
                    };
                    if answered.is_none() {
                        connection = KeepAlive::open(address);
                    }
                }
            });
        }
    });
    let page = page();
    let after = series(&page);
    // A code that was not counted before has its first series, and so has a tool that is not known.
    assert!(
        after <= before + 48,
        "{before} series before, {after} after"
    );
    assert!(!page.contains("m3-2"), "{page}");
}

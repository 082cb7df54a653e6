//! Traces, metrics and audit lines of a running broker, as an OpenTelemetry receiver gets them.

use std::io::Write as _;

use harness::access::KEY;
use harness::mcp_http::{EventReader, McpSession, modern};
use harness::otlp::{Data, OtlpReceiver, Span, SpanKind, attribute, body, digits};
use harness::websocket::WebSocketClient;
use harness::{Broker, Chaos, HttpSources, Run, http_script, request, send, wait_until};
use serde_json::{Value, json};

use crate::config::changed;

/// The digest of [`KEY`].
const DIGEST: &str = "4d261f8d9d76cd9d1b954b97e010a476f548a358d86a15e6f14a8a7723cd61a7";
pub(crate) const CANARY: &str = "canary-4711";
const CALLER_SPAN: &str = "00f067aa0ba902b7";

/// Returns the trace of this number.
pub(crate) fn trace(number: u32) -> String {
    format!("4bf92f3577b34da6a3ce929d{number:08x}")
}

/// Returns the context of a caller in that trace.
pub(crate) fn parent(number: u32) -> String {
    format!("00-{}-{CALLER_SPAN}-01", trace(number))
}

/// A broker over scripted processes that exports to a receiver.
pub(crate) struct Stage {
    pub(crate) chaos: Chaos,
    config: String,
    pub(crate) receiver: OtlpReceiver,
}

impl Stage {
    pub(crate) fn new(telemetry: &Value, change: impl FnOnce(&mut Value)) -> Self {
        let chaos = Chaos::new();
        let config = changed(&chaos, |config| {
            config["telemetry"] = telemetry.clone();
            config["telemetry"]["otlp"] = json!(true);
            change(config);
        });
        Self {
            chaos,
            config,
            receiver: OtlpReceiver::start(),
        }
    }

    pub(crate) fn run(&self, first: &str) -> Run {
        let run = self.chaos.run(
            "chaos-broker",
            &[first, &self.config, "--log-level", "debug"],
        );
        exporting(&self.receiver)
            .into_iter()
            .fold(run, |run, (name, value)| run.env(name, value))
    }

    pub(crate) fn start(&self) -> Broker {
        Broker::start_ready(self.run("127.0.0.1:0"))
    }

    /// Returns the `_meta` of the latest call of `/a`.
    pub(crate) fn sent_meta(&self) -> Value {
        let call = self.chaos.events("a", "call").pop().expect("a call");
        call["meta"].clone()
    }
}

/// Returns the variables of a broker that exports to a receiver soon.
fn exporting(receiver: &OtlpReceiver) -> Vec<(&'static str, String)> {
    vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url()),
        ("OTEL_BSP_SCHEDULE_DELAY", "20".to_owned()),
        ("OTEL_BLRP_SCHEDULE_DELAY", "20".to_owned()),
        ("OTEL_METRIC_EXPORT_INTERVAL", "50".to_owned()),
    ]
}

/// Makes a call with more headers; returns its status.
pub(crate) fn call(
    broker: &Broker,
    path: &str,
    headers: &[(&str, &str)],
    meta: Option<Value>,
) -> u16 {
    let args = match path.ends_with("/echo") {
        true => json!({"text": "x"}),
        false => json!({}),
    };
    let mut call = json!({"path": path, "args": args});
    if let Some(meta) = meta {
        call["meta"] = meta;
    }
    let headers = [&[("Content-Type", "application/json")], headers].concat();
    let call = call.to_string();
    request(
        broker.address(),
        "POST",
        "/meta_call",
        &headers,
        call.as_bytes(),
    )
    .status
}

pub(crate) fn params(meta: Value) -> Value {
    json!({"name": "meta_call", "arguments": {"path": "/a/echo", "args": {"text": "x"}}, "_meta": meta})
}

/// Returns the two spans of a trace.
pub(crate) fn pair(spans: &[Span], trace_id: &str) -> (Span, Span) {
    let of = |kind: SpanKind| {
        let mut found = spans
            .iter()
            .filter(|span| digits(&span.trace_id) == trace_id && span.kind == i32::from(kind));
        let span = found.next();
        assert!(found.next().is_none(), "a trace has one {kind:?} span");
        span.unwrap_or_else(|| panic!("trace {trace_id} has a {kind:?} span: {spans:#?}"))
            .clone()
    };
    (of(SpanKind::Server), of(SpanKind::Client))
}

/// Checks that the caller, both spans and the server have one trace.
pub(crate) fn is_one_trace(spans: &[Span], number: u32, sent: &Value) {
    let (server, client) = pair(spans, &trace(number));
    assert_eq!(digits(&server.parent_span_id), CALLER_SPAN);
    assert_eq!(client.parent_span_id, server.span_id);
    let expected = format!("00-{}-{}-01", trace(number), digits(&client.span_id));
    assert_eq!(sent["traceparent"], expected, "{sent}");
    assert!(server.start_time_unix_nano <= client.start_time_unix_nano);
    assert!(client.end_time_unix_nano <= server.end_time_unix_nano);
}

#[test]
fn one_trace_goes_from_client_through_every_surface_to_a_process() {
    let stage = Stage::new(&json!({"parent": "meta"}), |config| {
        config["surfaces"] = json!({"sse": true});
    });
    let broker = stage.start();
    let address = broker.address();
    let mut sent = Vec::new();
    let mut done = |number: u32| sent.push((number, stage.sent_meta()));
    let meta = |number| json!({"traceparent": parent(number), "tracestate": "a=b", "x/y": 1});

    assert_eq!(call(&broker, "/a/echo", &[], Some(meta(1))), 200);
    done(1);
    assert_eq!(
        call(&broker, "/a/echo", &[("Traceparent", &parent(2))], None),
        200
    );
    done(2);
    let session = McpSession::begin(address, "/mcp");
    session.result("tools/call", &params(meta(3)));
    done(3);
    let answer = modern(address, "/mcp", &json!(1), "tools/call", &params(meta(4)));
    assert_eq!(answer.status, 200, "{}", answer.text());
    done(4);
    let mut socket = WebSocketClient::connect(address, "/ws/mcp");
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "0"}});
    socket.result("initialize", &hello);
    socket.result("tools/call", &params(meta(5)));
    done(5);
    let head = format!("GET /sse HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n");
    let mut stream = EventReader::open(send(address, head.as_bytes()));
    let endpoint = stream.next_data().expect("the event `endpoint`");
    let mut over_sse = |id: u64, method: &str, params: &Value, headers: &[(&str, &str)]| {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let headers = [&[("Content-Type", "application/json")], headers].concat();
        let message = message.to_string();
        let taken = request(address, "POST", &endpoint, &headers, message.as_bytes());
        assert_eq!(taken.status, 202, "{}", taken.text());
        stream.next_message().expect("an answer")
    };
    let mut hello = hello;
    hello["protocolVersion"] = json!("2024-11-05");
    over_sse(0, "initialize", &hello, &[]);
    over_sse(1, "tools/call", &params(meta(6)), &[]);
    done(6);
    over_sse(
        2,
        "tools/call",
        &params(json!({})),
        &[("Traceparent", &parent(7))],
    );
    done(7);

    let spans = stage.receiver.await_spans(14);
    for (number, meta) in &sent {
        is_one_trace(&spans, *number, meta);
        // What came with the context stays, and so do other members.
        if ![2, 7].contains(number) {
            assert_eq!(
                (&meta["tracestate"], &meta["x/y"]),
                (&json!("a=b"), &json!(1))
            );
        }
    }
    let (server, client) = pair(&spans, &trace(1));
    assert_eq!(server.name, "tools/call /a/echo");
    assert_eq!(client.name, "tools/call echo");
    for (span, key, value) in [
        (&server, "mcp.method.name", "tools/call"),
        (&server, "gen_ai.tool.name", "/a/echo"),
        (&server, "gen_ai.operation.name", "execute_tool"),
        (&server, "network.transport", "tcp"),
        (&server, "client.address", "127.0.0.1"),
        (&server, "mcp_broker.source", "/a"),
        (&client, "mcp.method.name", "tools/call"),
        (&client, "gen_ai.tool.name", "echo"),
        (&client, "network.transport", "pipe"),
    ] {
        let found = attribute(&span.attributes, key);
        assert_eq!(found.as_deref(), Some(value), "{key}");
    }
    assert_eq!(attribute(&server.attributes, "error.type"), None);
}

#[test]
fn one_trace_goes_from_standard_input_to_a_process() {
    let stage = Stage::new(&json!({}), |_| {});
    let mut broker = stage.run("stdio").spawn_with_input();
    let mut stdin = broker.stdin.take().expect("it is piped");
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "0"}});
    let meta = json!({"traceparent": parent(1)});
    for (id, method, params) in [(1, "initialize", hello), (2, "tools/call", params(meta))] {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(stdin, "{message}").expect("the broker reads");
    }
    let is_sent = |spans: &[Span]| {
        let mut spans = spans.iter();
        spans.any(|span| span.kind == i32::from(SpanKind::Client))
    };
    wait_until("the receiver gets the spans", || {
        is_sent(&stage.receiver.received().spans)
    });
    // The first attempt may have come before the start.
    let mut spans = stage.receiver.received().spans;
    spans.retain(|span| attribute(&span.attributes, "error.type").as_deref() != Some("starting"));
    is_one_trace(&spans, 1, &stage.sent_meta());
    let (server, _) = pair(&spans, &trace(1));
    for (key, value) in [
        ("network.transport", "pipe"),
        ("mcp.protocol.version", "2025-11-25"),
        ("jsonrpc.request.id", "2"),
    ] {
        let found = attribute(&server.attributes, key);
        assert_eq!(found.as_deref(), Some(value), "{key}");
    }
    assert_eq!(attribute(&server.attributes, "client.port"), None);
    drop(stdin);
    assert!(broker.wait().expect("it ends").success());
}

#[test]
fn one_trace_goes_to_servers_over_http_in_meta_and_in_headers() {
    for (number, (era, http)) in [
        ("legacy", json!({})),
        ("modern", json!({})),
        ("legacy", json!({"transport": "sse"})),
    ]
    .into_iter()
    .enumerate()
    {
        let number = u32::try_from(number).expect("a small number");
        let receiver = OtlpReceiver::start();
        let script = http_script(era, &http);
        let sources = HttpSources::with(&script, |config| {
            if http != json!({}) {
                let url = &mut config["tree"][0]["source"]["url"];
                *url = json!(url.as_str().expect("a URL").replace("/mcp", "/sse"));
            }
            config["telemetry"] = json!({"otlp": true, "parent": "http"});
        });
        let sources = exporting(&receiver)
            .into_iter()
            .fold(sources, |sources, (name, value)| {
                sources.variable(name, &value)
            });
        let stage = sources.serve(&script, &[]);
        let headers = [
            ("Traceparent", parent(number)),
            ("Tracestate", "a=b".to_owned()),
            ("Baggage", "user=1".to_owned()),
        ];
        let headers = headers
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()));
        assert_eq!(call(&stage.broker, "/a/echo", &headers, None), 200);
        let spans = receiver.await_spans(2);
        let calls = stage.chaos().events("a", "call");
        let sent = &calls.last().expect("a call")["meta"];
        is_one_trace(&spans, number, sent);
        assert_eq!(sent["tracestate"], "a=b");
        // The source is not trusted.
        assert_eq!(sent.get("baggage"), None);
        let (_, client) = pair(&spans, &trace(number));
        let port = attribute(&client.attributes, "server.port");
        assert_eq!(port.as_deref(), Some(stage.sources.a.port()));
        let server = attribute(&client.attributes, "server.address");
        assert_eq!(server.as_deref(), Some("127.0.0.1"));
        // Messages over HTTP+SSE have no headers of a call.
        if http == json!({}) {
            let requests = stage.chaos().events("a", "http");
            let with_context: Vec<_> = requests
                .iter()
                .filter(|request| request.to_string().contains("\"traceparent\""))
                .collect();
            assert_eq!(with_context.len(), 1, "only the call: {with_context:#?}");
            let headers = with_context[0]["headers"].to_string();
            let expected = sent["traceparent"].as_str().expect("a context");
            assert!(headers.contains(expected), "{headers}");
            assert!(!headers.contains("baggage"), "{headers}");
        }
    }
}

#[test]
fn unidentified_caller_gets_an_own_trace_with_a_link_and_an_identified_one_chooses() {
    let stage = Stage::new(&json!({}), |_| {});
    let broker = stage.start();
    let meta = json!({"traceparent": parent(1)});
    assert_eq!(call(&broker, "/a/echo", &[], Some(meta.clone())), 200);
    let spans = stage.receiver.await_spans(2);
    let sent = stage.sent_meta();
    let server = spans
        .iter()
        .find(|span| span.kind == i32::from(SpanKind::Server))
        .expect("a span");
    let own = digits(&server.trace_id);
    assert_ne!(own, trace(1));
    assert!(server.parent_span_id.is_empty());
    assert_eq!(server.links.len(), 1);
    assert_eq!(digits(&server.links[0].trace_id), trace(1));
    assert_eq!(digits(&server.links[0].span_id), CALLER_SPAN);
    let (_, client) = pair(&spans, &own);
    let expected = format!("00-{own}-{}-01", digits(&client.span_id));
    assert_eq!(sent["traceparent"], expected);

    // With a key: the context in `_meta` is the parent, and the one of the request is linked.
    let stage = Stage::new(&json!({}), |config| {
        config["identities"] = json!({"keys": [{"name": "ci", "sha256": DIGEST}]});
    });
    let broker = stage.start();
    let key = format!("Bearer {KEY}");
    let headers = [("Authorization", key.as_str()), ("Traceparent", &parent(2))];
    assert_eq!(call(&broker, "/a/echo", &headers, Some(meta)), 200);
    let spans = stage.receiver.await_spans(2);
    is_one_trace(&spans, 1, &stage.sent_meta());
    let (server, _) = pair(&spans, &trace(1));
    assert_eq!(server.links.len(), 1);
    assert_eq!(digits(&server.links[0].trace_id), trace(2));
}

#[test]
fn unsampled_calls_have_no_span_and_their_context_stays() {
    let stage = Stage::new(&json!({"parent": "meta"}), |_| {});
    let run = stage.run("127.0.0.1:0");
    let run = run.env("OTEL_TRACES_SAMPLER", "parentbased_traceidratio");
    let broker = Broker::start_ready(run.env("OTEL_TRACES_SAMPLER_ARG", "0"));
    let unsampled = parent(1).replace("-01", "-00");
    let meta = json!({"traceparent": unsampled});
    assert_eq!(call(&broker, "/a/echo", &[], Some(meta)), 200);
    assert_eq!(stage.sent_meta()["traceparent"], unsampled);
    let headers = [("Traceparent", unsampled.as_str())];
    assert_eq!(call(&broker, "/a/echo", &headers, None), 200);
    assert_eq!(stage.sent_meta()["traceparent"], unsampled);
    for _ in 0..20 {
        assert_eq!(call(&broker, "/a/echo", &[], None), 200);
        assert_eq!(stage.sent_meta().get("traceparent"), None);
    }
    // The flag of the accepted parent decides before the ratio.
    let meta = json!({"traceparent": parent(2)});
    assert_eq!(call(&broker, "/a/echo", &[], Some(meta)), 200);
    let sent = stage.sent_meta();
    let (status, log) = broker.terminate();
    assert!(status.success(), "{log}");
    let spans = stage.receiver.received().spans;
    assert_eq!(spans.len(), 2, "{spans:#?}");
    is_one_trace(&spans, 2, &sent);
}

#[test]
fn without_export_a_context_passes_unchanged_and_headers_are_not_read() {
    for telemetry in [json!({}), json!({"otlp": true})] {
        let chaos = Chaos::new();
        let config = changed(&chaos, |config| config["telemetry"] = telemetry.clone());
        let run = chaos.run("chaos-broker", &["127.0.0.1:0", &config]);
        let broker = Broker::start_ready(run.env("OTEL_SDK_DISABLED", "true"));
        let sent = || chaos.events("a", "call").pop().expect("a call")["meta"].clone();
        let meta = json!({"traceparent": parent(1), "baggage": "a=b"});
        let headers = [("Traceparent", parent(2))];
        let headers = headers
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()));
        assert_eq!(call(&broker, "/a/echo", &headers, Some(meta)), 200);
        assert_eq!(sent()["traceparent"], parent(1));
        assert_eq!(call(&broker, "/a/echo", &headers, None), 200);
        assert_eq!(sent().get("traceparent"), None);
    }
}

#[test]
fn propagators_decide_what_is_read_and_written() {
    for (propagators, is_read) in [
        ("none", false),
        ("baggage", false),
        ("b3,tracecontext", true),
    ] {
        let stage = Stage::new(&json!({"parent": "meta"}), |_| {});
        let run = stage
            .run("127.0.0.1:0")
            .env("OTEL_PROPAGATORS", propagators);
        let broker = Broker::start_ready(run);
        let meta = json!({"traceparent": parent(1)});
        assert_eq!(call(&broker, "/a/echo", &[], Some(meta)), 200);
        let spans = stage.receiver.await_spans(2);
        let sent = stage.sent_meta();
        let traces: Vec<_> = spans.iter().map(|span| digits(&span.trace_id)).collect();
        assert_eq!(traces.contains(&trace(1)), is_read, "{propagators}");
        // A context that is not read passes as other members do.
        assert_eq!(sent["traceparent"] == parent(1), !is_read, "{propagators}");
        let log = broker.stderr();
        assert_eq!(
            log.contains("OTEL_PROPAGATORS names `b3`"),
            is_read,
            "{log}"
        );
    }
}

#[test]
fn errors_of_calls_are_on_the_spans_that_they_concern() {
    let stage = Stage::new(&json!({}), |_| {});
    let broker = stage.start();
    let script = |code: i64| {
        let error = json!({"rpc_error": {"code": code, "message": "no"}});
        stage
            .chaos
            .script("a", &json!({"on_call": {"echo": error}}));
    };
    let mut seen = 0;
    let mut ended = |path: &str, count: usize| {
        call(&broker, path, &[], None);
        seen += count;
        let spans = stage.receiver.await_spans(seen);
        let spans = &spans[seen - count..];
        let facts = |kind: SpanKind| {
            let span = spans.iter().find(|span| span.kind == i32::from(kind))?;
            let of = |key| attribute(&span.attributes, key);
            let is_error = span.status.as_ref().is_some_and(|status| status.code == 2);
            assert_eq!(is_error, of("error.type").is_some());
            Some((of("error.type"), of("rpc.response.status_code")))
        };
        (facts(SpanKind::Server), facts(SpanKind::Client))
    };
    let text = |text: &str| Some(text.to_owned());
    script(-32602);
    let (server, client) = ended("/a/echo", 2);
    assert_eq!(server, Some((None, text("-32602"))), "the caller's mistake");
    assert_eq!(client, Some((text("-32602"), text("-32602"))));
    script(-32000);
    let (server, client) = ended("/a/echo", 2);
    assert_eq!(server, Some((text("-32000"), text("-32000"))));
    assert_eq!(client, server);
    let (server, client) = ended("/a/fail", 2);
    assert_eq!(server, Some((text("tool_error"), None)));
    assert_eq!(client, server);
    let (server, client) = ended("/a/nothing", 1);
    assert_eq!(server, Some((text("path_not_found"), None)));
    assert_eq!(client, None, "nothing was sent");
    let spans = stage.receiver.received().spans;
    let unknown = spans.last().expect("a span");
    assert_eq!(unknown.name, "tools/call");
    let name = attribute(&unknown.attributes, "gen_ai.tool.name");
    assert_eq!(name.as_deref(), Some("_unknown"));
}

#[test]
fn receiver_gets_metrics_audit_lines_and_the_standard_variables() {
    let stage = Stage::new(&json!({}), |config| {
        config["audit"] = json!({"file": "audit.jsonl"});
    });
    let run = stage.run("127.0.0.1:0");
    let run = run.env("OTEL_SERVICE_NAME", "named");
    let run = run.env(
        "OTEL_RESOURCE_ATTRIBUTES",
        "deployment.environment=test%20a",
    );
    let broker = Broker::start_ready(run.env("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=one"));
    assert_eq!(call(&broker, "/a/echo", &[], None), 200);
    stage.receiver.await_spans(2);
    let calls = || {
        let metrics = stage.receiver.received().metrics;
        let mut metrics = metrics.into_iter();
        metrics.find(|metric| metric.name == "mcp.server.operation.duration")
    };
    wait_until("the receiver gets the call", || calls().is_some());
    let metric = calls().expect("it came");
    assert_eq!(metric.unit, "s");
    let Some(Data::Histogram(histogram)) = metric.data else {
        panic!("a histogram: {metric:?}");
    };
    let point = histogram
        .data_points
        .iter()
        .find(|point| {
            attribute(&point.attributes, "gen_ai.tool.name").as_deref() == Some("/a/echo")
        })
        .expect("the tool has a series");
    assert_eq!((point.count, point.bucket_counts.iter().sum()), (1, 1));
    assert_eq!(point.explicit_bounds.len() + 1, point.bucket_counts.len());
    assert_eq!(point.explicit_bounds[0], 0.01);
    // The same counts as on the page for Prometheus, under the names of OpenTelemetry.
    let page = broker.get("/metrics").text();
    assert!(
        page.contains("mcp_broker_telemetry_dropped_total{what=\"spans\"} 0"),
        "{page}"
    );
    let names: Vec<_> = stage
        .receiver
        .received()
        .metrics
        .into_iter()
        .map(|it| it.name)
        .collect();
    for name in [
        "mcp_broker.calls",
        "mcp_broker.source.state",
        "mcp_broker.audit.seq",
    ] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    let (status, log) = broker.terminate();
    assert!(status.success(), "{log}");
    let received = stage.receiver.received();
    // Every line of the file, the last one too.
    let folder = std::path::Path::new(&stage.config)
        .parent()
        .expect("a folder");
    let file = std::fs::read_to_string(folder.join("audit.jsonl")).expect("the log");
    let lines: Vec<_> = received.logs.iter().map(body).collect();
    assert_eq!(lines, file.lines().collect::<Vec<_>>());
    let end = received
        .logs
        .iter()
        .find(|record| body(record).contains("call_end"));
    let end = end.expect("the end of the call");
    assert_eq!(end.event_name, "mcp_broker.audit");
    assert!(
        received
            .spans
            .iter()
            .all(|span| span.trace_id == end.trace_id)
    );
    assert!(body(end).contains(&digits(&end.trace_id)), "{}", body(end));
    for (key, value) in [
        ("service.name", "named"),
        ("deployment.environment", "test a"),
    ] {
        assert_eq!(attribute(&received.resource, key).as_deref(), Some(value));
    }
    assert_eq!(received.headers["x-tenant"], "one");
}

#[test]
fn receiver_that_refuses_or_is_away_holds_up_no_call_and_is_asked_again() {
    let stage = Stage::new(&json!({}), |_| {});
    stage.receiver.refuse(1);
    let run = stage
        .run("127.0.0.1:0")
        .env("OTEL_METRICS_EXPORTER", "none");
    let broker = Broker::start_ready(run);
    assert_eq!(call(&broker, "/a/echo", &[], None), 200);
    stage.receiver.await_spans(2);
    assert_eq!(stage.receiver.received().refused, 1);
    drop(broker);
    let run = stage.run("127.0.0.1:0");
    let away = run.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    let broker = Broker::start_ready(away);
    assert_eq!(call(&broker, "/a/echo", &[], None), 200);
    let (status, log) = broker.terminate();
    assert!(status.success(), "{log}");
    assert!(log.contains("the OTLP receiver did not take"), "{log}");
}

#[test]
fn variable_that_cannot_be_used_refuses_the_start_and_is_named() {
    let stage = Stage::new(&json!({}), |_| {});
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", CANARY),
        ("OTEL_TRACES_SAMPLER", CANARY),
    ] {
        let output = stage.run("127.0.0.1:0").env(name, value).output();
        assert_eq!(output.code, Some(2), "{}", output.stderr);
        assert!(
            output.stderr.contains("telemetry_unusable"),
            "{}",
            output.stderr
        );
        assert!(output.stderr.contains(name), "{}", output.stderr);
        assert!(!output.stderr.contains(CANARY), "{}", output.stderr);
    }
}

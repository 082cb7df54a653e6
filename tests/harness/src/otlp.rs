//! A receiver of OTLP over HTTP with protobuf: it decodes and keeps everything that it gets.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;

use crate::program::wait_until;

pub use opentelemetry_proto::tonic::logs::v1::LogRecord;
pub use opentelemetry_proto::tonic::metrics::v1::Metric;
pub use opentelemetry_proto::tonic::metrics::v1::metric::Data;
pub use opentelemetry_proto::tonic::trace::v1::Span;
pub use opentelemetry_proto::tonic::trace::v1::span::SpanKind;

/// A running receiver.
#[derive(Debug)]
pub struct OtlpReceiver {
    address: String,
    received: Arc<Mutex<Received>>,
}

/// What it got.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// All spans.
    pub spans: Vec<Span>,
    /// The metrics of the latest request.
    pub metrics: Vec<Metric>,
    /// All log records.
    pub logs: Vec<LogRecord>,
    /// The attributes of the latest resource.
    pub resource: Vec<KeyValue>,
    /// The headers of the latest request.
    pub headers: HeaderMap,
    /// The bytes of all requests.
    pub bytes: Vec<u8>,
    /// The requests that were answered with 503, and how many further ones will be.
    pub refused: usize,
    refuse: usize,
}

impl OtlpReceiver {
    /// Starts it.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        listener.set_nonblocking(true).expect("a socket");
        let received = Arc::<Mutex<Received>>::default();
        let app = Router::new()
            .route("/v1/{signal}", post(take))
            .with_state(Arc::clone(&received));
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                axum::serve(listener, app).await.expect("it serves");
            });
        });
        Self { address, received }
    }

    /// Its URL, for `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers the next requests with 503.
    pub fn refuse(&self, requests: usize) {
        self.lock(|received| received.refuse = requests);
    }

    /// What it has got so far.
    pub fn received(&self) -> Received {
        self.lock(|received| received.clone())
    }

    /// Waits until it has so many spans; returns them.
    pub fn await_spans(&self, count: usize) -> Vec<Span> {
        wait_until("the receiver gets the spans", || {
            self.lock(|received| received.spans.len()) >= count
        });
        self.received().spans
    }

    fn lock<T>(&self, look: impl FnOnce(&mut Received) -> T) -> T {
        look(&mut self.received.lock().expect("the receiver does not panic"))
    }
}

impl Default for OtlpReceiver {
    fn default() -> Self {
        Self::start()
    }
}

async fn take(
    State(received): State<Arc<Mutex<Received>>>,
    Path(signal): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let mut received = received.lock().expect("the receiver does not panic");
    if received.refuse > 0 {
        received.refuse -= 1;
        received.refused += 1;
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    assert_eq!(headers["content-type"], "application/x-protobuf");
    received.bytes.extend_from_slice(&body);
    received.headers = headers;
    let mut resource = Vec::new();
    let mut of = |one: Option<Resource>| resource = one.unwrap_or_default().attributes;
    match signal.as_str() {
        "traces" => {
            let request = ExportTraceServiceRequest::decode(body).expect("spans");
            for group in request.resource_spans {
                of(group.resource);
                let scopes = group.scope_spans.into_iter();
                received.spans.extend(scopes.flat_map(|scope| scope.spans));
            }
        }
        "metrics" => {
            let request = ExportMetricsServiceRequest::decode(body).expect("metrics");
            for group in request.resource_metrics {
                of(group.resource);
                let scopes = group.scope_metrics.into_iter();
                received.metrics = scopes.flat_map(|scope| scope.metrics).collect();
            }
        }
        "logs" => {
            let request = ExportLogsServiceRequest::decode(body).expect("logs");
            for group in request.resource_logs {
                of(group.resource);
                let scopes = group.scope_logs.into_iter();
                received
                    .logs
                    .extend(scopes.flat_map(|scope| scope.log_records));
            }
        }
        _ => return StatusCode::NOT_FOUND,
    }
    received.resource = resource;
    StatusCode::OK
}

/// Returns an attribute as text; `None` without it.
pub fn attribute(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Any::StringValue(text) => Some(text.clone()),
        Any::IntValue(number) => Some(number.to_string()),
        other => Some(format!("{other:?}")),
    }
}

/// Returns the text of the body of a log record.
pub fn body(record: &LogRecord) -> String {
    match record.body.as_ref().and_then(|body| body.value.as_ref()) {
        Some(Any::StringValue(text)) => text.clone(),
        other => panic!("the body is a text: {other:?}"),
    }
}

/// Returns the digits of an id.
pub fn digits(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

//! The layer that records calls.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use broker_core::{
    Broker, CallRecord, CoreError, Identity, Outcome, RecordedItem, Request, RequestId, forward,
};
use pin_project_lite::pin_project;
use tokio::time::Instant;

/// Takes the records of calls. It must not block: it runs on the task of the call.
pub trait RecordSink: Send + Sync + 'static {
    /// Whether it wants the record of a call that begins now.
    fn is_enabled(&self) -> bool;

    /// Takes the record of a call that has ended. Called once for each call that began while a sink was enabled.
    fn record(&self, call: &RecordedCall, end: CallEnd<'_>);
}

/// What is known of a call when it ends.
#[derive(Debug)]
pub struct RecordedCall {
    /// The caller.
    pub identity: Identity,
    /// The number of the request in the log.
    pub request_id: RequestId,
    /// The path that the caller named. It may name no item.
    pub path: Cow<'static, str>,
    began: Instant,
    record: Arc<CallRecord>,
}

impl RecordedCall {
    /// Returns the item, if the path named one that exists for the caller.
    pub fn item(&self) -> Option<&RecordedItem> {
        self.record.item()
    }

    /// Returns the time since the call began.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

/// The end of a call.
#[derive(Clone, Copy, Debug)]
pub enum CallEnd<'a> {
    /// It has a result. The result may be an error of the tool.
    Answered(&'a Outcome),
    /// It was refused, or failed.
    Failed(&'a CoreError),
    /// Its caller left before the end.
    Abandoned,
}

/// A broker whose calls are recorded.
#[derive(Clone, Debug)]
pub struct Recorded<B> {
    inner: B,
    sinks: Sinks,
}

/// The sinks of records. Cheap to clone.
#[derive(Clone, Default)]
pub struct Sinks(Arc<[Arc<dyn RecordSink>]>);

impl Sinks {
    /// Returns the sinks with one more.
    #[must_use]
    pub fn with(&self, sink: impl RecordSink) -> Self {
        let one: Arc<dyn RecordSink> = Arc::new(sink);
        Self(self.0.iter().cloned().chain([one]).collect())
    }
}

impl fmt::Debug for Sinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sinks", self.0.len())
    }
}

impl<B> Recorded<B> {
    /// Records the calls of `inner`.
    pub const fn new(inner: B, sinks: Sinks) -> Self {
        Self { inner, sinks }
    }

    /// Begins the record of a call, if a sink wants it.
    fn begin(&self, request: &mut Request) -> Option<Box<OpenRecord>> {
        if !self.sinks.0.iter().any(|sink| sink.is_enabled()) {
            return None;
        }
        let record = Arc::<CallRecord>::default();
        request.context.record = Some(Arc::clone(&record));
        Some(Box::new(OpenRecord {
            call: RecordedCall {
                identity: request.identity.clone(),
                request_id: request.context.request_id,
                path: request.path.clone(),
                began: Instant::now(),
                record,
            },
            sinks: self.sinks.clone(),
            has_ended: false,
        }))
    }
}

/// The record of a call that has not ended.
struct OpenRecord {
    call: RecordedCall,
    sinks: Sinks,
    has_ended: bool,
}

impl OpenRecord {
    fn end(&mut self, end: CallEnd<'_>) {
        self.has_ended = true;
        for sink in &*self.sinks.0 {
            sink.record(&self.call, end);
        }
    }
}

impl Drop for OpenRecord {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end(CallEnd::Abandoned);
        }
    }
}

pin_project! {
    /// A call and its record. An `async` block would hold the call twice.
    struct Recording<F> {
        #[pin]
        call: F,
        // Boxed, so that calls without a record do not carry its size.
        record: Option<Box<OpenRecord>>,
    }
}

impl<F: Future<Output = Result<Outcome, Box<CoreError>>>> Future for Recording<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let outcome = ready!(this.call.poll(context));
        if let Some(record) = this.record {
            record.end(match &outcome {
                Ok(outcome) => CallEnd::Answered(outcome),
                Err(error) => CallEnd::Failed(error),
            });
        }
        Poll::Ready(outcome)
    }
}

impl<B: Broker> Broker for Recorded<B> {
    forward!(
        inner: services, list, describe, search, look_up, items, tools, callable_tools, listed_items, health, close
    );

    fn call(
        &self,
        mut request: Request,
    ) -> impl Future<Output = Result<Outcome, Box<CoreError>>> + Send {
        let record = self.begin(&mut request);
        Recording {
            call: self.inner.call(request),
            record,
        }
    }
}

//! The layer that records calls.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use broker_core::{
    Account, AnswerReader, Broker, CallRecord, CoreError, Described, FoundTools, Identity,
    ItemKind, ListedItem, Listing, Operation, Outcome, Receipt, Request, RequestId, SearchQuery,
    ToolPage, ToolQuery, forward,
};
use broker_metrics::Method;
use broker_model::CallCode;
use pin_project_lite::pin_project;
use tokio::time::Instant;

use crate::audit::ReadRequest;
use crate::audited_call::AuditedCall;
use crate::observers::Observers;
use crate::recorded_call::{CallEnd, MAX_PATH_BYTES, RecordedCall};
use crate::trace::{self, OpenTrace};
use crate::undecided_reads;

/// The maximum number of records that are kept for later calls.
const MAX_POOLED: usize = 64;

/// A broker whose calls are recorded.
#[derive(Clone, Debug)]
pub struct Recorded<B> {
    inner: B,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    observers: Observers,
    /// Records of earlier calls: a call takes one, so that it allocates none.
    #[expect(
        clippy::vec_box,
        reason = "the boxes move between the pool and the calls"
    )]
    pool: Mutex<Vec<Box<OpenRecord>>>,
}

impl<B: Broker> Recorded<B> {
    /// Records the calls of `inner`.
    pub fn new(inner: B, observers: impl Into<Observers>) -> Self {
        Self {
            inner,
            shared: Arc::new(Shared {
                observers: observers.into(),
                pool: Mutex::default(),
            }),
        }
    }

    /// Begins the record of a call, if an observer wants it.
    fn begin(&self, request: &mut Request) -> Option<Box<OpenRecord>> {
        let observers = &self.shared.observers;
        if !observers.want_record() {
            return None;
        }
        let mut open = self.shared.take();
        let (call, context) = (&mut open.call, &mut request.context);
        call.identity = request.identity.clone();
        call.request_id = context.request_id;
        call.path = match &request.path {
            Cow::Borrowed(known) => Cow::Borrowed(*known),
            // It may be as long as the body of the request, whose memory the record must not double.
            Cow::Owned(text) => {
                let end = text.floor_char_boundary(MAX_PATH_BYTES);
                Cow::Owned(text[..end].to_owned())
            }
        };
        call.method = method(&request.operation);
        call.began = Instant::now();
        // The time of the call begins here as well.
        context.received.get_or_insert(call.began);
        context.record = Some(Arc::clone(&call.record));
        open.trace = observers
            .tracer
            .as_ref()
            .and_then(|tracer| tracer.begin(request));
        let context = &mut request.context;
        if let Some(audit) = &observers.audit {
            call.trace_id = match &open.trace {
                Some(trace) => Some(trace.trace_text()),
                None => context.meta.as_deref().and_then(trace::trace_id),
            };
            let audited = open.audit.get_or_insert_with(|| AuditedCall::new(audit));
            let run = context.job.as_deref().and_then(|job| job.run.as_ref());
            let job = run.map(|run| run.id.clone());
            audited.begin(call.trace_id.as_deref(), job, &mut context.gates);
        }
        open.has_ended = false;
        Some(open)
    }

    /// Counts a listing, and writes its line.
    fn note_read(&self, read: &ReadRequest<'_>) {
        let observers = &self.shared.observers;
        if let Some(meter) = &observers.meter {
            meter.listed(read.method, read.elapsed, read.failed);
        }
        if let Some(audit) = &observers.audit
            && audit.has_reads()
        {
            let facts = audit.read_facts(read, &self.inner.services().reviewed());
            undecided_reads::note(audit, facts);
        }
    }
}

impl Shared {
    /// Returns the record of an earlier call, or a new one.
    fn take(self: &Arc<Self>) -> Box<OpenRecord> {
        let pooled = self
            .pool
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        pooled.unwrap_or_else(|| {
            Box::new(OpenRecord {
                call: RecordedCall {
                    identity: Identity::anonymous(),
                    request_id: RequestId::default(),
                    path: Cow::Borrowed(""),
                    method: Method::Other,
                    trace_id: None,
                    began: Instant::now(),
                    record: Arc::default(),
                },
                audit: None,
                trace: None,
                shared: Arc::clone(self),
                has_ended: true,
            })
        })
    }

    /// Keeps a record for a later call, without what it says of its call.
    fn give_back(&self, mut open: Box<OpenRecord>) {
        let Some(record) = Arc::get_mut(&mut open.call.record) else {
            return;
        };
        *record = CallRecord::default();
        open.call.identity = Identity::anonymous();
        open.call.path = Cow::Borrowed("");
        open.call.trace_id = None;
        open.trace = None;
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < MAX_POOLED {
            pool.push(open);
        }
    }
}

/// The record of a call that has not ended.
struct OpenRecord {
    call: RecordedCall,
    /// It is kept with the record.
    audit: Option<AuditedCall>,
    trace: Option<OpenTrace>,
    shared: Arc<Shared>,
    has_ended: bool,
}

impl fmt::Debug for OpenRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenRecord")
            .field("path", &self.call.path)
            .finish_non_exhaustive()
    }
}

impl OpenRecord {
    fn end(&mut self, end: CallEnd<'_>) {
        self.has_ended = true;
        let observers = &self.shared.observers;
        if let Some(audit) = &self.audit {
            audit.end(&self.call, end);
        }
        if let Some((tracer, trace)) = observers.tracer.as_ref().zip(self.trace.take()) {
            tracer.end(&trace, &self.call, end);
        }
        if let Some(meter) = &observers.meter {
            meter.record(&self.call, end);
        }
        for sink in &*observers.sinks.0 {
            sink.record(&self.call, end);
        }
    }
}

impl OpenRecord {
    /// Ends the record, and keeps it for a later call.
    fn close(mut self: Box<Self>, end: CallEnd<'_>) {
        self.end(end);
        let shared = Arc::clone(&self.shared);
        shared.give_back(self);
    }
}

/// The record of a call with a result, until its surface has decided whether the caller gets the result.
#[derive(Debug)]
struct UndecidedRecord {
    /// `None` once it has ended.
    record: Option<Box<OpenRecord>>,
    result_bytes: usize,
    is_error: bool,
}

impl AnswerReader for UndecidedRecord {
    fn replaced(mut self: Box<Self>) {
        if let Some(record) = self.record.take() {
            let message = "the answer is longer than its client reads";
            let error = CoreError::new(CallCode::OutputTooLarge, message).maybe_executed(true);
            record.close(CallEnd::Failed(&error));
        }
    }
}

impl Drop for UndecidedRecord {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            record.close(CallEnd::Answered {
                result_bytes: self.result_bytes,
                is_error: self.is_error,
            });
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
        decided_above: u32,
    }
}

impl<F: Future<Output = Result<Outcome, Box<CoreError>>>> Future for Recording<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut outcome = ready!(this.call.poll(context));
        if let Some(record) = this.record.take() {
            match &mut outcome {
                Ok(Outcome { job: Some(_), .. }) => record.close(CallEnd::Accepted),
                Ok(outcome) if outcome.result.len() > *this.decided_above as usize => {
                    outcome.receipt = Some(Receipt::new(UndecidedRecord {
                        record: Some(record),
                        result_bytes: outcome.result.len(),
                        is_error: outcome.is_error,
                    }));
                }
                Ok(outcome) => record.close(CallEnd::Answered {
                    result_bytes: outcome.result.len(),
                    is_error: outcome.is_error,
                }),
                Err(error) => record.close(CallEnd::Failed(error)),
            }
        }
        Poll::Ready(outcome)
    }
}

impl<B: Broker> Broker for Recorded<B> {
    forward!(inner: services, look_up, items, callable_tools, jobs, health, close);

    fn list(&self, identity: &Identity, path: &str, depth: u8) -> Result<Listing, Box<CoreError>> {
        let began = Instant::now();
        let listed = self.inner.list(identity, path, depth);
        self.note_read(&ReadRequest {
            identity,
            method: Method::MetaTree,
            paths: &[path],
            failed: listed.as_ref().err().map(|error| error.code),
            elapsed: began.elapsed(),
        });
        listed
    }

    async fn describe(
        &self,
        identity: &Identity,
        paths: &[&str],
        account: &Account,
    ) -> Result<Vec<Described>, Box<CoreError>> {
        let began = Instant::now();
        let described = self.inner.describe(identity, paths, account).await;
        self.note_read(&ReadRequest {
            identity,
            method: Method::MetaDesc,
            paths,
            failed: described.as_ref().err().map(|error| error.code),
            elapsed: began.elapsed(),
        });
        described
    }

    async fn search(
        &self,
        identity: &Identity,
        what: SearchQuery<'_>,
    ) -> Result<FoundTools, Box<CoreError>> {
        let began = Instant::now();
        let place = what.path;
        let found = self.inner.search(identity, what).await;
        self.note_read(&ReadRequest {
            identity,
            method: Method::RetrieveTools,
            paths: place.as_slice(),
            failed: found.as_ref().err().map(|error| error.code),
            elapsed: began.elapsed(),
        });
        found
    }

    fn tools(&self, identity: &Identity, what: &ToolQuery<'_>) -> Option<ToolPage> {
        let began = Instant::now();
        let page = self.inner.tools(identity, what);
        // Some surfaces ask for the state of tools that they have listed: no caller did.
        if what.names.is_none() {
            self.note_read(&ReadRequest {
                identity,
                method: Method::ListTools,
                paths: &[],
                failed: None,
                elapsed: began.elapsed(),
            });
        }
        page
    }

    fn listed_items(&self, identity: &Identity, kind: ItemKind) -> Vec<ListedItem> {
        let began = Instant::now();
        let items = self.inner.listed_items(identity, kind);
        let method = match kind {
            ItemKind::Tool => Method::ListTools,
            ItemKind::Prompt => Method::ListPrompts,
            ItemKind::Template => Method::ListTemplates,
            ItemKind::Resource => Method::ListResources,
        };
        self.note_read(&ReadRequest {
            identity,
            method,
            paths: &[],
            failed: None,
            elapsed: began.elapsed(),
        });
        items
    }

    fn traces_calls(&self) -> bool {
        self.shared.observers.tracer.is_some()
    }

    fn call(
        &self,
        mut request: Request,
    ) -> impl Future<Output = Result<Outcome, Box<CoreError>>> + Send {
        let record = self.begin(&mut request);
        let decided_above = request.context.decided_above;
        Recording {
            call: self.inner.call(request),
            record,
            decided_above,
        }
    }
}

/// Returns the method of an operation.
fn method(operation: &Operation) -> Method {
    match operation {
        Operation::CallTool(_) | Operation::FollowTask(_) => Method::CallTool,
        Operation::GetPrompt(_) => Method::GetPrompt,
        Operation::ReadResource(_) => Method::ReadResource,
        Operation::Complete(_) => Method::Complete,
    }
}

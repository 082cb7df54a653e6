//! Decides which calls are traced, under which parent, and what a server learns of it.

use std::fmt;
use std::time::SystemTime;

use broker_core::{Request, TraceHeaders};

use super::context::{self, SpanContext};
use super::sampler::{Sampler, Sampling, span_id};
use super::spans::{CallSpans, CallerRequest, OpenTrace, SpanSink};
use crate::recorded_call::{CallEnd, RecordedCall};

/// The parent of the span of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceParent {
    /// The context in `_meta`, else the one of the HTTP request.
    Meta,
    /// The context of the HTTP request, else the one in `_meta`.
    Http,
    /// None: the broker begins a new trace.
    Own,
}

/// The formats of contexts that are read and written: the values of `OTEL_PROPAGATORS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Propagators {
    /// W3C Trace Context.
    pub trace_context: bool,
    /// W3C Baggage.
    pub baggage: bool,
}

impl Default for Propagators {
    fn default() -> Self {
        Self {
            trace_context: true,
            baggage: true,
        }
    }
}

impl Propagators {
    /// Reads the value of `OTEL_PROPAGATORS`, with the names that are not known.
    pub fn read(value: Option<&str>) -> (Self, Vec<String>) {
        let Some(value) = value.filter(|value| !value.trim().is_empty()) else {
            return (Self::default(), Vec::new());
        };
        let mut out = Self {
            trace_context: false,
            baggage: false,
        };
        let mut unknown = Vec::new();
        for name in value.split(',').map(str::trim) {
            match name {
                "tracecontext" => out.trace_context = true,
                "baggage" => out.baggage = true,
                "none" | "" => {}
                other => unknown.push(other.to_owned()),
            }
        }
        (out, unknown)
    }
}

/// Traces calls.
pub struct Tracer {
    /// `None`: the context in `_meta` of authenticated callers, else none.
    parent: Option<TraceParent>,
    propagators: Propagators,
    sampler: Sampler,
    sink: Box<dyn SpanSink>,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer")
            .field("parent", &self.parent)
            .field("propagators", &self.propagators)
            .field("sampler", &self.sampler)
            .finish_non_exhaustive()
    }
}

/// A context that came with a call.
struct Foreign {
    headers: TraceHeaders,
    span: SpanContext,
}

impl Foreign {
    fn new(headers: TraceHeaders) -> Option<Self> {
        let span = SpanContext::parse(&headers.traceparent)?;
        Some(Self { headers, span })
    }
}

impl Tracer {
    /// Makes a tracer. `parent` is the rule for all callers; without it only authenticated callers choose the parent.
    pub fn new(
        parent: Option<TraceParent>,
        propagators: Propagators,
        sampling: Sampling,
        sink: impl SpanSink,
    ) -> Self {
        Self {
            parent,
            propagators,
            sampler: Sampler::new(sampling),
            sink: Box::new(sink),
        }
    }

    /// Begins the trace of a call, if it is traced, and gives the call the context of its request to the server.
    pub(crate) fn begin(&self, request: &mut Request) -> Option<OpenTrace> {
        let run = request
            .context
            .job
            .as_deref()
            .and_then(|job| job.run.as_ref());
        if let Some(run) = run {
            let made_in = run.made_in.as_deref().and_then(SpanContext::parse)?;
            return Some(self.begin_run(request, made_in));
        }
        let context = &mut request.context;
        let is_read = self.propagators.trace_context;
        let meta = context.meta.as_deref().filter(|_| is_read);
        let from_meta = meta.and_then(context::context_in).and_then(Foreign::new);
        let from_http = context.trace.as_mut().and_then(|it| it.from_http.take());
        let from_http = from_http.filter(|_| is_read);
        let from_http = from_http.and_then(Foreign::new);
        let spans = [&from_meta, &from_http].map(|it| it.as_ref().map(|it| it.span));
        let parent = self
            .parent
            .unwrap_or(match request.identity.is_authenticated() {
                true => TraceParent::Meta,
                false => TraceParent::Own,
            });
        let is_meta = match parent {
            TraceParent::Meta => from_meta.is_some(),
            TraceParent::Http | TraceParent::Own => from_http.is_none(),
        };
        let (accepted, other) = match (parent, is_meta) {
            (TraceParent::Own, _) => (None, spans),
            (_, true) => (from_meta, [spans[1], None]),
            (_, false) => (from_http, [spans[0], None]),
        };
        let parent = accepted.as_ref().map(|it| it.span);
        let traced = self.sampler.trace(parent.as_ref());
        let Some(trace_id) = traced else {
            // `_meta` has its context already, and the server gets it as it is.
            if let Some(accepted) = accepted.filter(|_| !is_meta) {
                self.pass_on(request, accepted.headers);
            }
            return None;
        };
        let caller = request.context.trace.as_deref().map(CallerRequest::from);
        let sent = sampled_span(trace_id);
        let client_span = sent.span_id;
        let (state, baggage) = match accepted {
            Some(accepted) => (accepted.headers.tracestate, accepted.headers.baggage),
            None => (None, None),
        };
        if is_read {
            let headers = TraceHeaders {
                traceparent: sent.traceparent().into(),
                tracestate: state,
                baggage,
            };
            self.pass_on(request, headers);
        }
        let server = sampled_span(trace_id);
        if request.context.job.is_some() {
            let trace = request.context.trace.get_or_insert_default();
            trace.own = Some(server.traceparent().into());
        }
        Some(OpenTrace {
            server,
            client_span,
            parent,
            links: other,
            began: SystemTime::now(),
            request: caller.unwrap_or_default(),
        })
    }

    /// Begins the trace of the run of a job: a new trace, which links the call that made the job. The server learns the new
    /// context in place of the one that the call had.
    fn begin_run(&self, request: &mut Request, made_in: SpanContext) -> OpenTrace {
        let server = sampled_span(self.sampler.new_trace());
        let sent = sampled_span(server.trace_id);
        if self.propagators.trace_context {
            let headers = TraceHeaders {
                traceparent: sent.traceparent().into(),
                tracestate: None,
                baggage: None,
            };
            self.pass_on(request, headers);
        }
        OpenTrace {
            server,
            client_span: sent.span_id,
            parent: None,
            links: [Some(made_in), None],
            began: SystemTime::now(),
            request: CallerRequest::default(),
        }
    }

    /// Gives a call the context for its request to the server.
    fn pass_on(&self, request: &mut Request, mut headers: TraceHeaders) {
        if !self.propagators.baggage {
            headers.baggage = None;
        }
        let context = &mut request.context;
        if let Some(meta) = context::into_meta(context.meta.as_deref(), &headers) {
            context.meta = Some(meta);
        }
        let mut trace = context.trace.take().unwrap_or_default();
        trace.to_server = Some(headers);
        context.trace = Some(trace);
    }

    /// Hands the spans of a call that has ended to the sink.
    pub(crate) fn end(&self, trace: &OpenTrace, call: &RecordedCall, end: CallEnd<'_>) {
        self.sink.take(CallSpans::new(trace, call, end));
    }
}

/// Returns a new span of a trace.
fn sampled_span(trace_id: [u8; 16]) -> SpanContext {
    SpanContext {
        trace_id,
        span_id: span_id(),
        is_sampled: true,
    }
}

//! Traces: one trace from the caller through the broker to the server. The layer reads the trace context of a call, decides
//! whether the call is traced, and gives the call the context of the broker's spans. The spans are made from the record when the
//! call has ended.

mod context;
mod sampler;
mod spans;
mod tracer;

pub use context::SpanContext;
pub use sampler::Sampling;
pub use spans::{CONVENTIONS, CallSpans, ClientSpan, SpanSink};
pub use tracer::{Propagators, TraceParent, Tracer};

pub(crate) use spans::OpenTrace;

/// Returns the id of the trace that the `_meta` of a call names (W3C Trace Context, `traceparent`).
pub(crate) fn trace_id(meta: &str) -> Option<Box<str>> {
    let context = SpanContext::parse(&context::context_in(meta)?.traceparent)?;
    Some(context.trace_text())
}

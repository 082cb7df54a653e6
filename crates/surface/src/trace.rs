//! The trace context of a request over HTTP (W3C Trace Context, W3C Baggage).

use broker_core::{BAGGAGE, Broker, CallTrace, TRACEPARENT, TRACESTATE, TraceHeaders};

/// The maximum bytes of `tracestate` that every system passes on.
const MAX_STATE_BYTES: usize = 512;
/// The maximum bytes of `baggage` that every system passes on.
const MAX_BAGGAGE_BYTES: usize = 8192;

/// Returns the trace context of a request, if a layer of the broker traces calls and the request has one. `header`
/// returns the values of a header, joined by commas.
pub fn trace_of(
    broker: &impl Broker,
    header: impl Fn(&'static str) -> Option<String>,
) -> Option<Box<CallTrace>> {
    if !broker.traces_calls() {
        return None;
    }
    let traceparent = header(TRACEPARENT)?;
    let within = |name, limit| header(name).filter(|value: &String| value.len() <= limit);
    Some(Box::new(CallTrace {
        from_http: Some(TraceHeaders {
            traceparent: traceparent.into(),
            tracestate: within(TRACESTATE, MAX_STATE_BYTES).map(Into::into),
            baggage: within(BAGGAGE, MAX_BAGGAGE_BYTES).map(Into::into),
        }),
        to_server: None,
    }))
}

//! The trace context of a request, as W3C Trace Context and W3C Baggage write it.

/// The names of the members in `_meta` and of the headers.
pub const TRACEPARENT: &str = "traceparent";
/// As [`TRACEPARENT`].
pub const TRACESTATE: &str = "tracestate";
/// As [`TRACEPARENT`].
pub const BAGGAGE: &str = "baggage";

/// The trace context of a request. The values are visible ASCII and blanks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceHeaders {
    /// The trace and the span that the request belongs to.
    pub traceparent: Box<str>,
    /// What other tracing systems know of the trace.
    pub tracestate: Option<Box<str>>,
    /// Data of the caller for the services of its operator.
    pub baggage: Option<Box<str>>,
}

impl TraceHeaders {
    /// Returns the headers with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let optional = [
            (TRACESTATE, self.tracestate.as_deref()),
            (BAGGAGE, self.baggage.as_deref()),
        ];
        let optional = optional
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| (name, value)));
        [(TRACEPARENT, &*self.traceparent)]
            .into_iter()
            .chain(optional)
    }
}

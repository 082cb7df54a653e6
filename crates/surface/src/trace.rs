//! The trace context of a request over HTTP (W3C Trace Context, W3C Baggage).

use std::net::IpAddr;

use broker_core::{BAGGAGE, Broker, CallTrace, TRACEPARENT, TRACESTATE, TraceHeaders};
use broker_wire::Id;

/// The maximum bytes of `traceparent`; version 00 has 55, and later ones may have more.
const MAX_PARENT_BYTES: usize = 256;
/// The maximum bytes of `tracestate` that every system passes on.
const MAX_STATE_BYTES: usize = 512;
/// The maximum bytes of `baggage` that every system passes on.
const MAX_BAGGAGE_BYTES: usize = 8192;

/// Where a client of a request over HTTP is.
#[derive(Clone, Copy, Debug)]
pub struct ClientPlace {
    /// The address of the client; a trusted proxy may have named it.
    pub address: IpAddr,
    /// The address and the port of the other end of the connection.
    pub peer: IpAddr,
    /// As `peer`.
    pub port: Option<u16>,
}

impl ClientPlace {
    /// Returns the port of the client, if the client is the other end of the connection and not behind it.
    fn own_port(self) -> Option<u16> {
        let is_peer = self.address.to_canonical() == self.peer.to_canonical();
        self.port.filter(|_| is_peer)
    }
}

/// Returns what a request over HTTP says for the trace of its call, if a layer of the broker traces calls. `header`
/// returns the values of a header, joined by commas.
pub fn trace_of(
    broker: &impl Broker,
    client: ClientPlace,
    header: impl Fn(&'static str) -> Option<String>,
) -> Option<Box<CallTrace>> {
    if !broker.traces_calls() {
        return None;
    }
    let within = |name, limit| header(name).filter(|value: &String| value.len() <= limit);
    let from_http = within(TRACEPARENT, MAX_PARENT_BYTES).map(|traceparent| TraceHeaders {
        traceparent: traceparent.into(),
        tracestate: within(TRACESTATE, MAX_STATE_BYTES).map(Into::into),
        baggage: within(BAGGAGE, MAX_BAGGAGE_BYTES).map(Into::into),
    });
    Some(Box::new(CallTrace {
        from_http,
        client_port: client.own_port(),
        ..CallTrace::default()
    }))
}

/// Adds a request of JSON-RPC to the trace of the request over HTTP that brought it, if a layer of the broker traces
/// calls.
pub fn trace_of_rpc(
    broker: &impl Broker,
    from_http: Option<&CallTrace>,
    id: Option<&Id>,
    revision: impl FnOnce() -> Option<&'static str>,
) -> Option<Box<CallTrace>> {
    if !broker.traces_calls() {
        return None;
    }
    Some(Box::new(CallTrace {
        rpc_id: id.cloned(),
        revision: revision(),
        ..from_http.cloned().unwrap_or_default()
    }))
}

//! The broker's MCP client: links to servers, handshake, sessions and supervision.
//!
//! Independent of trees, paths of tools, and surfaces: a tool is an upstream name here, arguments and
//! results are raw JSON bytes. The data path never parses bytes that it only forwards.

mod cancel_reason;
mod client;
mod concurrency;
mod connection;
mod environment;
mod era_hint;
mod event_queue;
mod event_text;
mod events;
mod examine;
mod failure;
#[doc(hidden)]
pub mod fuzzing;
mod handshake;
mod http;
mod instance;
mod link;
mod link_factory;
mod list;
mod log_level;
mod masks;
mod opening;
mod overload;
mod request;
mod resolve;
mod right;
mod rpc_error;
mod server_call;
mod session;
mod spec;
mod start_hints;
mod startup;
mod status;
mod subscription;
mod tasks;
#[cfg(test)]
mod test_spec;
mod timeout_streak;
mod trace_headers;

/// Compiles the examples of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/trust.md")]
struct TrustPage;

pub use broker_model::trust::{NamedTool, SensitiveNames, TrustError, TrustLevel, TrustPolicy};
pub use cancel_reason::note_cancel_reason;
pub use client::{ClientError, ClientErrorKind, HttpClient, SESSION_HEADER};
pub use concurrency::ConcurrencyLimits;
pub use connection::RawResult;
pub use environment::Environment;
pub use era_hint::EraHint;
pub use events::{
    CallEvent, CallEvents, LogMessage, Progress, ReceivedEvents, StderrLine, WantedEvents,
};
pub use examine::ServerExam;
pub use failure::{CallFailure, SourceFailure};
pub use http::{AuthSpec, ClientCertificate, ClientCredentials, HttpShared, HttpSpec, MCP_PATH};
pub use instance::{DriftCheck, Instance, SessionHandle, SourceSettings, Verdict};
pub use link::Carrier;
pub use link_factory::{LinkFactory, Pipes, ServerTask};
pub use log_level::AskedLogLevel;
pub use overload::Overload;
pub use resolve::{resolve, resolve_command, unavailable};
pub use right::CallRight;
pub use server_call::{CallTime, ServerCall, ServerOperation};
pub use session::Session;
pub use spec::{Endpoint, SourceSpec, Timing};
pub use start_hints::StartHints;
pub use status::{Counters, State, Status};
pub use tasks::RemoteTask;
pub use trace_headers::{BAGGAGE, TRACEPARENT, TRACESTATE, TraceHeaders};

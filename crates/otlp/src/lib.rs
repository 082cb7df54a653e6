//! Sends spans, metrics and audit lines to an OpenTelemetry receiver, as OTLP over HTTP with protobuf.
//!
//! An [`Exporter`] has one thread. The path of a call only hands over what is known of the call when it has ended, by a
//! queue with a bound; what finds no room is dropped and counted. The messages are those of `opentelemetry-proto`: the
//! histograms are counted in the broker's own arrays, and the SDK of OpenTelemetry cannot export a histogram that it did
//! not count itself.

#![forbid(unsafe_code)]

mod attributes;
mod endpoint;
mod exporter;
mod lines;
mod metrics;
mod settings;
mod spans;

pub use exporter::{Exporter, ExporterError};
pub use settings::{OtlpSettings, Problem, Signal};
pub use spans::ServerAddress;

//! The section `telemetry`: metrics, traces, and their export.

use super::fields;
use super::findings::{Cursor, Findings};
use super::keys::{self, Level};

const LEVEL: Level = Level::Telemetry;

/// What the broker measures, and where it sends that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// Whether calls are counted, and `/metrics` answers.
    pub metrics: bool,
    /// The address of another listener that has this route only.
    pub metrics_bind: Option<String>,
    /// Whether spans, metrics and audit lines are sent to an OpenTelemetry receiver.
    pub otlp: bool,
    /// The parent of the span of a call, for all callers; without it only authenticated callers choose the parent.
    pub parent: Option<TraceParent>,
}

/// The parent of the span of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceParent {
    /// The trace context in `_meta`.
    Meta,
    /// The trace context of the HTTP request.
    Http,
    /// None.
    Own,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            metrics: keys::key(LEVEL, "metrics").value(),
            metrics_bind: None,
            otlp: keys::key(LEVEL, "otlp").value(),
            parent: None,
        }
    }
}

/// Reads the section.
pub(super) fn read(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Telemetry {
    let mut out = Telemetry::default();
    for member in fields::object(findings, cursor, "an object").unwrap_or_default() {
        let value = cursor.member(member);
        match member.key.as_str() {
            "metrics" => out.metrics = fields::boolean(findings, &value).unwrap_or(out.metrics),
            "metrics_bind" => out.metrics_bind = fields::text(findings, &value, "an address"),
            "otlp" => out.otlp = fields::boolean(findings, &value).unwrap_or(out.otlp),
            key @ "parent" => {
                out.parent = keys::choice(findings, &value, LEVEL, key, |name| match name {
                    "meta" => Some(TraceParent::Meta),
                    "http" => Some(TraceParent::Http),
                    "own" => Some(TraceParent::Own),
                    _ => None,
                });
            }
            unknown => keys::unknown(findings, &value, unknown, LEVEL),
        }
    }
    out
}

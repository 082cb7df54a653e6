//! The section `telemetry`: metrics.

use super::fields;
use super::findings::{Cursor, Findings};
use super::keys::{self, Level};

const LEVEL: Level = Level::Telemetry;

/// What the broker measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// Whether calls are counted, and `/metrics` answers.
    pub metrics: bool,
    /// The address of another listener that has this route only.
    pub metrics_bind: Option<String>,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            metrics: keys::key(LEVEL, "metrics").value(),
            metrics_bind: None,
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
            unknown => keys::unknown(findings, &value, unknown, LEVEL),
        }
    }
    out
}

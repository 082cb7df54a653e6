//! The section `mcp`: how MCP clients see the tools.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::fields;
use super::findings::{Cursor, Findings};
use super::keys::{self, Level};
use crate::codes::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;

/// The default of `mcp.max_name`. With the prefixes that clients add, a name stays within the 64 characters
/// that model providers allow.
pub const DEFAULT_MAX_NAME: usize = 46;

const MAX_NAME: RangeInclusive<u64> = 24..=128;
const SESSION_IDLE: RangeInclusive<f64> = 1.0..=86_400.0;

/// How MCP clients see the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mcp {
    /// The tools that `tools/list` has.
    pub mode: McpMode,
    /// The maximum length of a flat name, in characters. Decides the names, so it is compiled in.
    pub max_name: usize,
    /// The time after which a session over HTTP without a request ends.
    pub session_idle: Duration,
}

/// The tools that MCP clients see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpMode {
    /// The meta-tools, by which a client finds and calls the others.
    #[default]
    Meta,
    /// Every tool under its flat name.
    Direct,
}

impl Default for Mcp {
    fn default() -> Self {
        Self {
            mode: McpMode::default(),
            max_name: DEFAULT_MAX_NAME,
            session_idle: Duration::from_secs(1800),
        }
    }
}

pub(super) fn read(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Mcp {
    let mut out = Mcp::default();
    for member in fields::object(findings, cursor, "an object").unwrap_or_default() {
        let value = cursor.member(member);
        match member.key.as_str() {
            "mode" => out.mode = mode(findings, &value).unwrap_or_default(),
            "max_name" => {
                if let Some(max) = fields::integer(findings, &value, MAX_NAME) {
                    out.max_name = max;
                }
            }
            "session_idle" => {
                if let Some(time) = fields::seconds(findings, &value, SESSION_IDLE) {
                    out.session_idle = time;
                }
            }
            unknown => keys::unknown(findings, &value, unknown, Level::Mcp),
        }
    }
    out
}

fn mode(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<McpMode> {
    match fields::string(findings, cursor)? {
        "meta" => Some(McpMode::Meta),
        "direct" => Some(McpMode::Direct),
        other => {
            let shown = crate::text::shown_line(other, 40);
            let message = format!("expected `meta` or `direct`, got `{shown}`");
            findings.add(cursor, Diagnostic::error(Code::ConfigRange, message));
            None
        }
    }
}

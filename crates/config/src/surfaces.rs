//! The section `surfaces`: the ways in that can be turned on and off.

use super::fields;
use super::findings::{Cursor, Findings};
use super::keys::{self, Level};

/// The ways in that can be turned on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surfaces {
    /// `/v1/mcp` and `/v1/ws/mcp` for simple MCP clients, and the discovery document.
    pub v1: bool,
    /// `/sse` for clients of the transport of MCP 2024-11-05.
    pub sse: bool,
    /// The web page; `None` on loopback addresses only.
    pub web: Option<bool>,
    /// Whether the web page offers to call tools.
    pub web_calls: bool,
}

impl Default for Surfaces {
    fn default() -> Self {
        let default = |name| keys::key(Level::Surfaces, name).value();
        Self {
            v1: default("v1"),
            sse: default("sse"),
            web: None,
            web_calls: default("web_calls"),
        }
    }
}

pub(super) fn read(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Surfaces {
    let mut out = Surfaces::default();
    for member in fields::object(findings, cursor, "an object").unwrap_or_default() {
        let value = cursor.member(member);
        match member.key.as_str() {
            "v1" => out.v1 = fields::boolean(findings, &value).unwrap_or(out.v1),
            "sse" => out.sse = fields::boolean(findings, &value).unwrap_or(out.sse),
            "web" => out.web = fields::boolean(findings, &value).or(out.web),
            "web_calls" => {
                out.web_calls = fields::boolean(findings, &value).unwrap_or(out.web_calls);
            }
            unknown => keys::unknown(findings, &value, unknown, Level::Surfaces),
        }
    }
    out
}

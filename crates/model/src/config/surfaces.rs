//! The section `surfaces`: the ways in that can be turned off.

use super::fields;
use super::findings::{Cursor, Findings};
use super::keys::{self, Level};

/// The ways in that can be turned off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surfaces {
    /// `/v1/mcp` and `/v1/ws/mcp` for simple MCP clients, and the discovery document.
    pub v1: bool,
}

impl Default for Surfaces {
    fn default() -> Self {
        Self { v1: true }
    }
}

pub(super) fn read(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Surfaces {
    let mut out = Surfaces::default();
    for member in fields::object(findings, cursor, "an object").unwrap_or_default() {
        let value = cursor.member(member);
        match member.key.as_str() {
            "v1" => out.v1 = fields::boolean(findings, &value).unwrap_or(out.v1),
            unknown => keys::unknown(findings, &value, unknown, Level::Surfaces),
        }
    }
    out
}

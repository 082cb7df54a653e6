//! The section `limits`: bounds that protect the memory of the broker.

use super::fields;
use super::findings::{Cursor, Findings};
use super::keys::{self, Level};

/// Bounds that protect the broker's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request body.
    pub body_bytes: usize,
    /// Bytes of a line from a server.
    pub line_bytes: usize,
    /// Bytes of memory for bodies, arguments and results together.
    pub memory_bytes: usize,
    /// Bytes of a whole tool list, all pages.
    pub listing_bytes: usize,
    /// Characters of a result for a model, if the config does not set a limit for its tool.
    pub result_chars: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let default = |name| keys::key(Level::Limits, name).value();
        Self {
            body_bytes: default("body_bytes"),
            line_bytes: default("line_bytes"),
            memory_bytes: default("memory_bytes"),
            listing_bytes: default("listing_bytes"),
            result_chars: default("result_chars"),
        }
    }
}

pub(super) fn read(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Limits {
    let mut out = Limits::default();
    for member in fields::object(findings, cursor, "an object").unwrap_or_default() {
        let value = cursor.member(member);
        let limit = match member.key.as_str() {
            "body_bytes" => &mut out.body_bytes,
            "line_bytes" => &mut out.line_bytes,
            "listing_bytes" => &mut out.listing_bytes,
            "result_chars" => &mut out.result_chars,
            "memory_bytes" => &mut out.memory_bytes,
            unknown => {
                keys::unknown(findings, &value, unknown, Level::Limits);
                continue;
            }
        };
        if let Some(bytes) = keys::integer(findings, &value, Level::Limits, &member.key) {
            *limit = bytes;
        }
    }
    out
}

//! The section `limits`: bounds that protect the memory of the broker.

use std::time::Duration;

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
    /// Bytes of a message to a client over stdio.
    pub stdio_line_bytes: usize,
    /// Bytes of a message to a client on an event stream or over WebSocket.
    pub event_bytes: usize,
    /// Maximum time of a connection over HTTP between two requests.
    pub idle_timeout: Duration,
    /// Bytes of memory for bodies, arguments and results together.
    pub memory_bytes: usize,
    /// Bytes of a whole tool list, all pages.
    pub listing_bytes: usize,
    /// Characters of a result for a model, if the config does not set a limit for its tool.
    pub result_chars: usize,
}

/// The default of `result_chars` where the config has `jobs`: the rest of a result can be read.
const RESULT_CHARS_WITH_JOBS: usize = 25_000;

impl Default for Limits {
    fn default() -> Self {
        Self::new(false)
    }
}

impl Limits {
    /// Returns the defaults of a config with or without `jobs`.
    pub(super) fn new(has_jobs: bool) -> Self {
        let default = |name| keys::key(Level::Limits, name).value();
        let idle_timeout = keys::key(Level::Limits, "idle_timeout").time();
        Self {
            body_bytes: default("body_bytes"),
            line_bytes: default("line_bytes"),
            stdio_line_bytes: default("stdio_line_bytes"),
            event_bytes: default("event_bytes"),
            idle_timeout,
            memory_bytes: default("memory_bytes"),
            listing_bytes: default("listing_bytes"),
            result_chars: match has_jobs {
                true => RESULT_CHARS_WITH_JOBS,
                false => default("result_chars"),
            },
        }
    }
}

pub(super) fn read(findings: &mut Findings<'_>, cursor: &Cursor<'_>, has_jobs: bool) -> Limits {
    let mut out = Limits::new(has_jobs);
    for member in fields::object(findings, cursor, "an object").unwrap_or_default() {
        let value = cursor.member(member);
        let limit = match member.key.as_str() {
            "body_bytes" => &mut out.body_bytes,
            "line_bytes" => &mut out.line_bytes,
            "stdio_line_bytes" => &mut out.stdio_line_bytes,
            "event_bytes" => &mut out.event_bytes,
            "listing_bytes" => &mut out.listing_bytes,
            "result_chars" => &mut out.result_chars,
            "memory_bytes" => &mut out.memory_bytes,
            key @ "idle_timeout" => {
                let time = keys::seconds(findings, &value, Level::Limits, key);
                out.idle_timeout = time.unwrap_or(out.idle_timeout);
                continue;
            }
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

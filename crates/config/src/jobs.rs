//! The section `jobs`: calls that outlive their caller.

use std::time::Duration;

use super::fields;
use super::findings::{Cursor, Findings};
use super::keys::{self, Level};
use super::template::Template;

const LEVEL: Level = Level::Jobs;

/// The jobs of the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobsConfig {
    /// The file of the store, relative to the config's folder; without it jobs are in memory.
    pub store: Option<Template>,
    /// Whether a start without a store that can be used is refused.
    pub required: bool,
    /// The time after which a call in the mode `auto` becomes a job.
    pub promote_after: Duration,
    /// The mode of calls of MCP clients that name none; without it the store decides.
    pub mcp_mode: Option<McpCallMode>,
    /// The time for which finished jobs are kept.
    pub ttl: Duration,
    /// The maximum bytes of the store.
    pub store_bytes: usize,
}

/// The mode of calls of MCP clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpCallMode {
    /// The client waits for the result.
    Sync,
    /// The client waits for some time; then the call becomes a job.
    Auto,
}

/// Reads the section.
pub(super) fn read(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<JobsConfig> {
    let members = fields::object(findings, cursor, "an object")?;
    let seconds = |name| Duration::from_secs(keys::key(LEVEL, name).value());
    let mut out = JobsConfig {
        store: None,
        required: keys::key(LEVEL, "required").value(),
        promote_after: seconds("promote_after"),
        mcp_mode: None,
        ttl: seconds("ttl"),
        store_bytes: keys::key(LEVEL, "store_bytes").value(),
    };
    for member in members {
        let value = cursor.member(member);
        match member.key.as_str() {
            "store" => out.store = fields::template(findings, &value),
            "required" => out.required = fields::boolean(findings, &value).unwrap_or(out.required),
            key @ "promote_after" => {
                let time = keys::seconds(findings, &value, LEVEL, key);
                out.promote_after = time.unwrap_or(out.promote_after);
            }
            key @ "mcp_mode" => {
                out.mcp_mode = keys::choice(findings, &value, LEVEL, key, |name| match name {
                    "sync" => Some(McpCallMode::Sync),
                    "auto" => Some(McpCallMode::Auto),
                    _ => None,
                });
            }
            key @ "ttl" => {
                out.ttl = keys::seconds(findings, &value, LEVEL, key).unwrap_or(out.ttl);
            }
            key @ "store_bytes" => {
                let bytes = keys::integer(findings, &value, LEVEL, key);
                out.store_bytes = bytes.unwrap_or(out.store_bytes);
            }
            unknown => keys::unknown(findings, &value, unknown, LEVEL),
        }
    }
    Some(out)
}

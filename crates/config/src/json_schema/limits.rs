//! `limits` of a config.

use schemars::JsonSchema;

/// Bounds that protect the broker's memory.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    /// Bytes of a request body. Default: 4194304.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    body_bytes: Option<u64>,
    /// Bytes of a line from a server. Default: 16777216.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    line_bytes: Option<u64>,
    /// Bytes of a whole tool list of a server, all pages. Default: 33554432.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    listing_bytes: Option<u64>,
    /// Characters of a result for a model, if the config sets none for its tool. Default: 100000.
    #[schemars(range(min = 100, max = 10_000_000))]
    result_chars: Option<u64>,
    /// Bytes of memory for bodies, arguments and results of all callers together. Default: 536870912.
    #[schemars(range(min = 16_777_216, max = 1_099_511_627_776_u64))]
    memory_bytes: Option<u64>,
}

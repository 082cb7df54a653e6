//! The transport to a server, as locks name it.

use serde::{Deserialize, Serialize};

/// The transport to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(description = "")
)]
pub enum Backend {
    /// A process: its standard input and output.
    Stdio,
    /// Streamable HTTP, or the older HTTP+SSE.
    Http,
}

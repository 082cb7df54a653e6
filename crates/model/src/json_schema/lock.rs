//! The lock file; `lock/mod.rs` describes its members.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Map, Value};

/// A lock of mcp-broker: the reviewed tools of every source. Written by `broker-gen lock`, never by hand.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Lock {
    /// The digest of the config fields that the lock depends on.
    config_digest: Digest,
    /// The program that wrote it; outside the root digest.
    generator: String,
    /// The formula of the digests.
    #[schemars(extend("const" = crate::digest::HASH_MODEL))]
    hash_model: String,
    /// The version of this format; a lock without the new members of version 2 has version 1.
    #[schemars(extend("enum" = [crate::lock::LOCK_VERSION, crate::lock::MAX_LOCK_VERSION]))]
    lock_version: u64,
    /// The digest of all other members except `generator`.
    root_digest: Digest,
    /// Sorted by path.
    sources: Vec<Source>,
}

/// `sha256/1:` and 64 hexadecimal digits.
#[derive(JsonSchema)]
struct Digest(#[schemars(regex(pattern = r"^sha256/1:[0-9a-f]{64}$"))] String);

/// A text as the list of its lines.
#[derive(JsonSchema)]
struct Lines(#[schemars(length(min = 1))] Vec<String>);

/// The reviewed content of one source.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
struct Source {
    /// The transport.
    backend: Backend,
    /// As the server sent them.
    capabilities: Value,
    /// The digest of this source's part of the config.
    config_digest: Digest,
    /// Exposed tools, sorted by upstream name.
    exposed: Vec<Tool>,
    /// Tools that the filter hides, sorted by name.
    hidden: Vec<HiddenTool>,
    /// As the server sent them.
    instructions: Option<Lines>,
    /// The package of the source, if it is known.
    package: Option<Package>,
    /// The node on which it is mounted.
    path: String,
    /// The negotiated MCP revision.
    protocol_version: String,
    /// As the server sent it.
    server_info: Value,
    /// Pointers of members that digests and comparisons leave out.
    volatile: Option<Vec<String>>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Backend {
    Stdio,
    Http,
}

/// A package that a source ran.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
struct Package {
    /// The integrity of its content, the formula first: `sha512-…`, `sha256:…`, `record-sha256:…`, `git:…`.
    integrity: Option<String>,
    /// The kind of the name.
    kind: PackageKind,
    /// Its name; for a file, the last part of its path.
    name: String,
    /// Whether it can only be replaced by hand: the command names this version alone, or runs an installed
    /// package.
    pinned: bool,
    /// Its version, if it has one.
    version: Option<String>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PackageKind {
    Npm,
    Pypi,
    Oci,
    File,
}

/// A reviewed tool.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
struct Tool {
    /// The digests of the whole tool, and of each of its members.
    digests: BTreeMap<String, Digest>,
    /// The last segment of its path.
    exposed_name: String,
    /// The tool as the server sent it, with the description as a list of lines.
    raw: RawTool,
    /// The server's name of the tool.
    upstream_name: String,
}

/// As the server sent it, unknown members included.
#[derive(JsonSchema)]
struct RawTool {
    name: String,
    description: Option<Lines>,
    #[serde(rename = "inputSchema")]
    input_schema: Option<Map<String, Value>>,
    #[serde(rename = "outputSchema")]
    output_schema: Option<Map<String, Value>>,
}

/// A tool that the filter hides, with the data that shows a change.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
struct HiddenTool {
    /// The digest of the whole tool.
    digest: Digest,
    /// The server's name of the tool.
    name: String,
}

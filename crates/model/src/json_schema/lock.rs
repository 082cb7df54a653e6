//! The lock as a file; `lock/mod.rs` says what its members mean to the program.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Map, Value};

/// A lock of mcp-broker: the reviewed tools of every source. Written by `broker-gen lock`, never by hand.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Lock {
    /// Of what of the config the lock was made for.
    config_digest: Digest,
    /// Who wrote it; outside the root digest.
    generator: String,
    /// How digests are made.
    #[schemars(extend("const" = crate::digest::HASH_MODEL))]
    hash_model: String,
    /// The version of this format; a lock without the new members of version 2 has version 1.
    #[schemars(extend("enum" = [crate::lock::LOCK_VERSION, crate::lock::MAX_LOCK_VERSION]))]
    lock_version: u64,
    /// Over everything else but `generator`.
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

/// What was reviewed of one source.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
struct Source {
    /// How it is reached.
    backend: Backend,
    /// As the server sent them.
    capabilities: Value,
    /// Of this source's part of the config.
    config_digest: Digest,
    /// Tools that callers see, sorted by upstream name.
    exposed: Vec<Tool>,
    /// Tools that the filter hides, sorted by name.
    hidden: Vec<HiddenTool>,
    /// As the server sent them.
    instructions: Option<Lines>,
    /// The package that it ran, where that could be told.
    package: Option<Package>,
    /// The node that it is mounted on.
    path: String,
    /// The revision of MCP that was agreed on.
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
    /// What its content is known by, the formula first: `sha512-…`, `sha256:…`, `record-sha256:…`, `git:…`.
    integrity: Option<String>,
    /// Who named it.
    kind: PackageKind,
    /// Its name; of a file, the last part of its path.
    name: String,
    /// Whether another one can only come by somebody's hand: the command names this version alone, or runs
    /// what is installed.
    pinned: bool,
    /// Its version, where it has one.
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
    /// Of the whole tool, and of each member that it has.
    digests: BTreeMap<String, Digest>,
    /// Its last path segment.
    exposed_name: String,
    /// The tool as the server sent it, with the description as lines.
    raw: RawTool,
    /// The server's name for it.
    upstream_name: String,
}

/// Whatever the server sent; a member that nobody knows yet is kept as well.
#[derive(JsonSchema)]
struct RawTool {
    name: String,
    description: Option<Lines>,
    #[serde(rename = "inputSchema")]
    input_schema: Option<Map<String, Value>>,
    #[serde(rename = "outputSchema")]
    output_schema: Option<Map<String, Value>>,
}

/// A tool that the filter hides: enough to see that it changed.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
struct HiddenTool {
    /// Of the whole tool.
    digest: Digest,
    /// The server's name for it.
    name: String,
}

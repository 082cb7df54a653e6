//! The lock: the reviewed snapshots of all sources, the exposed tools, and their digests.
//!
//! A [`Lock`] is made from snapshots ([`LockedSource::from_snapshot`]) or read from a file and verified
//! ([`Lock::parse`]); there is no other constructor, so its digests always match.
//!
//! # The file
//!
//! JSON, two spaces, sorted keys, LF; no time, host or path. The top level of `lock_version` 1 has
//! `config_digest`, `generator` (outside the root digest), `hash_model`, `lock_version`, `root_digest`
//! and `sources`; `wire.rs` has all members. Each tool is stored whole, with two changes: `description` is
//! a list of lines, and members that `volatile` names are left out.
//! Version 2 adds members, which `format2.rs` describes; none is written yet.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::Backend;
use crate::digest::Digest;
use crate::path::NodePath;

mod file;
mod format2;
mod package;
mod source;
mod tool;
pub(crate) mod wire;

pub use package::{Package, PackageKind};
pub use tool::{strip_volatile, tool_digests};

/// Maximum size of a lock, in bytes: eight listings of the maximum size of 32 MiB.
pub const MAX_BYTES: usize = 256 << 20;

/// The format version of a new lock.
pub const LOCK_VERSION: u64 = 1;
/// The newest format version that is read, besides all older ones down to 1.
pub const MAX_LOCK_VERSION: u64 = 2;

/// A lock whose digests match.
#[derive(Clone, Debug, PartialEq)]
pub struct Lock {
    /// Its format version: [`LOCK_VERSION`] for a new lock, else that of the file, which the root digest
    /// covers.
    pub version: u64,
    /// The digest of its config.
    pub config_digest: Digest,
    /// The program that wrote it, `broker-gen 0.1.0`.
    pub generator: String,
    /// Sorted by path, which is unique.
    pub sources: Vec<LockedSource>,
}

/// The reviewed content of one source.
#[derive(Clone, Debug, PartialEq)]
pub struct LockedSource {
    /// The node on which it is mounted.
    pub path: NodePath,
    /// The transport.
    pub backend: Backend,
    /// The digest of this source's part of the config, so that one source can be locked alone.
    pub config_digest: Digest,
    /// `serverInfo` as sent.
    pub server_info: Value,
    /// The negotiated protocol revision.
    pub protocol_version: String,
    /// `capabilities` as sent.
    pub capabilities: Value,
    /// `instructions`, if sent.
    pub instructions: Option<String>,
    /// The package of the source, if it is known.
    pub package: Option<Package>,
    /// Pointer patterns of members that digests and comparisons leave out.
    pub volatile: BTreeSet<String>,
    /// Tools that callers see, sorted by upstream name.
    pub exposed: Vec<LockedTool>,
    /// Tools that the filter hides, sorted by name.
    pub hidden: Vec<HiddenTool>,
}

/// A reviewed tool.
#[derive(Clone, Debug, PartialEq)]
pub struct LockedTool {
    /// The server's name of the tool.
    pub upstream_name: String,
    /// Its last path segment: the alias, else the upstream name.
    pub exposed_name: String,
    /// The tool as the server sent it, without volatile members.
    pub raw: Map<String, Value>,
    /// The digest of `raw`.
    pub digest: Digest,
}

/// A tool that the filter hides, with the data that shows a change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HiddenTool {
    /// The digest of the whole tool.
    pub digest: Digest,
    /// The server's name of the tool.
    pub name: String,
}

impl Lock {
    /// The source that is mounted on `path`.
    pub fn source(&self, path: &str) -> Option<&LockedSource> {
        self.sources
            .iter()
            .find(|source| source.path.as_str() == path)
    }
}

#[cfg(test)]
mod tests;

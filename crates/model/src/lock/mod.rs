//! The lock: the reviewed snapshots of all sources, what of them is exposed, and their digests.
//!
//! A [`Lock`] is either made from snapshots ([`LockedSource::from_snapshot`]) or read from a file and
//! verified ([`Lock::parse`]); there is no third way, so its digests always fit.
//!
//! # The file
//!
//! JSON, two spaces, sorted keys, LF, no time, host or path. `lock_version` 1 has at the top
//! `config_digest`, `generator` (outside the root digest), `hash_model`, `lock_version`,
//! `root_digest` and `sources`; the shapes of a source and of a tool stand in `source.rs` and
//! `tool.rs`. Each tool is stored whole, with two changes that reading undoes or that the file
//! itself states: `description` is a list of lines, and members that `volatile` names are left out.
//! Version 2 adds members, which `format2.rs` describes and nothing uses yet.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::digest::Digest;
use crate::path::NodePath;

mod file;
mod format2;
mod package;
mod source;
mod tool;

pub use package::{Package, PackageKind};
pub use tool::{MEMBERS, ToolDigests, strip_volatile};

/// The largest lock, in bytes. A listing has at most 32 MiB, so that eight of the largest fit.
pub const MAX_BYTES: usize = 256 << 20;

/// The version of the format that a new lock has.
pub const LOCK_VERSION: u64 = 1;
/// The newest version that is read; all older ones down to 1 are, too.
pub const MAX_LOCK_VERSION: u64 = 2;

/// A lock whose digests fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Lock {
    /// The version of its format: [`LOCK_VERSION`] for a new lock, else that of the file, which the root
    /// digest covers.
    pub version: u64,
    /// Of the config that it was made for.
    pub config_digest: Digest,
    /// Who wrote it, `broker-gen 0.1.0`.
    pub generator: String,
    /// Sorted by path; no path twice.
    pub sources: Vec<LockedSource>,
}

/// What was reviewed of one source.
#[derive(Clone, Debug, PartialEq)]
pub struct LockedSource {
    /// The node it is mounted on.
    pub path: NodePath,
    /// `stdio` or `http`.
    pub backend: String,
    /// Of this source's part of the config, so that one source can be locked anew alone.
    pub config_digest: Digest,
    /// `serverInfo` as sent.
    pub server_info: Value,
    /// The revision agreed on.
    pub protocol_version: String,
    /// `capabilities` as sent.
    pub capabilities: Value,
    /// `instructions`, where sent.
    pub instructions: Option<String>,
    /// The package that the source ran, where that could be told.
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
    /// The server's name for it.
    pub upstream_name: String,
    /// Its last path segment: the alias, else the upstream name.
    pub exposed_name: String,
    /// The tool as the server sent it, without volatile members.
    pub raw: Map<String, Value>,
    /// Of `raw` as a whole.
    pub digest: Digest,
}

/// A tool that the filter hides: enough to see that it changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenTool {
    /// The server's name for it.
    pub name: String,
    /// Of the raw tool as a whole, without volatile members.
    pub digest: Digest,
}

impl Lock {
    /// The source mounted on `path`.
    pub fn source(&self, path: &str) -> Option<&LockedSource> {
        self.sources
            .iter()
            .find(|source| source.path.as_str() == path)
    }
}

#[cfg(test)]
mod tests;

//! The lock: the reviewed snapshots of all sources, the exposed tools, and their digests.
//!
//! A [`Lock`] is made from snapshots (by `broker-config`) or read from a file and verified
//! ([`Lock::parse`]); there is no other constructor, so its digests always match.
//!
//! # The file
//!
//! JSON, two spaces, LF; no time, host or path. The top level has `config_digest`, `generator` (outside the root
//! digest), `hash_model`, `lock_version`, `root_digest` and `sources`; `wire.rs` has all members. Each tool is stored
//! whole, with two changes: `description` is a list of lines, and members that `volatile` names are left out. Keys of
//! version 1 are sorted. Version 2 adds members and has another order: see `format2.rs`. Version 3 adds the parts that
//! were left out (`left_out.rs`), the digest of the access rules (`access.rs`), and the version of the list of
//! sensitive words (`word_list.rs`). It is written only if the lock has one of them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Backend;
use crate::codes::LeftOutCode;
use crate::digest::Digest;
use crate::item::ItemKind;
use crate::left_out::LeftOut;
use crate::path::NodePath;
use crate::snapshot::ListedTool;
use crate::trust::WordList;

mod access;
mod changes;
mod file;
mod format2;
mod left_out;
mod package;
mod settings;
mod source;
mod tool;
pub(crate) mod wire;
mod word_list;

pub use access::LockedAccess;
pub use changes::SettingChange;
pub use left_out::{LeftOutPart, LeftOutSource, MoreLeftOut};
pub use package::{Package, PackageKind};
pub use settings::{Command, EndpointSettings, HttpSettings, ShellCommand, SourceSettings, Word};
pub use tool::{VOLATILE_INSTRUCTIONS, strip_volatile, tool_digests};

/// Maximum size of a lock, in bytes: eight listings of the maximum size of 32 MiB.
pub const MAX_BYTES: usize = 256 << 20;

/// The format version of a new lock without members of a later one.
pub const LOCK_VERSION: u64 = 2;
/// The format version of a lock with access rules, sensitive words, parts that are left out or kept, or a source that
/// answers at another path than its URL names; the newest one.
pub const PARTIAL_LOCK_VERSION: u64 = 3;
/// The oldest format version that is read, besides all newer ones up to [`PARTIAL_LOCK_VERSION`].
pub const MIN_LOCK_VERSION: u64 = 1;

/// A lock whose digests match.
#[derive(Clone, Debug, PartialEq)]
pub struct Lock {
    /// Its format version: [`Lock::new_version`] for a new lock, else the version in the file. The root digest covers
    /// it. Version 1 is written without the members of version 2.
    pub version: u64,
    /// The digest of its config.
    pub config_digest: Digest,
    /// The digest of the section `access` of its config. Locks of the versions before 3 do not record it; see
    /// [`Lock::access`].
    pub access_digest: Option<Digest>,
    /// The program that wrote it, `broker-gen 0.1.0`.
    pub generator: String,
    /// Sorted by path. Each path is unique.
    pub sources: Vec<LockedSource>,
    /// Sources of the config that are left out as a whole, sorted by path. They are not in `sources`.
    pub left_out: Vec<LeftOutSource>,
}

/// The reviewed content of one source.
#[derive(Clone, Debug, PartialEq)]
pub struct LockedSource {
    /// The path of the node where it is mounted.
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
    /// The config fields that version 2 repeats in plain text.
    pub settings: Option<SourceSettings>,
    /// The version of the list of sensitive words that hid tools; `None` for [`WordList::First`], and at levels that do
    /// not ask for one. See [`LockedSource::word_list`].
    pub sensitive_words: Option<WordList>,
    /// The path where the server answered, if that is not the one of its URL as written; only in version 3.
    pub url_path: Option<String>,
    /// Pointer patterns of members that digests and comparisons leave out.
    pub volatile: BTreeSet<String>,
    /// Tools that callers see, sorted by upstream name.
    pub exposed: Vec<LockedTool>,
    /// Hidden tools, sorted by name.
    pub hidden: Vec<HiddenTool>,
    /// What the server listed and the lock leaves out, in the order of [`LockedSource::leave_out`]; at most
    /// [`MAX_RECORDS`](crate::left_out::MAX_RECORDS).
    pub left_out: Vec<LeftOut>,
    /// The number of parts that are left out besides `left_out`.
    pub more_left_out: Option<MoreLeftOut>,
    /// Why this is the last locked state of the source and not the current one, if so.
    pub kept: Option<LeftOutCode>,
}

/// A reviewed tool.
#[derive(Clone, Debug, PartialEq)]
pub struct LockedTool {
    /// The server's name of the tool.
    pub upstream_name: String,
    /// Its line in listings when it was locked; only in version 2.
    pub summary: Option<String>,
    /// Its last path segment: the alias, else the upstream name.
    pub exposed_name: String,
    /// The search hints of the config; only in version 2.
    pub search_hints: Vec<String>,
    /// The tool as the server sent it, without volatile members.
    pub raw: Map<String, Value>,
    /// The digest of `raw`.
    pub digest: Digest,
    /// Whether a schema of it is not valid, and the part that is valid is enforced; only in version 3.
    pub unvalidated: bool,
}

/// A tool that filter or trust level hides, with the data that shows a change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HiddenTool {
    /// The server's name of the tool.
    pub name: String,
    /// The digest of the whole tool.
    pub digest: Digest,
}

impl LockedTool {
    /// The tool as the server listed it.
    pub fn listed(&self) -> ListedTool {
        let text = crate::json::to_text(&self.raw);
        ListedTool::new(self.upstream_name.clone(), &text)
    }

    /// Its kind.
    pub fn kind(&self) -> ItemKind {
        ItemKind::parse_key(&self.upstream_name).0
    }
}

impl Lock {
    /// The source that is mounted on `path`.
    pub fn source(&self, path: &str) -> Option<&LockedSource> {
        self.sources
            .iter()
            .find(|source| source.path.as_str() == path)
    }
}

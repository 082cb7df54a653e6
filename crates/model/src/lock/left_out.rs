//! Format version 3 of the lock: parts that are left out or kept, with the digest of what was seen.
//!
//! A lock has this version only if it has such a part, an `access_digest`, `sensitive_words` or a `url_path`; else it is
//! written as before. All members of version 2 keep name and meaning.
//!
//! | object | member | value |
//! |---|---|---|
//! | top level | `access_digest` | the digest of the section `access` of the config, if it has one |
//! | top level | `left_out` | sources of the config that are left out as a whole |
//! | a source | `url_path` | the path at which the server answered, if that is not the one of its URL as written |
//! | a source | `left_out` | what the server listed and the lock leaves out, at most 1 000 |
//! | a source | `more_left_out` | the number of the other ones, and a digest of them |
//! | a source | `sensitive_words` | the version of the list of sensitive words, if it is `untrusted` and not locked with the first one |
//! | a tool | `unvalidated` | `true` if a schema of it is not valid and the tool is served as the config says |
//! | a source | `kept` | the reason if this is its last locked state: `not_started`, or `package_changed` |
//!
//! No record has a time, an output of a process, or another value that differs between two runs.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

use super::{Lock, LockedSource};
use crate::codes::LeftOutCode;
use crate::digest::Digest;
use crate::item::ItemKind;
use crate::left_out::{LeftOut, MAX_RECORDS};
use crate::path::NodePath;

/// A source of the config that the lock leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOutSource {
    /// The path of the node where it would be mounted.
    pub path: NodePath,
    /// The kind of the reason.
    pub code: LeftOutCode,
    /// The JSON pointer of the place within the listing; empty for the whole source.
    pub place: String,
    /// The reason, in one line. It is the same in every run.
    pub reason: String,
    /// The digest of this source's part of the config.
    pub config_digest: Digest,
    /// The digest of the listed contents; `None` without a listing.
    pub digest: Option<Digest>,
}

/// The number of parts that are left out and have no record, and a digest of all of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MoreLeftOut {
    /// Their number.
    pub count: u64,
    /// The digest of their digests.
    pub digest: Digest,
}

/// One part of a lock that is left out, kept or unvalidated, as an entry of the audits names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOutPart<'a> {
    /// Its source.
    pub source: &'a NodePath,
    /// The key of the tool or item; `None` for a whole source, and for an object without a readable name.
    pub tool: Option<String>,
    /// The kind of the reason.
    pub code: LeftOutCode,
    /// Whether the last locked state of the source is in the lock.
    pub is_kept: bool,
    /// Whether it is a whole source.
    pub is_source: bool,
    /// The number of parts that it represents; more than one only for parts without a record.
    pub count: u64,
    /// The JSON pointer of the place.
    pub place: &'a str,
    /// The reason, in one line.
    pub reason: &'a str,
    /// The digest of the listed contents, or of the config of a source without a listing.
    pub digest: Digest,
}

impl Lock {
    /// Every part that is left out, kept or unvalidated, sorted by source.
    pub fn left_out_parts(&self) -> Vec<LeftOutPart<'_>> {
        let whole = self.left_out.iter().map(LeftOutSource::part);
        let of_sources = self.sources.iter().flat_map(LockedSource::left_out_parts);
        let mut parts: Vec<_> = whole.chain(of_sources).collect();
        parts.sort_by(|a, b| a.source.cmp(b.source));
        parts
    }

    /// The record of a source that is left out as a whole.
    pub fn left_out_source(&self, path: &NodePath) -> Option<&LeftOutSource> {
        self.left_out.iter().find(|one| one.path == *path)
    }
}

impl LeftOutPart<'_> {
    /// The state of the part, after its name.
    pub fn state(&self) -> &'static str {
        if self.code == LeftOutCode::Unvalidated {
            return "is served unvalidated";
        }
        match self.is_kept {
            true => "is kept as it was locked",
            false => "is left out of the lock",
        }
    }
}

impl LeftOutSource {
    /// The record as a part of its lock.
    pub fn part(&self) -> LeftOutPart<'_> {
        LeftOutPart {
            source: &self.path,
            tool: None,
            code: self.code,
            is_kept: false,
            is_source: true,
            count: 1,
            place: &self.place,
            reason: &self.reason,
            digest: self.digest.as_ref().unwrap_or(&self.config_digest).clone(),
        }
    }
}

impl LockedSource {
    /// Adds records of what is left out: sorted, each once. Before the source is written, [`LockedSource::count_rest`]
    /// takes those over the limit.
    pub fn leave_out(&mut self, records: impl IntoIterator<Item = LeftOut>) {
        for record in records {
            let known = &self.left_out;
            let at = known.partition_point(|one| order(one) < order(&record));
            if known.get(at) != Some(&record) {
                self.left_out.insert(at, record);
            }
        }
    }

    /// Keeps the first [`MAX_RECORDS`] records; the other ones are counted.
    pub fn count_rest(&mut self) {
        if self.left_out.len() <= MAX_RECORDS {
            return;
        }
        let rest = self.left_out.split_off(MAX_RECORDS);
        let counted = self.more_left_out.take();
        let before = counted.as_ref().map(|more| &more.digest);
        let digests: Vec<_> = before
            .into_iter()
            .chain(rest.iter().map(|one| &one.digest))
            .collect();
        self.more_left_out = Some(MoreLeftOut {
            count: counted.as_ref().map_or(0, |more| more.count) + rest.len() as u64,
            digest: Digest::from_member("left_out", &json!(digests)),
        });
    }

    /// Its parts that are left out, its tools that are unvalidated, and itself if it is kept.
    pub fn left_out_parts(&self) -> Vec<LeftOutPart<'_>> {
        let whole = |code: LeftOutCode, digest| LeftOutPart {
            source: &self.path,
            tool: None,
            code,
            is_kept: false,
            is_source: false,
            count: 1,
            place: "",
            reason: code.cause(),
            digest,
        };
        let kept = self.kept.map(|code| LeftOutPart {
            is_kept: true,
            is_source: true,
            ..whole(code, self.kept_digest())
        });
        let records = self.left_out.iter().map(|one| LeftOutPart {
            source: &self.path,
            tool: one.name.as_deref().map(|name| one.kind.key(name)),
            code: one.code,
            is_kept: false,
            is_source: false,
            count: 1,
            place: &one.place,
            reason: &one.reason,
            digest: one.digest.clone(),
        });
        let more = self.more_left_out.as_ref();
        let more = more.map(|more| LeftOutPart {
            count: more.count,
            ..whole(LeftOutCode::More, more.digest.clone())
        });
        let unvalidated = self.exposed.iter().filter(|tool| tool.unvalidated);
        let unvalidated = unvalidated.map(|tool| LeftOutPart {
            tool: Some(tool.upstream_name.clone()),
            ..whole(LeftOutCode::Unvalidated, tool.digest.clone())
        });
        let parts = kept.into_iter().chain(records).chain(more);
        parts.chain(unvalidated).collect()
    }

    /// The digest of the state that is kept: another state needs another decision.
    fn kept_digest(&self) -> Digest {
        Digest::from_member("kept_source", &self.to_json())
    }
}

/// The order of the records of a source.
fn order(one: &LeftOut) -> impl Ord + '_ {
    (
        one.kind,
        &one.name,
        one.code,
        &one.place,
        &one.reason,
        &one.digest,
    )
}

/// A tool or another item that the lock leaves out.
#[derive(Deserialize, Serialize)]
#[serde(rename = "LeftOut", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct LeftOutWire {
    /// The server's name of it, cut; absent if it has none that can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// `prompt`, `template` or `resource`; absent for a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    /// The kind of the reason.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    code: LeftOutCode,
    /// The JSON pointer of the place in it; absent for the whole object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    place: String,
    /// The reason, in one line.
    reason: String,
    /// The digest of what the server listed.
    digest: Digest,
}

/// A source that the lock leaves out.
#[derive(Deserialize, Serialize)]
#[serde(rename = "LeftOutSource", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct LeftOutSourceWire {
    /// The node on which it would be mounted.
    path: NodePath,
    /// The kind of the reason.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    code: LeftOutCode,
    /// The JSON pointer of the place in its listing; absent for the whole source.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    place: String,
    /// The reason, in one line.
    reason: String,
    /// The digest of this source's part of the config.
    config_digest: Digest,
    /// The digest of what was listed; absent if nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<Digest>,
}

/// The kinds that a record names.
#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
enum Kind {
    Prompt,
    Template,
    Resource,
}

impl LeftOutSourceWire {
    pub(super) fn path(&self) -> &NodePath {
        &self.path
    }
}

impl From<&LeftOut> for LeftOutWire {
    fn from(one: &LeftOut) -> Self {
        Self {
            name: one.name.clone(),
            kind: match one.kind {
                ItemKind::Tool => None,
                ItemKind::Prompt => Some(Kind::Prompt),
                ItemKind::Template => Some(Kind::Template),
                ItemKind::Resource => Some(Kind::Resource),
            },
            code: one.code,
            place: one.place.clone(),
            reason: one.reason.clone(),
            digest: one.digest.clone(),
        }
    }
}

impl From<LeftOutWire> for LeftOut {
    fn from(wire: LeftOutWire) -> Self {
        Self {
            kind: match wire.kind {
                None => ItemKind::Tool,
                Some(Kind::Prompt) => ItemKind::Prompt,
                Some(Kind::Template) => ItemKind::Template,
                Some(Kind::Resource) => ItemKind::Resource,
            },
            name: wire.name,
            code: wire.code,
            place: wire.place,
            reason: wire.reason,
            digest: wire.digest,
        }
    }
}

impl From<&LeftOutSource> for LeftOutSourceWire {
    fn from(one: &LeftOutSource) -> Self {
        Self {
            path: one.path.clone(),
            code: one.code,
            place: one.place.clone(),
            reason: one.reason.clone(),
            config_digest: one.config_digest.clone(),
            digest: one.digest.clone(),
        }
    }
}

impl From<LeftOutSourceWire> for LeftOutSource {
    fn from(wire: LeftOutSourceWire) -> Self {
        Self {
            path: wire.path,
            code: wire.code,
            place: wire.place,
            reason: wire.reason,
            config_digest: wire.config_digest,
            digest: wire.digest,
        }
    }
}

impl Serialize for LeftOutCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for LeftOutCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut all = Self::ALL.iter();
        let known = all.find(|code| code.as_str() == text).copied();
        known.ok_or_else(|| serde::de::Error::custom("unknown reason of a part that is left out"))
    }
}

//! The wire form of the lock: the members of the file and their types. [`Lock`] is its checked form.
//!
//! The fields have the order of version 2. Version 1 is written with sorted keys.
//!
//! The published JSON Schema is made from the same types.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::left_out::{LeftOutSourceWire, LeftOutWire, MoreLeftOut};
use super::settings::{Command, EndpointSettings, HttpSettings, SourceSettings, Word};
use super::tool::{Lines, raw_tool, tool_digests};
use super::{HiddenTool, LeftOutSource, Lock, LockedSource, LockedTool, Package};
use crate::Backend;
use crate::codes::{DiagnosticCode, LeftOutCode};
use crate::diagnostic::Diagnostic;
use crate::digest::{Digest, HASH_MODEL};
use crate::item::{ItemKind, id_of};
use crate::path::NodePath;
use crate::trust::{TrustLevel, WordList};

/// A lock of mcp-broker: the reviewed tools of every source. Written by `broker-gen lock`, never by hand.
#[derive(Deserialize, Serialize)]
#[serde(rename = "Lock", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LockWire {
    /// The digest of the section `access` of the config, if it has one; version 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    access_digest: Option<Digest>,
    /// The digest of the config fields that the lock depends on.
    config_digest: Digest,
    /// The program that wrote it; outside the root digest.
    generator: String,
    /// The formula of the digests.
    #[cfg_attr(feature = "schema", schemars(extend("const" = HASH_MODEL)))]
    hash_model: String,
    /// Sources of the config that are left out as a whole, sorted by path; version 3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOutSourceWire>,
    /// The version of this format; a version has no member that is marked with a later one.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = [super::MIN_LOCK_VERSION, super::LOCK_VERSION, super::PARTIAL_LOCK_VERSION])))]
    lock_version: u64,
    /// The digest of all other members except `generator`.
    root_digest: Digest,
    /// Sorted by path.
    sources: Vec<SourceWire>,
}

/// The reviewed content of one source.
#[derive(Deserialize, Serialize)]
#[serde(rename = "Source", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct SourceWire {
    /// The node on which it is mounted.
    path: NodePath,
    /// The trust level, if it is not the default of the transport; version 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    trust: Option<TrustLevel>,
    /// The program and its arguments, variables unexpanded; version 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Command>,
    /// The URL, variables unexpanded; version 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<Word>,
    /// The path at which the server answered, if that is not the one of its URL as written; version 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    url_path: Option<String>,
    /// The names of the headers in lower case, sorted; version 2.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    header_names: Vec<String>,
    /// The patterns of its filter; version 2.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tool_filter: Vec<String>,
    /// The last segments of paths by the server's names; version 2.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    path_aliases: BTreeMap<String, String>,
    /// The transport.
    backend: Backend,
    /// As the server sent them.
    capabilities: Value,
    /// The digest of this source's part of the config.
    config_digest: Digest,
    /// Exposed tools, sorted by upstream name.
    exposed: Vec<ToolWire>,
    /// Hidden tools, sorted by name.
    hidden: Vec<HiddenTool>,
    /// As the server sent them.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<Lines>,
    /// The package of the source, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    package: Option<Package>,
    /// The negotiated MCP revision.
    protocol_version: String,
    /// The version of the list of sensitive words with which its tools were hidden, if it is not 1; version 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    sensitive_words: Option<u64>,
    /// As the server sent it.
    server_info: Value,
    /// Pointers of members that digests and comparisons leave out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    volatile: Vec<String>,
    /// Why this is the last locked state of the source and not the current one; version 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    kept: Option<LeftOutCode>,
    /// What the server listed and the lock leaves out, at most 1 000; version 3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOutWire>,
    /// The parts that are left out besides `left_out`; version 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_left_out: Option<MoreLeftOut>,
}

/// A reviewed tool.
#[derive(Deserialize, Serialize)]
#[serde(rename = "Tool", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ToolWire {
    /// The last segment of its path.
    exposed_name: String,
    /// Its line in listings when it was locked; version 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    /// The server's name of the tool.
    upstream_name: String,
    /// Phrases of the config by which a search finds it; version 2.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    search_hints: Vec<String>,
    /// The tool as the server sent it, with the description as a list of lines.
    #[serde(with = "raw_tool")]
    #[cfg_attr(feature = "schema", schemars(with = "RawTool"))]
    raw: Map<String, Value>,
    /// The digests of the whole tool, and of each of its members.
    digests: BTreeMap<String, Digest>,
    /// Whether a schema of it is not valid, and only the part that is valid is enforced; version 3.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unvalidated: bool,
}

/// As the server sent it, unknown members included.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "the members of a tool are read as they are")]
struct RawTool {
    name: String,
    description: Option<Lines>,
    #[serde(rename = "inputSchema")]
    input_schema: Option<Map<String, Value>>,
    #[serde(rename = "outputSchema")]
    output_schema: Option<Map<String, Value>>,
}

impl From<&Lock> for LockWire {
    fn from(lock: &Lock) -> Self {
        let mut sources: Vec<_> = lock.sources.iter().collect();
        sources.sort_by(|a, b| a.path.cmp(&b.path));
        let mut wire = Self {
            access_digest: lock.access_digest.clone(),
            config_digest: lock.config_digest.clone(),
            generator: lock.generator.clone(),
            hash_model: HASH_MODEL.to_owned(),
            left_out: lock.left_out.iter().map(LeftOutSourceWire::from).collect(),
            lock_version: lock.version,
            root_digest: lock.config_digest.clone(),
            sources: sources
                .into_iter()
                .map(|source| SourceWire::new(source, lock.version))
                .collect(),
        };
        wire.root_digest = wire.computed_root_digest();
        wire
    }
}

impl TryFrom<LockWire> for Lock {
    type Error = Vec<Diagnostic>;

    fn try_from(wire: LockWire) -> Result<Self, Vec<Diagnostic>> {
        let mut problems = Vec::new();
        let mut paths = BTreeSet::new();
        for (index, source) in wire.sources.iter().enumerate() {
            let at = format!("/sources/{index}");
            source.check(&at, &mut problems);
            if !paths.insert(&source.path) {
                let message = format!("the lock has the source `{}` twice", source.path);
                problems.push(Diagnostic::error(DiagnosticCode::LockOrphan, message).at(at));
            }
        }
        for (index, source) in wire.left_out.iter().enumerate() {
            if !paths.insert(source.path()) {
                let message = format!("the lock has the source `{}` twice", source.path());
                let at = format!("/left_out/{index}");
                problems.push(Diagnostic::error(DiagnosticCode::LockOrphan, message).at(at));
            }
        }
        let needs_version_3 = wire.access_digest.is_some()
            || !wire.left_out.is_empty()
            || wire.sources.iter().any(SourceWire::is_partial);
        if needs_version_3 != (wire.lock_version == super::PARTIAL_LOCK_VERSION) {
            let message = "a lock of version 3 has an `access_digest`, `sensitive_words`, a `url_path`, or parts that are left out, kept or unvalidated, and no other version has them";
            problems.push(corrupt(message, "/lock_version"));
        }
        let found = wire.computed_root_digest();
        if problems.is_empty() && found != wire.root_digest {
            let message = format!(
                "the lock was edited: the root digest of its content is {found}, and `root_digest` differs"
            );
            problems.push(corrupt(message, "/root_digest"));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut left_out: Vec<_> = wire.left_out.into_iter().map(Into::into).collect();
        left_out.sort_by(|a: &LeftOutSource, b| a.path.cmp(&b.path));
        let mut sources: Vec<LockedSource> = wire
            .sources
            .into_iter()
            .map(SourceWire::unchecked)
            .collect();
        sources.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self {
            version: wire.lock_version,
            config_digest: wire.config_digest,
            access_digest: wire.access_digest,
            generator: wire.generator,
            sources,
            left_out,
        })
    }
}

impl LockWire {
    /// Returns the JSON pointer of the first command or URL with a word in another form than the lock writes.
    pub(super) fn place_of_other_words(&self) -> Option<String> {
        let is_normal = |words: &[Word]| words.iter().all(Word::is_normal);
        let mut sources = self.sources.iter().enumerate();
        sources.find_map(|(index, source)| {
            let command = source.command.as_ref().map_or(&[][..], Command::words);
            let url = source.url.as_slice();
            let words = [("command", command), ("url", url)];
            let (member, _) = words.into_iter().find(|(_, words)| !is_normal(words))?;
            Some(format!("/sources/{index}/{member}"))
        })
    }

    /// The digest of all members except `generator` and `root_digest`.
    pub(super) fn computed_root_digest(&self) -> Digest {
        let mut covered = json!({
            "config_digest": self.config_digest,
            "hash_model": self.hash_model,
            "lock_version": self.lock_version,
            "sources": self.sources,
        });
        if !self.left_out.is_empty() {
            covered["left_out"] = json!(self.left_out);
        }
        if let Some(digest) = &self.access_digest {
            covered["access_digest"] = json!(digest);
        }
        Digest::new("mcp-broker:lock:1", &covered)
    }
}

impl SourceWire {
    /// The source with the members of this format version.
    pub(super) fn new(source: &LockedSource, version: u64) -> Self {
        let settings = source.settings.clone().filter(|_| version > 1);
        let (mut command, mut url, mut header_names) = (None, None, Vec::new());
        let (mut tool_filter, mut path_aliases) = (Vec::new(), BTreeMap::new());
        let trust = settings.as_ref().and_then(|settings| settings.trust);
        if let Some(settings) = settings {
            (tool_filter, path_aliases) = (settings.tool_filter, settings.path_aliases);
            match settings.endpoint {
                EndpointSettings::Process(one) => command = Some(one),
                EndpointSettings::Http(http) => {
                    (url, header_names) = (Some(http.url), http.header_names);
                }
            }
        }
        let exposed = source.exposed.iter();
        let wire = Self {
            trust,
            command,
            url,
            header_names,
            tool_filter,
            path_aliases,
            backend: source.backend,
            capabilities: source.capabilities.clone(),
            config_digest: source.config_digest.clone(),
            exposed: exposed.map(|tool| ToolWire::new(tool, version)).collect(),
            hidden: source.hidden.clone(),
            instructions: source.instructions.clone().map(Lines),
            package: source.package.clone(),
            path: source.path.clone(),
            protocol_version: source.protocol_version.clone(),
            server_info: source.server_info.clone(),
            sensitive_words: None,
            volatile: source.volatile.iter().cloned().collect(),
            url_path: source
                .url_path
                .clone()
                .filter(|_| version >= super::PARTIAL_LOCK_VERSION),
            kept: None,
            left_out: Vec::new(),
            more_left_out: None,
        };
        match version >= super::PARTIAL_LOCK_VERSION {
            true => wire.with_left_out(source),
            false => wire,
        }
    }

    /// With the members of version 3.
    pub(super) fn with_left_out(self, source: &LockedSource) -> Self {
        Self {
            sensitive_words: source.sensitive_words.map(WordList::number),
            kept: source.kept,
            left_out: source.left_out.iter().map(LeftOutWire::from).collect(),
            more_left_out: source.more_left_out.clone(),
            ..self
        }
    }

    /// Whether it has a member of version 3.
    fn is_partial(&self) -> bool {
        self.kept.is_some()
            || self.sensitive_words.is_some()
            || self.url_path.is_some()
            || !self.left_out.is_empty()
            || self.more_left_out.is_some()
            || self.exposed.iter().any(|tool| tool.unvalidated)
    }
}

impl SourceWire {
    /// The name of a field of the config that it has besides its endpoint.
    fn a_setting(&self) -> Option<&'static str> {
        let settings = [
            ("trust", self.trust.is_some()),
            ("tool_filter", !self.tool_filter.is_empty()),
            ("path_aliases", !self.path_aliases.is_empty()),
        ];
        let present = settings.into_iter().find(|(_, is_there)| *is_there);
        present.map(|(name, _)| name)
    }

    /// Adds tools that are there twice, and tools that do not match their digests.
    fn check(&self, at: &str, problems: &mut Vec<Diagnostic>) {
        let setting = self.a_setting();
        let problem = match (self.backend, &self.command, &self.url) {
            (_, None, None) if setting.is_some() => {
                setting.map(|name| (name, "and neither `command` nor `url`"))
            }
            (Backend::Stdio, _, Some(_)) => Some(("url", "and its backend is `stdio`")),
            (Backend::Http, Some(_), _) => Some(("command", "and its backend is `http`")),
            _ if !self.header_names.is_empty() && self.url.is_none() => {
                Some(("header_names", "and no `url`"))
            }
            _ => None,
        };
        problems.extend(problem.map(|(member, rest)| {
            let message = format!("the source has `{member}`, {rest}");
            corrupt(message, format!("{at}/{member}"))
        }));
        problems.extend(self.other_words(at));
        let mut names = BTreeSet::new();
        let exposed = self.exposed.iter().enumerate();
        let exposed =
            exposed.map(|(index, tool)| (format!("{at}/exposed/{index}"), &tool.upstream_name));
        let hidden = self.hidden.iter().enumerate();
        let hidden = hidden.map(|(index, tool)| (format!("{at}/hidden/{index}"), &tool.name));
        for (at, name) in exposed.chain(hidden) {
            if !names.insert(name) {
                let message = format!("the source has the tool `{name}` twice");
                problems.push(Diagnostic::error(DiagnosticCode::LockOrphan, message).at(at));
            }
        }
        for (index, tool) in self.exposed.iter().enumerate() {
            problems.extend(tool.check(&format!("{at}/exposed/{index}")));
        }
    }

    /// Returns the problem of a list of sensitive words that this program does not have, or of the first list, since a
    /// lock does not name that one.
    fn other_words(&self, at: &str) -> Option<Diagnostic> {
        let number = self.sensitive_words?;
        let newest = WordList::NEWEST.number();
        let at = format!("{at}/sensitive_words");
        if number > newest {
            let message = format!(
                "the lock has version {number} of the list of sensitive words, this program has 1 to {newest}"
            );
            let help = "Upgrade mcp-broker and broker-gen to the version that wrote it, or make a new lock with this one.";
            let newer = Diagnostic::error(DiagnosticCode::LockVersion, message);
            return Some(newer.help(help).at(at));
        }
        (number < 2).then(|| corrupt("the first list of sensitive words is not named", at))
    }

    /// The source without a verification of its digests.
    pub(super) fn unchecked(self) -> LockedSource {
        let http = self.url.map(|url| HttpSettings {
            url,
            header_names: self.header_names,
        });
        let endpoint = match self.command {
            Some(command) => Some(EndpointSettings::Process(command)),
            None => http.map(EndpointSettings::Http),
        };
        LockedSource {
            path: self.path,
            backend: self.backend,
            config_digest: self.config_digest,
            server_info: self.server_info,
            protocol_version: self.protocol_version,
            capabilities: self.capabilities,
            instructions: self.instructions.map(|Lines(text)| text),
            package: self.package,
            settings: endpoint.map(|endpoint| SourceSettings {
                trust: self.trust,
                endpoint,
                tool_filter: self.tool_filter,
                path_aliases: self.path_aliases,
            }),
            sensitive_words: self.sensitive_words.and_then(WordList::from_number),
            url_path: self.url_path,
            volatile: self.volatile.into_iter().collect(),
            exposed: self.exposed.into_iter().map(ToolWire::unchecked).collect(),
            hidden: self.hidden,
            left_out: self.left_out.into_iter().map(Into::into).collect(),
            more_left_out: self.more_left_out,
            kept: self.kept,
        }
    }
}

impl ToolWire {
    /// The tool with the members of this format version.
    fn new(tool: &LockedTool, version: u64) -> Self {
        Self {
            digests: tool_digests(&tool.raw),
            exposed_name: tool.exposed_name.clone(),
            raw: tool.raw.clone(),
            search_hints: match version {
                1 => Vec::new(),
                _ => tool.search_hints.clone(),
            },
            summary: tool.summary.clone().filter(|_| version > 1),
            upstream_name: tool.upstream_name.clone(),
            unvalidated: tool.unvalidated,
        }
    }

    fn check(&self, at: &str) -> Option<Diagnostic> {
        let (kind, id) = ItemKind::parse_key(&self.upstream_name);
        if id != id_of(kind, &self.raw) {
            let at = format!("{at}/upstream_name");
            return Some(corrupt("the name differs from the tool's", at));
        }
        let expected = tool_digests(&self.raw);
        if self.digests == expected {
            return None;
        }
        let differs =
            |(name, digest): &(&String, &Digest)| self.digests.get(*name) != Some(*digest);
        let member = expected
            .iter()
            .find(differs)
            .map_or("whole", |(name, _)| name);
        let name = &self.upstream_name;
        let message = format!("the digest of `{name}` does not match the tool");
        Some(corrupt(message, format!("{at}/digests/{member}")))
    }

    fn unchecked(self) -> LockedTool {
        let Self {
            mut digests, raw, ..
        } = self;
        let written = digests.remove("whole");
        LockedTool {
            upstream_name: self.upstream_name,
            summary: self.summary,
            search_hints: self.search_hints,
            exposed_name: self.exposed_name,
            digest: written.unwrap_or_else(|| Digest::from_tool(&raw)),
            raw,
            unvalidated: self.unvalidated,
        }
    }
}

fn corrupt(message: impl Into<String>, at: impl Into<String>) -> Diagnostic {
    Diagnostic::error(DiagnosticCode::LockCorrupt, message).at(at)
}

//! One source in the lock: `backend`, `capabilities`, `config_digest`, `exposed`, `hidden`, `instructions`?, `package`?,
//! `path`, `protocol_version`, `server_info`, `volatile`?.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::tool::{Digests, from_lines, to_lines};
use super::{HiddenTool, LockedSource, LockedTool, Package, strip_volatile};
use crate::codes::DiagnosticCode;
use crate::config;
use crate::diagnostic::Diagnostic;
use crate::digest::Digest;
use crate::path::NodePath;
use crate::snapshot::Snapshot;

/// The known members.
pub(super) const KEYS: [&str; 11] = [
    "backend",
    "capabilities",
    "config_digest",
    "exposed",
    "hidden",
    "instructions",
    "package",
    "path",
    "protocol_version",
    "server_info",
    "volatile",
];

impl LockedSource {
    /// The locked form of a snapshot: filtered, aliased, sorted, without volatile members. Names are checked
    /// by the planner, for lock and build alike.
    pub fn from_snapshot(config: &config::Source, snapshot: &Snapshot) -> Self {
        let mut source = Self {
            path: config.path.clone(),
            backend: config.backend().to_owned(),
            config_digest: config.digest(),
            server_info: snapshot.server_info.clone(),
            protocol_version: snapshot.protocol_version.clone(),
            capabilities: snapshot.capabilities.clone(),
            instructions: snapshot.instructions.clone(),
            package: None,
            volatile: config.volatile.clone(),
            exposed: Vec::new(),
            hidden: Vec::new(),
        };
        for tool in &snapshot.tools {
            let mut raw = tool.read();
            strip_volatile(&mut raw, &config.volatile);
            let name = tool.name().to_owned();
            if config.filter.admits(&name) {
                let exposed_name = config.aliases.get(&name).unwrap_or(&name).clone();
                source.exposed.push(LockedTool::new(raw, exposed_name));
            } else {
                source.hidden.push(HiddenTool {
                    name,
                    digest: Digest::of_tool(&raw),
                });
            }
        }
        source
            .exposed
            .sort_by(|a, b| a.upstream_name.cmp(&b.upstream_name));
        source.hidden.sort_by(|a, b| a.name.cmp(&b.name));
        source
    }

    /// The subject of audits of the source itself: its name and its instructions.
    pub fn own_digest(&self) -> Digest {
        let name = self.server_info.get("name").cloned();
        let instructions = self.instructions.as_deref().map(Value::from);
        let members = [("name", name), ("instructions", instructions)];
        let said: Map<_, _> = members
            .into_iter()
            .filter_map(|(member, value)| Some((member.to_owned(), value?)))
            .collect();
        Digest::of_member("source", &Value::Object(said))
    }

    /// Its element of the lock's `sources`.
    pub fn to_json(&self) -> Value {
        let mut out = Map::new();
        out.insert("backend".to_owned(), self.backend.as_str().into());
        out.insert("capabilities".to_owned(), self.capabilities.clone());
        out.insert(
            "config_digest".to_owned(),
            self.config_digest.as_str().into(),
        );
        out.insert(
            "exposed".to_owned(),
            self.exposed.iter().map(LockedTool::to_json).collect(),
        );
        out.insert(
            "hidden".to_owned(),
            self.hidden
                .iter()
                .map(|tool| json!({"digest": tool.digest.as_str(), "name": tool.name}))
                .collect(),
        );
        if let Some(text) = &self.instructions {
            out.insert("instructions".to_owned(), to_lines(text));
        }
        if let Some(package) = &self.package {
            out.insert("package".to_owned(), package.to_json());
        }
        out.insert("path".to_owned(), self.path.as_str().into());
        out.insert(
            "protocol_version".to_owned(),
            self.protocol_version.as_str().into(),
        );
        out.insert("server_info".to_owned(), self.server_info.clone());
        if !self.volatile.is_empty() {
            out.insert(
                "volatile".to_owned(),
                self.volatile
                    .iter()
                    .map(|pattern| Value::from(pattern.as_str()))
                    .collect(),
            );
        }
        Value::Object(out)
    }

    /// Reads one element of the lock's `sources` and verifies the digests of its tools. Pointers of
    /// diagnostics are relative to the element.
    pub fn from_json(value: &Value) -> Result<Self, Vec<Diagnostic>> {
        Self::read(value, Digests::Verify)
    }

    /// [`Self::from_json`] without verification, for a compiled-in lock: the build has verified it.
    pub fn from_verified(value: &Value) -> Result<Self, Vec<Diagnostic>> {
        Self::read(value, Digests::Trust)
    }

    fn read(value: &Value, digests: Digests) -> Result<Self, Vec<Diagnostic>> {
        let mut problems = Vec::new();
        let mut wrong = |code, pointer: String, message: String| {
            problems.push(Diagnostic::error(code, message).at(pointer))
        };
        let corrupt = DiagnosticCode::LockCorrupt;
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);

        for key in value
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .filter(|key| !KEYS.contains(&key.as_str()))
        {
            wrong(
                corrupt,
                crate::json::child_pointer("", key),
                "unknown member".to_owned(),
            );
        }
        let path = text("path").and_then(|path| NodePath::parse(&path).ok());
        if path.is_none() {
            wrong(
                corrupt,
                "/path".to_owned(),
                "the path is missing or invalid".to_owned(),
            );
        }
        for key in ["backend", "protocol_version"] {
            if text(key).is_none() {
                wrong(corrupt, format!("/{key}"), format!("`{key}` is missing"));
            }
        }
        let config_digest = text("config_digest")
            .as_deref()
            .and_then(Digest::from_written);
        if config_digest.is_none() {
            wrong(
                corrupt,
                "/config_digest".to_owned(),
                "`config_digest` is not a valid digest".to_owned(),
            );
        }
        let instructions = value.get("instructions").and_then(|lines| {
            let text = from_lines(lines);
            if text.is_none() {
                wrong(
                    corrupt,
                    "/instructions".to_owned(),
                    "the instructions are not a list of lines".to_owned(),
                );
            }
            text
        });

        let package = value.get("package").map(Package::from_json);
        let package = package.and_then(|read| {
            read.map_err(|message| wrong(corrupt, "/package".to_owned(), message))
                .ok()
        });
        let mut names = BTreeSet::new();
        let mut exposed = Vec::new();
        for (index, tool) in value
            .get("exposed")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            match LockedTool::from_json(tool, digests) {
                Ok(tool) if !names.insert(tool.upstream_name.clone()) => {
                    wrong(
                        DiagnosticCode::LockOrphan,
                        format!("/exposed/{index}"),
                        format!("the source has the tool `{}` twice", tool.upstream_name),
                    );
                }
                Ok(tool) => exposed.push(tool),
                Err((pointer, message)) => {
                    wrong(corrupt, format!("/exposed/{index}{pointer}"), message)
                }
            }
        }
        let mut hidden = Vec::new();
        for (index, tool) in value
            .get("hidden")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            let name = tool.get("name").and_then(Value::as_str).map(str::to_owned);
            let digest = tool
                .get("digest")
                .and_then(Value::as_str)
                .and_then(Digest::from_written);
            match (name, digest) {
                (Some(name), Some(_)) if !names.insert(name.clone()) => {
                    wrong(
                        DiagnosticCode::LockOrphan,
                        format!("/hidden/{index}"),
                        format!("the source has the tool `{name}` twice"),
                    );
                }
                (Some(name), Some(digest)) => hidden.push(HiddenTool { name, digest }),
                _ => wrong(
                    corrupt,
                    format!("/hidden/{index}"),
                    "a hidden tool lacks its name or its digest".to_owned(),
                ),
            }
        }
        let volatile = value
            .get("volatile")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let source = path.zip(config_digest).map(|(path, config_digest)| Self {
            path,
            backend: text("backend").unwrap_or_default(),
            config_digest,
            server_info: value.get("server_info").cloned().unwrap_or(Value::Null),
            protocol_version: text("protocol_version").unwrap_or_default(),
            capabilities: value.get("capabilities").cloned().unwrap_or(Value::Null),
            instructions,
            package,
            volatile: volatile
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            exposed,
            hidden,
        });
        match source {
            Some(source) if problems.is_empty() => Ok(source),
            _ => Err(problems),
        }
    }
}

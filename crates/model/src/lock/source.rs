//! One source in the lock: made from a snapshot, or read from the compiled-in lock.

use serde_json::{Map, Value, json};

use super::wire::SourceWire;
use super::{
    HiddenTool, LockedSource, LockedTool, MIN_LOCK_VERSION, SourceSettings, VOLATILE_INSTRUCTIONS,
    strip_volatile,
};
use crate::codes::LeftOutCode;
use crate::config::{self, Config};
use crate::digest::Digest;
use crate::item::ItemKind;
use crate::left_out::{LeftOut, MAX_NAME_CHARS};
use crate::snapshot::Snapshot;
use crate::trust::TrustLevel;

impl LockedSource {
    /// The locked form of a snapshot: filtered, aliased, sorted, without volatile members. Names are checked
    /// by the planner, for lock and build alike.
    pub fn from_snapshot(config: &config::Source, snapshot: &Snapshot) -> Self {
        let mut source = Self {
            path: config.path.clone(),
            backend: config.backend(),
            config_digest: config.digest(),
            server_info: snapshot.server_info.clone(),
            protocol_version: snapshot.protocol_version.clone(),
            capabilities: snapshot.capabilities.clone(),
            instructions: match config.volatile.contains(VOLATILE_INSTRUCTIONS) {
                true => None,
                false => snapshot.instructions.clone(),
            },
            package: None,
            settings: None,
            sensitive_words: Self::words_of(config),
            url_path: None,
            volatile: config.volatile.clone(),
            exposed: Vec::new(),
            hidden: Vec::new(),
            left_out: Vec::new(),
            more_left_out: None,
            kept: None,
        };
        let mut exposed = Vec::new();
        for tool in &snapshot.tools {
            let mut raw = tool.read();
            strip_volatile(tool.name(), &mut raw, &config.volatile);
            let name = tool.name().to_owned();
            if config.exposure.exposes(&name) {
                exposed.push((name, raw));
            } else {
                source.hidden.push(HiddenTool {
                    name,
                    digest: Digest::of_tool(&raw),
                });
            }
        }
        let (exposed, unsafe_parts) = without_unsafe_names(config, exposed);
        let leaves = config.leaves(&exposed);
        source.exposed = exposed
            .into_iter()
            .zip(leaves)
            .map(|((name, raw), leaf)| LockedTool::new(name, raw, leaf))
            .collect();
        source
            .exposed
            .sort_by(|a, b| a.upstream_name.cmp(&b.upstream_name));
        source.hidden.sort_by(|a, b| a.name.cmp(&b.name));
        source.leave_out(snapshot.left_out.iter().cloned().chain(unsafe_parts));
        source
    }

    /// Adds the members of version 2: the config fields in plain text, summary and search
    /// hints of each tool.
    pub fn describe(
        &mut self,
        config: &Config,
        summary: impl Fn(&config::Source, &LockedTool) -> String,
    ) {
        let Some(source) = config.source(&self.path) else {
            return;
        };
        self.settings = Some(SourceSettings::of(config, source));
        for tool in &mut self.exposed {
            tool.summary = Some(summary(source, tool));
            let own = source.overrides.get(&tool.upstream_name);
            tool.search_hints = own
                .map(|own| own.compiled_hints(&tool.digest))
                .unwrap_or_default();
        }
    }

    /// Returns the trust level at the time of the lock. A lock of version 1 has only sources of the default level.
    pub fn trust_level(&self) -> TrustLevel {
        let settings = self.settings.as_ref();
        settings.map_or(
            TrustLevel::default_of(self.backend),
            SourceSettings::trust_level,
        )
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

    /// Returns its element of the lock's `sources` for a catalog: without the members of version 2, since a broker does
    /// not read them. It includes the parts that are left out, so that a broker does not report them as new.
    pub fn to_json(&self) -> Value {
        json!(SourceWire::new(self, MIN_LOCK_VERSION).with_left_out(self))
    }

    /// Reads the JSON text of a compiled-in source. Its digests are not verified: the build did that.
    pub fn from_compiled(text: &str) -> serde_json::Result<Self> {
        let document = crate::json::parse(text).map_err(serde::de::Error::custom)?;
        serde_json::from_value(document).map(SourceWire::unchecked)
    }
}

/// The key of an entry, and the entry as the server sent it.
type Entry = (String, Map<String, Value>);

/// The entries whose names are safe, and the records of the other ones.
fn without_unsafe_names(
    config: &config::Source,
    exposed: Vec<Entry>,
) -> (Vec<Entry>, Vec<LeftOut>) {
    let reasons = config.unsafe_names(&exposed);
    let (mut safe, mut left_out) = (Vec::new(), Vec::new());
    for ((key, raw), reason) in exposed.into_iter().zip(reasons) {
        let Some(reason) = reason else {
            safe.push((key, raw));
            continue;
        };
        let (kind, id) = ItemKind::of_key(&key);
        left_out.push(LeftOut {
            kind,
            name: Some(id.chars().take(MAX_NAME_CHARS).collect()),
            code: LeftOutCode::NameUnsafe,
            place: "/name".to_owned(),
            reason,
            digest: Digest::of_tool(&raw),
        });
    }
    (safe, left_out)
}

//! One source in the lock: made from a snapshot, or read from the compiled-in lock.

use serde_json::{Map, Value, json};

use super::wire::SourceWire;
use super::{
    HiddenTool, LockedSource, LockedTool, MIN_LOCK_VERSION, SourceSettings, strip_volatile,
};
use crate::config::{self, Config};
use crate::digest::Digest;
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
            instructions: snapshot.instructions.clone(),
            package: None,
            settings: None,
            volatile: config.volatile.clone(),
            exposed: Vec::new(),
            hidden: Vec::new(),
        };
        for tool in &snapshot.tools {
            let mut raw = tool.read();
            strip_volatile(tool.name(), &mut raw, &config.volatile);
            let name = tool.name().to_owned();
            if config.exposure.exposes(&name) {
                let exposed_name = config.leaf(&name, &raw);
                source
                    .exposed
                    .push(LockedTool::new(name, raw, exposed_name));
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

    /// Adds the members of version 2: the config fields in plain text, summary and search
    /// hints of each tool. `folder` is
    /// the absolute path of the config's folder.
    pub fn describe(
        &mut self,
        config: &Config,
        folder: &str,
        summary: impl Fn(&config::Source, &LockedTool) -> String,
    ) {
        let Some(source) = config.source(&self.path) else {
            return;
        };
        self.settings = Some(SourceSettings::of(config, source, folder));
        for tool in &mut self.exposed {
            tool.summary = Some(summary(source, tool));
            let own = source.overrides.get(&tool.upstream_name);
            tool.search_hints = own
                .map(|own| own.compiled_hints(&tool.digest))
                .unwrap_or_default();
        }
    }

    /// The trust level with which it was locked. A lock of version 1 has only sources of the default level.
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

    /// Its element of the lock's `sources` for a catalog: without the members of version 2, which no broker reads.
    pub fn to_json(&self) -> Value {
        json!(SourceWire::new(self, MIN_LOCK_VERSION))
    }

    /// Reads the JSON text of a compiled-in source. Its digests are not verified: the build did that.
    pub fn from_compiled(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text).map(SourceWire::unchecked)
    }
}

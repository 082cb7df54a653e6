//! Queries on a checked config: nodes and sources, named variables, places in the file, and the values
//! that are secrets.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::client_file::{Client, written_pointer};
use super::template::Template;
use super::{
    Backend, Config, Endpoint, HttpEndpoint, Node, ProcessEndpoint, Source, StartDefaults,
    StartDrift, StartRule, TextDrift, Unreachable, vscode,
};
use serde_json::{Map, Value};

use broker_model::alias::{self, Named, Wanted};
use broker_model::diagnostic::Diagnostic;
use broker_model::item::{self, ItemKind};
use broker_model::json::position_of_pointer;
use broker_model::lock::Lock;
use broker_model::name_safety;
use broker_model::path::NodePath;
use broker_model::trust::WordList;

/// The bounds of the time of calls in progress at the end, if the config sets none.
const MIN_DRAIN_TIME: Duration = Duration::from_secs(30);
const MAX_DRAIN_TIME: Duration = Duration::from_secs(600);

impl Config {
    /// Returns the base folder for relative paths of this config, if it was read from `file`: the folder of the file,
    /// and for a file of VS Code in `.vscode` the folder that contains `.vscode`.
    pub fn base(&self, file: &Path) -> PathBuf {
        let folder = file.parent().unwrap_or(Path::new(""));
        if self.document.servers_key != vscode::SERVERS {
            return folder.to_owned();
        }
        let written = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        let Ok(absolute) = std::path::absolute(written) else {
            return folder.to_owned();
        };
        match absolute.parent() {
            Some(above) if absolute.ends_with(vscode::FOLDER) => above.to_owned(),
            _ => folder.to_owned(),
        }
    }

    /// The client that wrote the file, if the file or its name says so.
    pub fn client(&self) -> Option<Client> {
        self.document.client
    }

    /// Whether the file has `mcpServers`, or what a client has in its place, and no `tree`.
    pub fn is_client_file(&self) -> bool {
        self.document.value.get("tree").is_none()
    }

    /// Returns the time of calls in progress when the broker ends: `drain_timeout`, else the longest `timeout`, within
    /// bounds.
    pub fn drain_time(&self) -> Duration {
        let timeouts = self.sources().flat_map(|source| {
            let own = source.overrides.values().filter_map(|own| own.timeout);
            own.chain([source.timeout])
        });
        let longest = timeouts.max().unwrap_or_default();
        self.drain_timeout
            .unwrap_or_else(|| longest.clamp(MIN_DRAIN_TIME, MAX_DRAIN_TIME))
    }

    /// Every node, parents before children, in the config's order.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        let mut waiting = vec![&self.root];
        std::iter::from_fn(move || {
            let node = waiting.pop()?;
            waiting.extend(node.children.iter().rev());
            Some(node)
        })
    }

    /// Every source, in the order of its node.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.nodes().filter_map(|node| node.source.as_ref())
    }

    /// Compares the names of tools with the version of the list of sensitive words that `version_of` has for a source.
    pub fn use_word_lists(&mut self, version_of: &dyn Fn(&NodePath) -> Option<WordList>) {
        let mut nodes = vec![&mut self.root];
        while let Some(node) = nodes.pop() {
            if let Some(source) = &mut node.source
                && let Some(version) = version_of(&source.path)
            {
                source.exposure.use_word_list(version);
            }
            nodes.extend(&mut node.children);
        }
    }

    /// From now on, compares the names of a source's tools with the version of the sensitive-word list in its lock.
    pub fn use_word_lists_of(&mut self, lock: &Lock) {
        self.use_word_lists(&|path| lock.source(path.as_str())?.word_list());
    }

    /// The source that is mounted on `path`.
    pub fn source(&self, path: &NodePath) -> Option<&Source> {
        self.sources().find(|source| source.path == *path)
    }

    /// The node at `path`.
    pub fn node(&self, path: &NodePath) -> Option<&Node> {
        self.nodes().find(|node| node.path == *path)
    }

    /// The reaction of a running broker to drift of class `text` in `source`. If neither the source nor
    /// the config sets one, changed texts are withdrawn if the config requires audits of every tool, or if
    /// the source is a URL: its operator changes it without an update on this machine.
    pub fn text_drift(&self, source: &Source) -> TextDrift {
        let default = match (self.audits_required > 0, &source.endpoint) {
            (true, _) | (_, Endpoint::Http(_)) => TextDrift::Withdraw,
            (false, Endpoint::Process(_)) => TextDrift::Serve,
        };
        source
            .on_text_drift
            .or(self.on_text_drift)
            .unwrap_or(default)
    }

    /// The requirements of a plain start for `source`. `defaults` apply to the settings that neither the
    /// source nor the config has.
    pub fn start_rule(&self, source: &Source, defaults: StartDefaults) -> StartRule {
        let drift = source.on_drift.or(self.on_drift);
        let unreachable = source.on_unreachable.or(self.on_unreachable);
        match (
            drift.unwrap_or(defaults.drift),
            unreachable.unwrap_or(defaults.unreachable),
        ) {
            _ if !source.required => StartRule::Optional,
            (StartDrift::Refuse, Unreachable::Refuse) => StartRule::Match,
            (StartDrift::Refuse, Unreachable::Serve) => StartRule::MatchIfReached,
            (StartDrift::Withdraw, Unreachable::Refuse) => StartRule::Reach,
            (StartDrift::Withdraw, Unreachable::Serve) => StartRule::Withdraw,
        }
    }

    /// Maximum time that a call waits for `source` to start. `default` applies if neither the source nor
    /// the config has a setting.
    pub fn start_wait(&self, source: &Source, default: Duration) -> Duration {
        source.start_wait.or(self.start_wait).unwrap_or(default)
    }

    /// The names of all variables that the config reads from the environment.
    pub fn variables(&self) -> BTreeSet<&str> {
        self.sources()
            .flat_map(Source::templates)
            .chain(&self.allowed_hosts)
            .chain(&self.allowed_origins)
            .chain(&self.identities.keys_file)
            .flat_map(Template::variables)
            .filter(|name| *name != vscode::WORKSPACE_FOLDER)
            .collect()
    }

    /// The diagnostic with the file of this config, and with line and column of its pointer.
    #[must_use]
    pub fn place(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        diagnostic.file = Some(self.file.clone());
        if let Some(pointer) = &mut diagnostic.pointer
            && let Some(written) = written_pointer(&self.document.renamed, pointer)
        {
            *pointer = written;
        }
        if let (None, Some(pointer)) = (diagnostic.position, &diagnostic.pointer) {
            diagnostic.position = position_of_pointer(&self.document.text, pointer);
        }
        diagnostic
    }
}

impl Source {
    /// The last path segments of the exposed tools and other things, in their order. Each is given with its key and
    /// as the server listed it.
    pub fn leaves(&self, exposed: &[(String, Map<String, Value>)]) -> Vec<String> {
        let entries: Vec<Named<'_>> = exposed
            .iter()
            .map(|(key, raw)| self.named(key, raw))
            .collect();
        alias::segments(&entries)
    }

    /// For each exposed tool or other thing, the reason why its name is not safe; `None` if it is, or has an alias.
    pub fn unsafe_names(&self, exposed: &[(String, Map<String, Value>)]) -> Vec<Option<String>> {
        let named = exposed.iter().map(|(key, raw)| self.named(key, raw));
        let named: Vec<Named<'_>> = named.collect();
        let entries = named.iter().map(|named| name_safety::Entry {
            name: named.name,
            alias: match &named.wanted {
                Wanted::Fixed(alias) => Some(alias),
                Wanted::Unique | Wanted::Short(_) => None,
            },
        });
        let entries: Vec<_> = entries.collect();
        name_safety::reasons(&entries, self.exposure.sensitive())
    }

    fn named<'n>(&self, key: &'n str, raw: &'n Map<String, Value>) -> Named<'n> {
        let (name, alias, derived) = match ItemKind::parse_key(key) {
            (ItemKind::Tool, name) => (name, self.aliases.get(name), Wanted::Unique),
            (ItemKind::Prompt | ItemKind::Template | ItemKind::Resource, _) => {
                let name = raw.get("name").and_then(Value::as_str).unwrap_or_default();
                (name, self.item_aliases.get(key), item::leaf(name))
            }
        };
        let wanted = alias.map_or(derived, |alias| Wanted::Fixed(alias.clone()));
        Named { name, key, wanted }
    }

    /// The transport.
    pub fn backend(&self) -> Backend {
        match self.endpoint {
            Endpoint::Process(_) => Backend::Stdio,
            Endpoint::Http(_) => Backend::Http,
        }
    }

    /// The process of the server, if it is one.
    pub fn process(&self) -> Option<&ProcessEndpoint> {
        self.endpoint.process()
    }

    /// Every string of the source that is expanded before it is started or reached.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        let (process, http) = (self.endpoint.process(), self.endpoint.http());
        let process = process.into_iter().flat_map(ProcessEndpoint::templates);
        process.chain(http.into_iter().flat_map(HttpEndpoint::templates))
    }
}

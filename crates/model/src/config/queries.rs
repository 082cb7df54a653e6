//! Queries on a checked config: nodes and sources, named variables, places in the file, and the values
//! that are secrets.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::template::Template;
use super::{
    Backend, Config, Endpoint, HttpEndpoint, Node, ProcessEndpoint, Source, StartRule, TextDrift,
    Unreachable, vscode,
};
use serde_json::{Map, Value};

use crate::diagnostic::Diagnostic;
use crate::item::{self, ItemKind};
use crate::json::position_of_pointer;
use crate::path::NodePath;

impl Config {
    /// The folder to which relative paths of this config refer, if it was read from `file`: the folder of
    /// the file, and for a file of VS Code in `.vscode` the folder that contains `.vscode`.
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
        let default = match (self.audits_required, &source.endpoint) {
            (true, _) | (_, Endpoint::Http(_)) => TextDrift::Withdraw,
            (false, Endpoint::Process(_)) => TextDrift::Serve,
        };
        source
            .on_text_drift
            .or(self.on_text_drift)
            .unwrap_or(default)
    }

    /// The requirements of a plain start for `source`. `default` depends on the kind of the start and
    /// applies if neither the source nor the config sets `on_unreachable`.
    pub fn start_rule(&self, source: &Source, default: Unreachable) -> StartRule {
        let set = source.on_unreachable.or(self.on_unreachable);
        match set.unwrap_or(default) {
            _ if !source.required => StartRule::Optional,
            Unreachable::Refuse => StartRule::Match,
            Unreachable::Serve => StartRule::MatchIfReached,
        }
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
        if let (None, Some(pointer)) = (diagnostic.position, &diagnostic.pointer) {
            diagnostic.position = position_of_pointer(&self.document.text, pointer);
        }
        diagnostic
    }
}

impl Source {
    /// The last path segment of a tool, or of another thing with this key, as the server listed it.
    pub fn leaf(&self, key: &str, raw: &Map<String, Value>) -> String {
        match ItemKind::of_key(key) {
            (ItemKind::Tool, name) => self
                .aliases
                .get(name)
                .map_or(name, String::as_str)
                .to_owned(),
            _ => match self.item_aliases.get(key) {
                Some(alias) => alias.clone(),
                None => item::leaf(raw),
            },
        }
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

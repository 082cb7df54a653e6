//! Queries on a checked config: nodes and sources, named variables, places in the file, and the values
//! that are secrets.

use std::collections::BTreeSet;

use super::template::Template;
use super::{Backend, CommandLine, Config, Node, Source, TextDrift};
use crate::diagnostic::Diagnostic;
use crate::json::position_of_pointer;
use crate::path::NodePath;
use crate::redact::is_secret_name;

impl Config {
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
    /// the config sets one, a config that requires audits of every tool has changed texts withdrawn.
    pub fn text_drift(&self, source: &Source) -> TextDrift {
        let default = match self.audits_required {
            true => TextDrift::Withdraw,
            false => TextDrift::Serve,
        };
        source
            .on_text_drift
            .or(self.on_text_drift)
            .unwrap_or(default)
    }

    /// The names of all variables that the config reads from the environment.
    pub fn variables(&self) -> BTreeSet<&str> {
        self.sources()
            .flat_map(Source::templates)
            .chain(&self.allowed_hosts)
            .chain(&self.allowed_origins)
            .flat_map(Template::variables)
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
    /// `stdio`; sources over the network are not supported yet.
    pub fn backend(&self) -> Backend {
        Backend::Stdio
    }

    /// Whether a shell runs it.
    pub fn is_shell(&self) -> bool {
        matches!(self.command, CommandLine::Shell { .. })
    }

    /// Every string of the source that is expanded before its process starts.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        let command: Vec<&Template> = match &self.command {
            CommandLine::Direct { program, args, .. } => {
                std::iter::once(program).chain(args).collect()
            }
            CommandLine::Shell { variables, .. } => variables.values().collect(),
        };
        command
            .into_iter()
            .chain(self.env.values())
            .chain(&self.cwd)
    }

    /// Literal arguments after an option with a secret-looking name, such as VALUE in `--token=VALUE` and in
    /// `--token VALUE`. They are masked in all output of the source, like such values of `env`.
    pub fn literal_secret_arguments(&self) -> Vec<&str> {
        match &self.command {
            CommandLine::Direct { args, .. } => secret_arguments(args),
            CommandLine::Shell { .. } => Vec::new(),
        }
    }
}

fn secret_arguments(args: &[Template]) -> Vec<&str> {
    let mut out = Vec::new();
    let mut before: Option<&str> = None;
    for arg in args {
        let raw = arg.raw();
        let secret = match (raw.starts_with('-'), raw.split_once('=')) {
            (true, Some((option, value))) => is_secret_name(option).then_some(value),
            (false, _) => before.is_some_and(is_secret_name).then_some(raw),
            (true, None) => None,
        };
        // The value of a variable is always masked.
        out.extend(secret.filter(|_| arg.variables().next().is_none()));
        before = (raw.starts_with('-') && !raw.contains('=')).then_some(raw);
    }
    out
}

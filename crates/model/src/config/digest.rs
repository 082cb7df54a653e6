//! `config_digest`: the part of the config that a lock depends on. Values of `env` and `headers`, `cwd`,
//! limits, timeouts and texts are left out, so that changing them needs no new lock.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{CommandLine, Config, Source};
use crate::digest::Digest;

const DOMAIN: &str = "mcp-broker:config:1";

impl Config {
    /// The digest of all config fields that the lock depends on.
    pub fn digest(&self) -> Digest {
        let mut sources: Vec<&Source> = self.sources().collect();
        sources.sort_by(|a, b| a.path.cmp(&b.path));
        let sources: Vec<Value> = sources.into_iter().map(covered).collect();
        Digest::of(DOMAIN, &json!({ "sources": sources }))
    }
}

impl Source {
    /// The digest of the fields of this source that the lock depends on.
    pub fn digest(&self) -> Digest {
        Digest::of(DOMAIN, &covered(self))
    }
}

fn covered(source: &Source) -> Value {
    members(source)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .chain([("path".to_owned(), json!(source.path.as_str()))])
        .collect()
}

/// The fields of one source that the digest covers, without its path. An absent field is empty.
pub(super) fn members(source: &Source) -> Vec<(&'static str, Value)> {
    let (command, args) = match &source.command {
        CommandLine::Direct { program, args, .. } => (
            json!(program.raw()),
            args.iter().map(|arg| json!(arg.raw())).collect(),
        ),
        CommandLine::Shell { written, .. } => (json!({ "shell": written }), Vec::new()),
    };
    let sorted = |list: &[String]| -> Value {
        let list: BTreeSet<&String> = list.iter().collect();
        json!(list)
    };
    vec![
        ("backend", json!(source.backend())),
        ("command", command),
        ("args", Value::Array(args)),
        ("env", json!(source.env.keys().collect::<Vec<_>>())),
        ("inherit_env", sorted(&source.inherit_env)),
        ("tool_filter", sorted(source.filter.patterns())),
        ("path_aliases", json!(source.aliases)),
        ("volatile", json!(source.volatile)),
    ]
}

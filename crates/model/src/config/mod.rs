//! The config: what the operator wrote, checked once into types that cannot be wrong.
//!
//! [`Config::parse`] reports every problem of a file in one run. Variables stay unexpanded here
//! ([`Template`]); whoever starts a process expands them, at the last moment.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::filter::ToolFilter;
use crate::path::NodePath;

mod template;

pub use template::{MissingVariable, Part, Template, TemplateError};

/// A checked config.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file as the user named it; for messages.
    pub file: String,
    /// The tree. Always `/`, implied where the file did not write it.
    pub root: Node,
    /// Bounds of requests and lines.
    pub limits: Limits,
    /// Whether Rust types are generated, unless a source says otherwise.
    pub types: bool,
    /// Host names that `Host` may carry besides loopback names and addresses.
    pub allowed_hosts: Vec<Template>,
    /// Origins of web pages that may call, `https://host[:port]`.
    pub allowed_origins: Vec<Template>,
    /// The document as read, for digests and for compiling it in.
    document: Value,
}

/// One node of the tree.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it stands.
    pub path: NodePath,
    /// One line for listings.
    pub summary: Option<String>,
    /// The whole text.
    pub description: Option<String>,
    /// Nodes below, in the config's order.
    pub children: Vec<Node>,
    /// The server mounted here.
    pub source: Option<Source>,
    /// Where it stands in the file.
    pub pointer: String,
}

/// A server mounted on a node.
#[derive(Clone, Debug)]
pub struct Source {
    /// The node's path, which is also the source's name everywhere.
    pub path: NodePath,
    /// What to run.
    pub command: CommandLine,
    /// Variables for the process, by name.
    pub env: BTreeMap<String, Template>,
    /// Globs of variable names that the process inherits from the broker.
    pub inherit_env: Vec<String>,
    /// Where to run it; relative to the config file's folder.
    pub cwd: Option<Template>,
    /// Which tools are exposed.
    pub filter: ToolFilter,
    /// Leaf names, by upstream tool name.
    pub aliases: BTreeMap<String, String>,
    /// What the reviewer said instead of the server, by upstream tool name.
    pub overrides: BTreeMap<String, ToolOverride>,
    /// Whether a plain start waits for it and refuses without it.
    pub required: bool,
    /// How long it may take until it listed its tools.
    pub startup_timeout: Duration,
    /// How long a call may take.
    pub timeout: Duration,
    /// Calls at the server at one time.
    pub max_in_flight: usize,
    /// Whether Rust types are generated.
    pub types: bool,
    /// JSON pointer patterns of members that differ at every start, `/tools/NAME/…`.
    pub volatile: BTreeSet<String>,
    /// Where it stands in the file.
    pub pointer: String,
}

/// How a process is started.
#[derive(Clone, Debug)]
pub enum CommandLine {
    /// Executed directly.
    Direct {
        /// The program: a path, or a bare name to look up.
        program: Template,
        /// Its arguments.
        args: Vec<Template>,
    },
    /// Run by `/bin/sh -c`; each variable is handed over in the child's environment, so that its
    /// value never becomes syntax.
    Shell {
        /// The script, with every `${NAME}` already rewritten to a private variable.
        script: String,
        /// Private variable name to what it holds.
        variables: BTreeMap<String, Template>,
    },
}

/// What the reviewer said instead of the server.
#[derive(Clone, Debug, Default)]
pub struct ToolOverride {
    /// Instead of the tool's summary.
    pub summary: Option<String>,
    /// Instead of the tool's description.
    pub description: Option<String>,
    /// Arguments worth copying.
    pub example_args: Option<Map<String, Value>>,
    /// How long a call may take.
    pub timeout: Option<Duration>,
}

/// Bounds that protect the broker's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request body. Default 4 MiB.
    pub body_bytes: usize,
    /// Bytes of a line from a server. Default 16 MiB.
    pub line_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 4 << 20,
            line_bytes: 16 << 20,
        }
    }
}

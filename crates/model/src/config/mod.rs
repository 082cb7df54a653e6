//! The config: what the operator wrote, checked once into types that cannot be wrong.
//!
//! [`Config::parse`] reports every problem of a file in one run. Variables stay unexpanded here
//! ([`Template`]); they are expanded when a process is started.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::diagnostic::Diagnostic;
use crate::filter::ToolFilter;
use crate::path::NodePath;

mod command;
mod compiled;
mod digest;
mod excerpt;
mod fields;
mod findings;
mod keys;
mod lists;
pub mod narrow;
mod overrides;
mod queries;
mod reader;
mod servers;
mod shell;
mod source;
mod spanned;
mod template;
mod top;
mod tree;

#[cfg(test)]
mod tests;

pub use narrow::{KnownTools, Narrowing};
pub use reader::MAX_BYTES;
pub use template::{MissingVariable, Part, Template, TemplateError, is_own_variable};

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
    /// Whether `verify` refuses a lock with tools that nobody signed. Shapes no catalog and no digest.
    pub audits_required: bool,
    /// The reaction of a running broker to drift of class `text`, unless a source sets its own; see
    /// [`Config::text_drift`].
    pub on_text_drift: Option<TextDrift>,
    /// Host names that `Host` may carry besides loopback names and addresses.
    pub allowed_hosts: Vec<Template>,
    /// Origins of web pages that may call, `https://host[:port]`.
    pub allowed_origins: Vec<Template>,
    /// The document as read.
    document: Document,
}

/// What [`Config::parse`] makes of a file that can be used.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The config.
    pub config: Config,
    /// What is worth knowing, in file order.
    pub warnings: Vec<Diagnostic>,
}

/// The text and the value of a config; it may hold secrets, so it never prints.
#[derive(Clone, Default)]
struct Document {
    value: Value,
    text: String,
    /// The names in `mcpServers` as the file orders them, which is the order of the tree.
    servers: Vec<String>,
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
    pub children: Vec<Self>,
    /// The server mounted here.
    pub source: Option<Source>,
    /// Where it stands in the file.
    pub pointer: String,
}

/// A server mounted on a node. `Debug` shows no value of `env` and no word of the command.
#[derive(Clone)]
pub struct Source {
    /// The node's path, which is also the source's name everywhere.
    pub path: NodePath,
    /// What to run.
    pub command: CommandLine,
    /// Where each word of it stands, the program first: JSON pointers below the source's own. A
    /// command for the shell has one place.
    pub places: Vec<String>,
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
    /// How often its tools are listed again without an announcement; `None` for never.
    pub relist_interval: Option<Duration>,
    /// How long a call may take.
    pub timeout: Duration,
    /// Calls at the server at one time.
    pub max_in_flight: usize,
    /// Processes that share its calls.
    pub instances: usize,
    /// Whether a call that a dying server may have run is sent once more, where the reviewed tool says
    /// that it only reads or is idempotent.
    pub retry_idempotent: bool,
    /// The reaction of a running broker to drift of class `text`; the config's own where absent.
    pub on_text_drift: Option<TextDrift>,
    /// Whether Rust types are generated.
    pub types: bool,
    /// JSON pointer patterns of members that differ at every start, `/tools/NAME/…`.
    pub volatile: BTreeSet<String>,
    /// Where it stands in the file.
    pub pointer: String,
}

/// How a process is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandLine {
    /// Executed directly.
    Direct {
        /// The program: a path, or a bare name to look up.
        program: Template,
        /// Its arguments, as written.
        args: Vec<Template>,
        /// Which of the arguments is a script for a shell, where one has variables in it.
        script: Option<Script>,
    },
    /// Run by `/bin/sh -c`; each variable is handed over in the child's environment, so that its
    /// value never becomes syntax.
    Shell {
        /// The script, with every `${NAME}` already rewritten to a private variable.
        script: String,
        /// The values of the private variables, by name.
        variables: BTreeMap<String, Template>,
        /// The script as written but for quotes, with the variables of the config. Digests cover it.
        written: String,
    },
}

/// A script among the arguments of a program that is executed directly, such as `sh -c`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The index of its argument.
    pub at: usize,
    /// The script that is passed to the shell, with every `${NAME}` rewritten to a private variable.
    pub text: String,
    /// The values of the private variables, by name.
    pub variables: BTreeMap<String, Template>,
}

/// What the reviewer said instead of the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOverride {
    /// Instead of the tool's summary.
    pub summary: Option<String>,
    /// Instead of the tool's description.
    pub description: Option<String>,
    /// Arguments worth copying.
    pub example_args: Option<Map<String, Value>>,
    /// How long a call may take.
    pub timeout: Option<Duration>,
    /// Characters (Unicode scalar values) of a reply beyond which it is cut.
    pub max_output_chars: Option<usize>,
    /// The form in which results are handed on.
    pub render_mode: RenderMode,
}

/// The reaction of a running broker to a tool with drift of class `text`: the words of the tool
/// changed, and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextDrift {
    /// Serves it on, under the reviewed text.
    #[default]
    Serve,
    /// Takes it out of service.
    Withdraw,
}

/// The form in which a tool's result is handed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RenderMode {
    /// As the server gave it, byte for byte.
    #[default]
    Json,
    /// One text block: the text blocks, joined.
    Text,
    /// `structuredContent` alone.
    Structured,
}

/// The least `max_output_chars` with which a reply of the tool at `path` can be cut: what stands
/// around the result must fit as well.
pub fn least_output_chars(path: &str) -> usize {
    path.chars().count() + 450
}

/// Bounds that protect the broker's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request body. Default 4 MiB.
    pub body_bytes: usize,
    /// Bytes of a line from a server. Default 16 MiB.
    pub line_bytes: usize,
    /// Bytes of memory for bodies, arguments and results together. Default 512 MiB.
    pub memory_bytes: usize,
    /// Bytes of a whole tool list, all pages. Default 32 MiB.
    pub listing_bytes: usize,
}

impl Config {
    /// Reads a config. `file` is its name as the user gave it; the bytes are its content.
    ///
    /// An error has every problem of the file, warnings included, in file order.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Parsed, Vec<Diagnostic>> {
        top::parse(file, bytes)
    }
}

impl Node {
    /// A node with nothing but its path.
    fn bare(path: NodePath, pointer: String) -> Self {
        Self {
            path,
            summary: None,
            description: None,
            children: Vec::new(),
            source: None,
            pointer,
        }
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.text.len())
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("path", &self.path)
            .field("env", &self.env.keys())
            .field("filter", &self.filter.patterns())
            .field("aliases", &self.aliases)
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 4 << 20,
            line_bytes: 16 << 20,
            memory_bytes: 512 << 20,
            listing_bytes: 32 << 20,
        }
    }
}

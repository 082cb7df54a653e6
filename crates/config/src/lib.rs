//! The config: parsed and checked once into types whose values are valid.
//!
//! [`Config::parse`] reports every problem of a file in one run. Variables stay unexpanded here
//! ([`Template`]); they are expanded when a process is started.
//! Everything here is pure: no file, process, socket, clock or async.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use broker_model::access::Access;
use broker_model::address::AddressRange;
use broker_model::diagnostic::Diagnostic;
use broker_model::extension::Extensions;
use broker_model::path::NodePath;
use broker_model::trust::{Exposure, TrustLevel};

mod access;
mod audit;
pub mod client_file;
mod clients;
mod command;
mod compiled;
mod confidential;
mod digest;
mod endpoint;
mod entry_source;
mod excerpt;
mod extensions;
mod fields;
mod findings;
mod http_endpoint;
pub mod identities;
mod items;
mod jobs;
pub mod json_schema;
mod keys;
mod kind;
pub mod launcher;
mod limits;
mod lists;
mod mcp;
pub mod narrow;
mod overrides;
pub mod own_broker;
mod public_url;
mod queries;
mod reactions;
mod reader;
mod search;
mod servers;
mod shell;
mod source;
mod spanned;
mod surfaces;
mod telemetry;
mod template;
mod to_lock;
mod top;
mod tree;
mod trust;
mod vscode;

#[cfg(test)]
mod tests;

pub use audit::{AuditConfig, AuditFormat, AuditIntent, AuditRotation, AuditSync, OcsfVersion};
pub use broker_model::Backend;
pub use endpoint::{Auth, ClientCertificate, ClientCredentials, Endpoint};
pub use endpoint::{HttpEndpoint, ProcessEndpoint};
pub use http_endpoint::{invalid_url, plain_http, plain_http_token};
pub use identities::Identities;
pub use jobs::{JobsConfig, McpCallMode};
pub use limits::Limits;
pub use mcp::{LegacySessions, Mcp, McpMode, Routing};
pub use narrow::{KnownTools, Narrowing};
pub use own_broker::Machine;
pub use public_url::PublicUrl;
pub use reader::MAX_BYTES;
pub use search::{
    Embedder, MAX_HINTS, OPENAI_KEY_VARIABLE, Search, SearchHint, hint_problem, top_k_range,
};
pub use surfaces::Surfaces;
pub use telemetry::{Telemetry, TraceParent};
pub use template::{
    ADAPTER_SECRET_VARIABLE, MissingVariable, Part, Template, TemplateError, is_own_variable,
};
pub use vscode::WORKSPACE_FOLDER;

/// A checked config.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file as the user named it; for messages.
    pub file: String,
    /// The tree. Always `/`, implied where the file did not write it.
    pub root: Node,
    /// The nodes of the sources that are disabled: they are not started and have no node unless it has children.
    pub disabled: Vec<NodePath>,
    /// Bounds of requests and lines.
    pub limits: Limits,
    /// Whether Rust types are generated, unless a source says otherwise.
    pub types: bool,
    /// The number of people who must have accepted a tool, or `verify` refuses its lock; 0 requires no audit. The
    /// catalog and all digests stay the same.
    pub audits_required: u8,
    /// Whether arguments that do not match the schema of their tool are converted, unless a source or a tool says
    /// otherwise. Changes no lock.
    pub coerce: bool,
    /// The reaction of a running broker to drift of class `text`, unless a source sets its own; see
    /// [`Config::text_drift`].
    pub on_text_drift: Option<TextDrift>,
    /// Whether a start needs its sources to be reachable, unless a source sets its own; see
    /// [`Config::start_rule`].
    pub on_unreachable: Option<Unreachable>,
    /// The reaction of a start to drift, unless a source sets its own; see [`Config::start_rule`].
    pub on_drift: Option<StartDrift>,
    /// Maximum time that a call waits for its source to start, unless a source sets its own; see
    /// [`Config::start_wait`].
    pub start_wait: Option<Duration>,
    /// Maximum time of calls in progress when the broker ends; see [`Config::drain_time`].
    pub drain_timeout: Option<Duration>,
    /// How MCP clients see the tools.
    pub mcp: Mcp,
    /// The data that a search uses besides words. Changes no lock.
    pub search: Search,
    /// The ways in that are turned on.
    pub surfaces: Surfaces,
    /// The log of calls.
    pub audit: Option<AuditConfig>,
    /// Calls that outlive their caller.
    pub jobs: Option<JobsConfig>,
    /// What the broker measures.
    pub telemetry: Telemetry,
    /// The access rules for callers and tools; without them, all callers see all tools.
    pub access: Option<Access>,
    /// Host names that `Host` may carry besides loopback names and addresses.
    pub allowed_hosts: Vec<Template>,
    /// Origins of web pages that may call, `https://host[:port]`.
    pub allowed_origins: Vec<Template>,
    /// Who calls: keys and issuers of tokens. Changes no catalog and no digest.
    pub identities: Identities,
    /// The URL of the broker for callers.
    pub public_url: Option<PublicUrl>,
    /// The addresses whose `Forwarded` and `X-Forwarded-For` are believed.
    pub trusted_proxies: Vec<AddressRange>,
    /// The document as read.
    document: Document,
}

/// The result of [`Config::parse`] for a usable file.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The config.
    pub config: Config,
    /// Warnings, in file order.
    pub warnings: Vec<Diagnostic>,
}

/// The text and the value of a config. It may contain secrets, so `Debug` prints only its length.
#[derive(Clone, Default)]
struct Document {
    value: Value,
    text: String,
    /// The client that wrote the file, if it is known.
    client: Option<client_file::Client>,
    /// Whether the servers in the text were converted to servers of a config.
    is_converted: bool,
    /// JSON pointers of the document, and the pointers of the same values in the file.
    renamed: Vec<(String, String)>,
    /// The key of the entries of a client file.
    servers_key: &'static str,
    /// The names of its entries in file order. The tree has the same order.
    servers: Vec<String>,
}

/// One node of the tree.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its path in the tree.
    pub path: NodePath,
    /// One line for listings.
    pub summary: Option<String>,
    /// The whole text.
    pub description: Option<String>,
    /// Nodes below, in the config's order.
    pub children: Vec<Self>,
    /// The server mounted here.
    pub source: Option<Source>,
    /// Its JSON pointer in the file.
    pub pointer: String,
}

/// A server mounted on a node. `Debug` shows no secret.
#[derive(Clone)]
pub struct Source {
    /// The node's path. It is also the name of the source.
    pub path: NodePath,
    /// How the broker reaches the server.
    pub endpoint: Endpoint,
    /// The exposure of its tools: its filter and its trust level.
    pub exposure: Exposure,
    /// The trust level that the config gives to it; `exposure` has the level in force.
    pub trust: Option<TrustLevel>,
    /// Leaf names, by upstream tool name.
    pub aliases: BTreeMap<String, String>,
    /// The last path segments of prompts, templates and resources, by their keys.
    pub item_aliases: BTreeMap<String, String>,
    /// Texts and settings that replace the server's, by upstream tool name.
    pub overrides: BTreeMap<String, ToolOverride>,
    /// Settings of every tool, from `"*"` in `tool_overrides`; see [`Source::output_limit`] and [`Source::coerces`].
    pub of_every_tool: ToolOverride,
    /// Maximum number of characters of a reply of its tools.
    pub max_output_chars: Option<usize>,
    /// Whether arguments that do not match the schema of a tool are converted; `None` takes the config's setting.
    pub coerce: Option<bool>,
    /// Whether a plain start waits for it and refuses if it differs from the lock; see
    /// [`Config::start_rule`].
    pub required: bool,
    /// Maximum time from the launch of the process to its tool list.
    pub startup_timeout: Duration,
    /// Interval between listings without an announcement; `None` for never.
    pub relist_interval: Option<Duration>,
    /// Maximum time of a call without progress.
    pub timeout: Duration,
    /// Maximum time in all of a call whose server reports progress, if it is set; see
    /// [`Source::max_timeout_of`].
    pub max_timeout: Option<Duration>,
    /// Maximum number of concurrent calls to the server.
    pub max_in_flight: usize,
    /// Number of processes that share its calls.
    pub instances: usize,
    /// Whether a call that a dying server may have executed is sent again, if the reviewed tool is marked
    /// read-only or idempotent.
    pub retry_idempotent: bool,
    /// The reaction of a running broker to drift of class `text`; `None` takes the config's setting.
    pub on_text_drift: Option<TextDrift>,
    /// Whether a start needs the source to be reachable; `None` takes the config's setting.
    pub on_unreachable: Option<Unreachable>,
    /// The reaction of a start to drift of the source; `None` takes the config's setting.
    pub on_drift: Option<StartDrift>,
    /// Maximum time that a call waits for the source to start; `None` takes the config's setting.
    pub start_wait: Option<Duration>,
    /// Whether tools are served although a schema of theirs is not valid.
    pub schema: SchemaPolicy,
    /// Whether Rust types are generated.
    pub types: bool,
    /// JSON pointer patterns of members that differ at every start, `/tools/NAME/…`.
    pub volatile: BTreeSet<String>,
    /// The extensions of MCP that the broker declares to its server.
    pub extensions: Extensions,
    /// Whether the lines that its process writes to stderr during a job are events of the job.
    pub stderr_to_callers: bool,
    /// Its JSON pointer in the file.
    pub pointer: String,
}

/// The command line of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandLine {
    /// Executed directly.
    Direct {
        /// The program: a path, or a bare name to look up.
        program: Template,
        /// Its arguments, as written.
        args: Vec<Template>,
        /// The argument that is a shell script with variables, if there is one.
        script: Option<Script>,
    },
    /// Run by `/bin/sh -c`; each variable is handed over in the child's environment, so that its
    /// value never becomes syntax.
    Shell {
        /// The script, with every `${NAME}` already rewritten to a private variable.
        script: String,
        /// The values of the private variables, by name.
        variables: BTreeMap<String, Template>,
        /// The script as written except for quotes, with the variables of the config. Digests cover it.
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

/// The reviewer's replacements for one tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOverride {
    /// Replaces the tool's summary.
    pub summary: Option<String>,
    /// Replaces the tool's description.
    pub description: Option<String>,
    /// Replaces single hints of the tool's annotations.
    pub annotations: Option<Map<String, Value>>,
    /// Phrases for the search, in addition to the texts of the tool. They are never shown to callers.
    pub search_hints: Vec<SearchHint>,
    /// Example arguments.
    pub example_args: Option<Map<String, Value>>,
    /// Maximum time of a call without progress.
    pub timeout: Option<Duration>,
    /// Maximum time in all of a call whose server reports progress.
    pub max_timeout: Option<Duration>,
    /// Maximum number of characters (Unicode scalar values) of a reply; a longer one is cut.
    pub max_output_chars: Option<usize>,
    /// Whether arguments that do not match the schema are converted.
    pub coerce: Option<bool>,
    /// JSON pointers of the arguments whose values lines of the audit log show.
    pub audit: Vec<String>,
    /// The form of results.
    pub render_mode: RenderMode,
    /// Whether the tool is served although a schema of it is not valid.
    pub schema: SchemaPolicy,
}

/// The reaction of a lock to a tool with a schema that does not compile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaPolicy {
    /// The tool is left out.
    #[default]
    Checked,
    /// The tool is served, and the part of the schema that is valid is enforced.
    AsIs,
}

/// The reaction of a running broker to drift of class `text`: only texts of the tool changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextDrift {
    /// The tool stays in service with the reviewed text.
    #[default]
    Serve,
    /// The tool is withdrawn.
    Withdraw,
}

/// The reaction of a start to a source that cannot be started or listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// The start is refused.
    Refuse,
    /// The start goes on without the source.
    Serve,
}

/// The reaction of a start to a source that differs from the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartDrift {
    /// The start is refused.
    Refuse,
    /// The tools that do not match are withdrawn, as while the broker runs.
    Withdraw,
}

/// The settings of a start if the config does not set them: they depend on the kind of the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartDefaults {
    /// The default of `on_drift`.
    pub drift: StartDrift,
    /// The default of `on_unreachable`.
    pub unreachable: Unreachable,
    /// The default of `start_wait`.
    pub wait: Duration,
}

impl Default for StartDefaults {
    /// Returns the defaults of a deployed broker over HTTP.
    fn default() -> Self {
        Self {
            drift: StartDrift::Refuse,
            unreachable: Unreachable::Refuse,
            wait: Duration::from_secs(10),
        }
    }
}

/// The requirements of a plain start for one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartRule {
    /// It must be reached and match the lock.
    Match,
    /// It must match the lock if it is reached in time.
    MatchIfReached,
    /// It must be reached. Its drift only withdraws tools.
    Reach,
    /// The start waits a limited time for it. Its drift only withdraws tools.
    Withdraw,
    /// The start does not wait for it, and its drift only withdraws tools.
    Optional,
}

/// The form of a tool's results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RenderMode {
    /// As the server sent it, byte for byte.
    #[default]
    Json,
    /// One text block: the text blocks, joined.
    Text,
    /// `structuredContent` alone.
    Structured,
}

/// From this `max_output_chars` on the limit counts the whole reply. A smaller one counts the result alone, without the
/// path and the list of cuts.
pub const MIN_WHOLE_REPLY_CHARS: usize = 500;

/// The minimum `max_output_chars` for the tool at `path` if it counts the whole reply: the JSON around the result must fit
/// as well.
pub fn min_output_chars(path: &str) -> usize {
    path.chars().count() + 450
}

/// The limit that holds for the tool at `path`, whose config has `limit`.
pub fn output_limit_of(path: &str, limit: usize) -> usize {
    match limit < MIN_WHOLE_REPLY_CHARS {
        true => limit,
        false => limit.max(min_output_chars(path)),
    }
}

/// Whether `limit` leaves no room for a reply of the tool at `path`.
pub fn is_too_small_output(path: &str, limit: usize) -> bool {
    output_limit_of(path, limit) != limit
}

impl Config {
    /// Reads a config. `file` is its name as the user gave it, `bytes` its content.
    ///
    /// An error contains every problem of the file, including warnings, in file order.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Parsed, Vec<Diagnostic>> {
        top::parse(file, bytes, None)
    }

    /// Reads a config, or the file of a client, that a person named. Unlike [`Config::parse`], the name of the file
    /// identifies the client that wrote it, and a `command` that `exists` does not know as a program or file is a
    /// command line.
    pub fn parse_file(
        file: &str,
        bytes: &[u8],
        exists: &dyn Fn(&str) -> bool,
    ) -> Result<Parsed, Vec<Diagnostic>> {
        top::parse(file, bytes, Some(exists))
    }
}

impl Node {
    /// A node that has only a path.
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
            .field("endpoint", &self.endpoint)
            .field("filter", &self.exposure.filter().patterns())
            .field("trust", &self.exposure.level())
            .field("aliases", &self.aliases)
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}

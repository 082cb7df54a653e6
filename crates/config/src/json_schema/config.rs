//! The config file. Keys that this version refuses are left out, so that an editor marks them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::access::{Access, Hints};
use super::identities::Identities;
use super::limits::Limits;
use super::start::{AuditsRequired, SchemaPolicy, StartDrift, TextDrift, Unreachable};
use super::surfaces::{Mcp, Surfaces};

/// A config of mcp-broker: a tree of nodes with servers, or the `mcpServers` of other clients.
#[derive(JsonSchema)]
#[serde(untagged)]
pub(super) enum Config {
    Tree(TreeConfig),
    Servers(ServersConfig),
}

/// A config with its tree.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TreeConfig {
    /// For editors; ignored otherwise.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    /// The nodes, or one root node with `"path": "/"`.
    tree: Tree,
    /// Whether Rust types are generated, unless a source says otherwise. Default: true.
    types: Option<bool>,
    /// Whether arguments that do not match the schema of their tool are converted: texts to numbers and booleans, null to
    /// absence. Default: false.
    coerce: Option<bool>,
    /// Whether `broker-gen verify` refuses a lock with tools that have no audit, or the number of people who must have
    /// accepted each tool; true is 1. Default: false.
    audits_required: Option<AuditsRequired>,
    /// The reaction of a running broker to a tool of which only texts changed: `serve` it with the reviewed
    /// text, or `withdraw` it. Default: `serve`; `withdraw` with `audits_required`.
    on_text_drift: Option<TextDrift>,
    /// The reaction of a start to a source that cannot be started or listed: `refuse` the start, or `serve`
    /// the other sources. Default: `serve` over stdio and with `broker-gen serve`, else `refuse`.
    on_unreachable: Option<Unreachable>,
    /// The reaction of a start to a source that differs from the lock: `refuse` the start, or `withdraw` the
    /// tools that do not match. Default: `withdraw` over stdio and with `broker-gen serve`, else `refuse`;
    /// `refuse` with `audits_required`.
    on_drift: Option<StartDrift>,
    /// Maximum seconds that a call waits for its source to start, where drift withdraws. Default: 45 over
    /// stdio, else 10.
    #[schemars(range(min = 0, max = 3600))]
    start_wait: Option<f64>,
    /// Bounds that protect the broker's memory.
    limits: Option<Limits>,
    /// How MCP clients see the tools.
    mcp: Option<Mcp>,
    /// The settings of a search of tools.
    search: Option<Search>,
    /// The ways in that can be turned off.
    surfaces: Option<Surfaces>,
    /// The rules of trust levels.
    trust: Option<Trust>,
    /// Names that the `Host` header may have besides loopback names and addresses.
    allowed_hosts: Option<Vec<String>>,
    /// Origins of web pages that may call: `https://host[:port]`.
    allowed_origins: Option<Vec<String>>,
    /// The groups of callers, and rules for what they see and call. Default: every caller sees every tool.
    access: Option<Access>,
    /// Who calls: keys and issuers of tokens.
    identities: Option<Identities>,
    /// The URL under which callers reach the broker: `https`, or `http` on loopback, without query and fragment.
    public_url: Option<String>,
    /// Addresses and networks of the proxies whose `Forwarded` and `X-Forwarded-For` are believed. Default: none.
    trusted_proxies: Option<Vec<String>>,
}

/// The format of other MCP clients; each entry becomes a node `/name`.
#[derive(JsonSchema)]
pub(super) struct ServersConfig {
    /// For editors; ignored otherwise.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    /// Servers by name.
    #[serde(rename = "mcpServers")]
    mcp_servers: BTreeMap<String, Source>,
    /// Whether Rust types are generated, unless a source says otherwise. Default: true.
    types: Option<bool>,
    /// Whether `broker-gen verify` refuses a lock with tools that have no audit, or the number of people who must have
    /// accepted each tool; true is 1. Default: false.
    audits_required: Option<AuditsRequired>,
    /// The reaction of a running broker to a tool of which only texts changed: `serve` it with the reviewed
    /// text, or `withdraw` it. Default: `serve`; `withdraw` with `audits_required`.
    on_text_drift: Option<TextDrift>,
    /// The reaction of a start to a source that cannot be started or listed: `refuse` the start, or `serve`
    /// the other sources. Default: `serve` over stdio and with `broker-gen serve`, else `refuse`.
    on_unreachable: Option<Unreachable>,
    /// The reaction of a start to a source that differs from the lock: `refuse` the start, or `withdraw` the
    /// tools that do not match. Default: `withdraw` over stdio and with `broker-gen serve`, else `refuse`;
    /// `refuse` with `audits_required`.
    on_drift: Option<StartDrift>,
    /// Maximum seconds that a call waits for its source to start, where drift withdraws. Default: 45 over
    /// stdio, else 10.
    #[schemars(range(min = 0, max = 3600))]
    start_wait: Option<f64>,
    /// Bounds that protect the broker's memory.
    limits: Option<Limits>,
    /// How MCP clients see the tools.
    mcp: Option<Mcp>,
    /// The settings of a search of tools.
    search: Option<Search>,
    /// The ways in that can be turned off.
    surfaces: Option<Surfaces>,
    /// The rules of trust levels.
    trust: Option<Trust>,
    /// Names that the `Host` header may have besides loopback names and addresses.
    allowed_hosts: Option<Vec<String>>,
    /// Origins of web pages that may call: `https://host[:port]`.
    allowed_origins: Option<Vec<String>>,
    /// The groups of callers, and rules for what they see and call. Default: every caller sees every tool.
    access: Option<Access>,
    /// Who calls: keys and issuers of tokens.
    identities: Option<Identities>,
    /// The URL under which callers reach the broker: `https`, or `http` on loopback, without query and fragment.
    public_url: Option<String>,
    /// Addresses and networks of the proxies whose `Forwarded` and `X-Forwarded-For` are believed. Default: none.
    trusted_proxies: Option<Vec<String>>,
}

#[derive(JsonSchema)]
#[serde(untagged)]
enum Tree {
    Nodes(Vec<Node>),
    Root(Box<Node>),
}

/// A node of the tree: navigation, and the tools of a server that is mounted on it.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
struct Node {
    /// Absolute, below the parent's path: `/` or segments of letters and digits of any script, `_`, `.` and `-`.
    #[schemars(
        length(max = 512),
        regex(pattern = r"^(/|(/[^\x00-,/:-@\[-\^`{-\x7f]{1,128})+)$")
    )]
    path: String,
    /// Always `node`; tools come from the source.
    #[serde(rename = "type")]
    kind: Option<NodeType>,
    /// One line for listings. Default: the description's first sentence, else the name.
    summary: Option<String>,
    /// The whole text.
    description: Option<String>,
    /// Nodes below.
    children: Option<Vec<Self>>,
    /// The server that is mounted here; its tools become children.
    source: Option<Source>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
enum NodeType {
    Node,
}

/// A server: its command or its URL, its exposed tools, and settings of calls.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["command"]}, {"required": ["url"]}]))]
struct Source {
    /// The transport. Default: that of `command` or `url`.
    backend: Option<Backend>,
    /// The command. A string is split, or run by a shell if it has shell syntax; a list, or a string with
    /// `args`, is executed directly. `${NAME}` is a variable.
    command: Option<Command>,
    /// Arguments; with them `command` is the program itself.
    args: Option<Vec<String>>,
    /// Variables for the process, by name. Write secrets as `${NAME}`; their values come from the environment.
    env: Option<BTreeMap<String, String>>,
    /// Globs of variable names that the process inherits from the broker.
    inherit_env: Option<Vec<String>>,
    /// The working directory of the process, relative to the config's folder.
    cwd: Option<String>,
    /// The URL of a server over HTTP, without user information. `${NAME}` is a variable.
    url: Option<String>,
    /// Headers of every request to the URL, by name. Write secrets as `${NAME}`; their values come from the
    /// environment.
    headers: Option<BTreeMap<String, String>>,
    /// The origin of the token that is sent to the URL as `Authorization: Bearer`.
    auth: Option<Auth>,
    /// A file with certificates (PEM) that are trusted besides those of the system.
    ca_file: Option<String>,
    /// Whether a secret may be sent over `http` to another machine. Default: false.
    allow_plain_http: Option<bool>,
    /// Globs of upstream tool names that are exposed; `!` denies and always wins. Without a positive
    /// pattern all are allowed.
    tool_filter: Option<Vec<String>>,
    /// The last path segment, by upstream tool name.
    path_aliases: Option<BTreeMap<String, Alias>>,
    /// The resources that callers may read besides those of the locked templates: none, those that were listed when the
    /// lock was made (`locked`), or those that the server lists now (`live`). Default: `none`.
    resources: Option<ResourceMode>,
    /// Globs over URIs of resources and templates, `!` excludes. Without a positive pattern none is exposed.
    resource_filter: Option<Vec<String>>,
    /// The last path segments of resources and templates, by URI or template.
    resource_aliases: Option<BTreeMap<String, Alias>>,
    /// Globs over names of prompts, `!` excludes. Without a positive pattern none is exposed.
    prompt_filter: Option<Vec<String>>,
    /// The last path segments of prompts, by name.
    prompt_aliases: Option<BTreeMap<String, Alias>>,
    /// Which tools are exposed: those that `tool_filter` admits (`trusted`), only those that a positive pattern of
    /// it matches (`verified`), or those that it admits without sensitive names (`untrusted`). Default: `trusted`
    /// for a `command`, `untrusted` for a `url`.
    trust: Option<TrustLevel>,
    /// Texts and settings that replace the server's, by upstream tool name; `"*"` sets `max_output_chars` and `coerce`
    /// of every tool.
    tool_overrides: Option<BTreeMap<String, ToolOverride>>,
    /// Whether a plain start waits for the source and refuses if it differs from the lock. Default: true.
    required: Option<bool>,
    /// Maximum seconds from the launch to the tool list. Default: 120.
    #[schemars(range(min = 1, max = 3600))]
    startup_timeout: Option<f64>,
    /// Seconds between two listings of the tools without an announcement; 0 for never, else at least 1.
    /// Default: 300.
    #[schemars(range(min = 0, max = 86400))]
    relist_interval: Option<f64>,
    /// Maximum seconds of a call; start again when the server reports progress. Default: 60.
    #[schemars(range(min = 0.1, max = 86400))]
    timeout: Option<f64>,
    /// Maximum seconds in all of a call whose server reports progress, at least `timeout`. Default: 10 times
    /// `timeout`.
    #[schemars(range(min = 0.1, max = 86400))]
    max_timeout: Option<f64>,
    /// Maximum number of concurrent calls to the server; 256 more wait. Default: 32.
    #[schemars(range(min = 1, max = 10000))]
    max_in_flight: Option<u64>,
    /// Number of processes that share the calls, for servers that handle few at a time. Default: 1.
    #[schemars(range(min = 1, max = 64))]
    instances: Option<u64>,
    /// Whether a call that a dying server may have executed is sent again, if the reviewed tool is marked
    /// read-only or idempotent. Default: false.
    retry_idempotent: Option<bool>,
    /// The reaction of a running broker to a tool of which only texts changed. Default: the top level's.
    on_text_drift: Option<TextDrift>,
    /// The reaction of a start if the source cannot be started or listed. Default: the top level's; `serve`
    /// if the source is not `required`.
    on_unreachable: Option<Unreachable>,
    /// Whether the source is left out: it is not started, and its part of the lock is dropped. Default: false.
    disabled: Option<bool>,
    /// The reaction of a start if the source differs from the lock. Default: the top level's; `withdraw` if
    /// the source is not `required`.
    on_drift: Option<StartDrift>,
    /// Maximum seconds that a call waits for the source to start, where drift withdraws. Default: the top
    /// level's.
    #[schemars(range(min = 0, max = 3600))]
    start_wait: Option<f64>,
    /// `as_is` serves tools although a schema of theirs is not valid.
    schema: Option<SchemaPolicy>,
    /// Maximum characters of a reply of its tools; a longer result is cut. Default: `limits.result_chars` for models.
    #[schemars(range(min = 100, max = 10_000_000))]
    max_output_chars: Option<u64>,
    /// Whether arguments that do not match the schema of a tool are converted. Default: the top level's.
    coerce: Option<bool>,
    /// Whether Rust types are generated. Default: the top level's.
    types: Option<bool>,
    /// JSON pointers of tool members that differ at every start, with `*` for any token; or `/instructions`.
    volatile: Option<Vec<Volatile>>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Backend {
    Stdio,
    Http,
}

/// The origin of a token; one key.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
struct Auth {
    /// A file with the token, relative to the config's folder. It is read again when it changes.
    token_file: Option<String>,
    /// A command that prints the token, or a JSON object with `access_token` and `expires_in`.
    token_command: Option<Command>,
    /// The grant `client_credentials` of OAuth 2.
    client_credentials: Option<ClientCredentials>,
}

#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
struct ClientCredentials {
    /// The URL of the token endpoint.
    token_url: String,
    /// The name of the client.
    client_id: String,
    /// Its secret; write `${NAME}`.
    client_secret: String,
    /// The scopes that it asks for, separated by blanks.
    scope: Option<String>,
    /// The resource that the token is for (RFC 8707).
    resource: Option<String>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ResourceMode {
    None,
    Locked,
    Live,
}

#[derive(JsonSchema)]
#[serde(untagged)]
pub(super) enum Command {
    Line(String),
    Words(Words),
}

#[derive(JsonSchema)]
pub(super) struct Words(#[schemars(length(min = 1))] Vec<String>);

#[derive(JsonSchema)]
struct Alias(#[schemars(regex(pattern = r"^[^\x00-,/:-@\[-\^`{-\x7f]{1,128}$"))] String);

#[derive(JsonSchema)]
struct Volatile(#[schemars(regex(pattern = r"^(/tools/[^/]+/[^/]+|/instructions$)"))] String);

/// Texts and settings of one tool that replace the server's.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToolOverride {
    /// Replaces the tool's title or first sentence.
    summary: Option<String>,
    /// Replaces the tool's description.
    description: Option<String>,
    /// Maximum characters of a reply; a longer result is cut. Default: that of `"*"`, else the source's.
    #[schemars(range(min = 100, max = 10_000_000))]
    max_output_chars: Option<u64>,
    /// Maximum seconds of a call; start again when the server reports progress.
    #[schemars(range(min = 0.1, max = 86400))]
    timeout: Option<f64>,
    /// Maximum seconds in all of a call whose server reports progress.
    #[schemars(range(min = 0.1, max = 86400))]
    max_timeout: Option<f64>,
    /// Example arguments; `lock` checks them against the tool's schema.
    example_args: Option<Map<String, Value>>,
    /// The form of results: as the server sent it, its text, or its structured content.
    render_mode: Option<RenderMode>,
    /// Reviewed hints, which replace those of the server.
    annotations: Option<Hints>,
    /// Phrases by which a search finds the tool besides its texts: what users would say. Callers never see them.
    #[schemars(length(max = 5))]
    hints: Option<Vec<SearchHint>>,
    /// `as_is` serves the tool although a schema of it is not valid.
    schema: Option<SchemaPolicy>,
    /// Whether arguments that do not match the schema are converted. Default: that of `"*"`, else the source's.
    coerce: Option<bool>,
}

#[derive(JsonSchema)]
#[serde(untagged)]
enum SearchHint {
    Text(HintText),
    Origin(HintWithOrigin),
}

#[derive(JsonSchema)]
struct HintText(#[schemars(length(min = 1, max = 120))] String);

/// A phrase with its origin.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
struct HintWithOrigin {
    text: HintText,
    /// Whether a model wrote it and no person has accepted it; then it is not compiled. Default: false.
    generated: Option<bool>,
    /// The digest of the tool for which it was written; for another version of the tool it is left out.
    #[serde(rename = "for")]
    made_for: Option<String>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RenderMode {
    Json,
    Text,
    Structured,
}

/// The settings of a search of tools.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// Whether the vectors of words are compiled in, 4.5 MB. Without them a search compares words only. Default: true.
    table: Option<bool>,
    /// The number of hits in the mode `search`, unless the caller sets `limit`. Default: 5.
    #[schemars(range(min = 1, max = 50))]
    top_k: Option<u64>,
    /// The source of the vectors of tools and queries: words and table only, a model on this machine, or an
    /// endpoint. The lock is made for it. Default: `BM25`.
    embedder: Option<Embedder>,
    /// The model of `HF`: a folder, or a name in the cache of Hugging Face.
    #[schemars(length(min = 1, max = 1024))]
    hf_model: Option<String>,
    /// A second model of `HF`, for queries that are not English.
    #[schemars(length(min = 1, max = 1024))]
    hf_multilingual_model: Option<String>,
    /// The model of `OPENAI`. Default: `text-embedding-3-small`.
    #[schemars(length(min = 1, max = 1024))]
    openai_model: Option<String>,
    /// Whether texts of tools and queries may be sent to an endpoint; `false` refuses `OPENAI`. Default: true.
    external: Option<bool>,
    /// Seconds until words answer a query without the vector of a model. Default: 0.3.
    #[schemars(range(min = 0.01, max = 30))]
    timeout: Option<f64>,
}

/// The source of the vectors of tools and queries.
#[derive(JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum Embedder {
    Bm25,
    Hf,
    OpenAi,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TrustLevel {
    Trusted,
    Verified,
    Untrusted,
}

/// The rules of trust levels.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
struct Trust {
    /// Words, and pairs of adjacent words with `_` between them, in lower case: a name of a tool that has one is
    /// sensitive. Replaces the default list.
    sensitive: Option<Vec<SensitiveWord>>,
}

#[derive(JsonSchema)]
struct SensitiveWord(#[schemars(regex(pattern = r"^[^A-Z\s_.-]+(_[^A-Z\s_.-]+)?$"))] String);

/// An entry of `mcpServers`: a source that may have keys of other clients, and that may be disabled, with
/// any content.
pub(super) fn with_entries(mut schema: Value) -> Value {
    let mut entry = schema["definitions"]["Source"].clone();
    if let Some(members) = entry.as_object_mut() {
        members.remove("additionalProperties");
        members.remove("required");
        members.remove("oneOf");
    }
    entry["description"] = "A server in the format of other clients; `command` is the program itself, neither split nor run by a shell. Keys of other clients are ignored.".into();
    let properties = &mut entry["properties"];
    for key in ["backend", "type"] {
        properties[key] = json!({"description": "The transport.", "enum": ["stdio", "http", "sse", "streamable-http", "streamableHttp", "streamable_http"], "type": "string"});
    }
    for key in ["httpUrl", "serverUrl"] {
        properties[key] =
            json!({"description": "The URL, in files of other clients.", "type": "string"});
    }
    properties["auth"] = json!({"description": "As in a source; other values are ignored."});
    let level = properties["trust"].take();
    properties["trust"] = json!({"anyOf": [level, {"description": "Ignored.", "type": "boolean"}]});
    properties["enabled"] =
        json!({"description": "`false` leaves the entry out.", "type": "boolean"});
    // Other clients count milliseconds: a value above the bound for seconds is ignored with a warning.
    if let Some(timeout) = properties["timeout"].as_object_mut() {
        timeout.remove("maximum");
    }
    let off = json!({"anyOf": [
        {"properties": {"disabled": {"const": true}}, "required": ["disabled"]},
        {"properties": {"enabled": {"const": false}}, "required": ["enabled"]},
    ]});
    let on = std::mem::replace(
        &mut entry,
        json!({"if": off, "then": {"type": "object"}, "else": {}}),
    );
    entry["description"] = on["description"].clone();
    entry["else"] = on;
    entry["else"]["anyOf"] = ["command", "url", "httpUrl", "serverUrl"]
        .map(|key| json!({"required": [key]}))
        .to_vec()
        .into();
    schema["definitions"]["Entry"] = entry;
    schema["definitions"]["ServersConfig"]["not"] = json!({"required": ["tree"]});
    schema["definitions"]["ServersConfig"]["properties"]["mcpServers"]["additionalProperties"] =
        json!({"$ref": "#/definitions/Entry"});
    schema
}

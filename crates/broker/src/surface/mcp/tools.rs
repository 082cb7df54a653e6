//! The introduction of the broker for clients: its name, the three tools, and their use. The texts are
//! written for a model that reads them once; their areas come from the catalog.

use broker_model::config::McpMode;
use serde_json::{Value, json};

use super::Client;
use crate::core::{Core, Identity, MAX_DEPTH, MAX_DESCRIBED};

/// The names of the three tools.
pub(super) const NAMES: [&str; 3] = ["meta_tree", "meta_desc", "meta_call"];

/// The maximum number of areas in the texts; the rest is counted.
const MAX_AREAS: usize = 30;

/// The `serverInfo` of the broker.
pub(super) fn server_info() -> Value {
    json!({
        "name": "mcp-broker",
        "title": "MCP broker",
        "version": env!("CARGO_PKG_VERSION"),
    })
}

/// One line for each top-level entry that exists for the caller: its path and its summary.
fn areas(core: &Core, identity: &Identity) -> String {
    let areas = core.areas(identity);
    let mut lines = String::new();
    for area in areas.iter().take(MAX_AREAS) {
        lines.push_str(&format!("\n- {}: {}", area.path, area.summary));
    }
    if let more @ 1.. = areas.len().saturating_sub(MAX_AREAS) {
        lines.push_str(&format!("\n- and {more} more"));
    }
    lines
}

/// How a model uses the broker, in the client's mode.
pub(super) fn instructions(client: &Client) -> String {
    let areas = areas(&client.core, &client.identity);
    match client.mode {
        McpMode::Meta => meta_instructions(&areas),
        McpMode::Direct => direct_instructions(&areas),
    }
}

fn direct_instructions(areas: &str) -> String {
    format!(
        "This server gives access to the tools of several servers. The name of a tool is its place \
         in a tree, with hyphens: `area-tool` is the tool `tool` of the area `area`.\n\
         When a call fails with an error object, `message` and `hint` say what to change and \
         `details` the arguments that do not match. Correct the call and send it again; with \
         `\"retryable\": false` do not repeat it unchanged.\n\
         At the top:{areas}"
    )
}

fn meta_instructions(areas: &str) -> String {
    format!(
        "This server gives access to many tools through three. The tools form a tree and are \
         named by their path, such as `/area/tool`; they are not in the tool list of this server.\n\
         1. Find: `meta_tree` lists what lies below a path.\n\
         2. Read: `meta_desc` gives a tool's description and the JSON Schema of its arguments. \
         Do this before the first call of a tool.\n\
         3. Call: `meta_call` with that path and `args` that match the schema.\n\
         Use paths exactly as they are listed; do not guess them. When a call fails, its text is an \
         error object: `message` and `hint` say what to change, `did_you_mean` has the nearest \
         names, `details` the arguments that do not match. Correct the call and send it again; with \
         `\"retryable\": false` do not repeat it unchanged.\n\
         At the top:{areas}"
    )
}

/// The entries of the three meta-tools in `tools/list`.
pub(super) fn meta_tools(client: &Client) -> Value {
    let areas = areas(&client.core, &client.identity);
    let root = client.core.root(&client.identity);
    let path = json!({
        "type": "string",
        "pattern": "^/",
        "description": "An absolute path exactly as meta_tree or meta_desc lists it",
    });
    let entry = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string" },
            "type": { "enum": ["node", "tool"] },
            "summary": { "type": "string" },
            "children": { "type": "array", "items": { "type": "object" } },
            "withdrawn": { "type": "object", "description": "Why the tool cannot be called now" },
        },
        "required": ["path", "type"],
    });
    let mut node = entry.clone();
    node["properties"]["children"]["items"] = entry.clone();
    let mut described = node.clone();
    described
        .as_object_mut()
        .map(|schema| schema.remove("required"));
    for (name, schema) in [
        ("description", json!({ "type": "string" })),
        (
            "args_schema",
            json!({ "type": "object", "description": "The JSON Schema of meta_call's args" }),
        ),
        ("example_args", json!({ "type": "object" })),
        (
            "entries",
            json!({ "type": "array", "items": { "type": "object" }, "description": "With paths: one for each, in their order; one that cannot be described has its error" }),
        ),
    ] {
        described["properties"][name] = schema;
    }
    json!([
        {
            "name": NAMES[0],
            "title": "List tools",
            "description": format!("Lists the nodes and tools below a path of the tool tree, with a one-line summary each. Start here to find the right tool; go down into a node by its path, or ask for more depth at once. Entries of type `node` hold others; entries of type `tool` can be called with meta_call after meta_desc. At the top:{areas}"),
            "inputSchema": {
                "type": "object",
                "properties": {
                    "path": {
                        "type": "string",
                        "pattern": "^/",
                        "default": root,
                        "description": format!("The node to list, as a path; `{root}` is the top"),
                    },
                    "depth": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MAX_DEPTH,
                        "default": 1,
                        "description": "How many levels to list",
                    },
                },
                "additionalProperties": false,
            },
            "outputSchema": node,
            "annotations": { "title": "List tools", "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false },
        },
        {
            "name": NAMES[1],
            "title": "Describe tools",
            "description": "Describes a tool or a node of the tool tree: what it does, and for a tool the exact JSON Schema of its arguments (`args_schema`) and an example where there is one. Read this before you call a tool for the first time. Give `path` for one entry, or `paths` for several at once; not both.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "path": path.clone(),
                    "paths": {
                        "type": "array",
                        "items": path.clone(),
                        "maxItems": MAX_DESCRIBED,
                        "description": "Several paths, instead of `path`",
                    },
                },
                "additionalProperties": false,
            },
            "outputSchema": described,
            "annotations": { "title": "Describe tools", "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false },
        },
        {
            "name": NAMES[2],
            "title": "Call a tool",
            "description": "Calls one tool of the tool tree and returns its result. Find its path with meta_tree and its arguments with meta_desc first. If the call fails with an error object (`code`, `message`, `hint`), correct `path` or `args` as it says and call again.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "path": path,
                    "args": {
                        "type": "object",
                        "default": {},
                        "additionalProperties": true,
                        "description": "The tool's own arguments, an object that matches its args_schema",
                    },
                    "meta": {
                        "type": "object",
                        "description": "Members for `_meta` of the request to the server, such as `traceparent`; usually left out",
                    },
                },
                "required": ["path"],
                "additionalProperties": false,
            },
            "annotations": { "title": "Call a tool", "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true },
        },
    ])
}

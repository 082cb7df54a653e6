//! The introduction of the broker for clients: its name, the three tools, and their use. The texts are
//! written for a model that reads them once; their areas come from the catalog.

use broker_model::config::McpMode;
use serde_json::{Value, json};

use super::Client;
use super::listing_text::line;
use crate::core::{AreaRef, Core, Identity, MAX_DEPTH, MAX_DESCRIBED};

/// The names of the three tools.
pub(super) const NAMES: [&str; 3] = ["meta_tree", "meta_desc", "meta_call"];

/// The maximum length of the areas with their summaries, in bytes; longer ones are shown as paths alone.
const MAX_AREA_BYTES: usize = 1500;
/// The maximum number of paths; the rest is counted.
const MAX_AREA_PATHS: usize = 60;
/// The same in the instructions.
const MAX_NAMED_AREAS: usize = 20;

/// The `serverInfo` of the broker.
pub(super) fn server_info() -> Value {
    json!({
        "name": "mcp-broker",
        "title": "MCP broker",
        "version": env!("CARGO_PKG_VERSION"),
    })
}

/// One line for each top-level entry that exists for the caller, as `meta_tree` shows it. If that is long, only
/// the paths.
fn areas(core: &Core, identity: &Identity) -> String {
    let areas = core.areas(identity);
    let mut lines = String::new();
    for area in &areas {
        lines.push('\n');
        lines.push_str(&line(area.path, area.is_node, &area.summary));
        if lines.len() > MAX_AREA_BYTES {
            return format!("\n{}", paths(&areas, MAX_AREA_PATHS));
        }
    }
    lines
}

fn paths(areas: &[AreaRef], max: usize) -> String {
    let shown = areas.iter().take(max);
    let shown = shown.map(|area| format!("{}{}", area.path, if area.is_node { "/" } else { "" }));
    let mut text = shown.collect::<Vec<_>>().join(" ");
    if let more @ 1.. = areas.len().saturating_sub(max) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// How a model uses the broker, in the client's mode.
pub(super) fn instructions(client: &Client) -> String {
    match client.mode {
        McpMode::Meta => {
            let areas = client.core.areas(&client.identity);
            format!("{META_INSTRUCTIONS}{}", paths(&areas, MAX_NAMED_AREAS))
        }
        McpMode::Direct => direct_instructions(&areas(&client.core, &client.identity)),
    }
}

fn direct_instructions(areas: &str) -> String {
    format!(
        "This server gives access to the tools of several servers. The name of a tool is its place \
         in a tree, with hyphens: `area-tool` is the tool `tool` of the area `area`.\n\
         When a call fails with an error object, `message` and `hint` say what to change. Correct the \
         call and send it again; repeat it unchanged only with `\"retryable\": true`.\n\
         At the top:{areas}"
    )
}

/// The areas follow, without summaries: some clients pass on only the instructions, others only the descriptions of
/// tools.
const META_INSTRUCTIONS: &str = "Many tools behind three: find one with meta_tree, read its arguments with meta_desc, \
     run it with meta_call. Copy paths from replies; do not guess them. If a call fails, follow `hint`; repeat it \
     unchanged only if `retryable`. Areas: ";

/// The entries of the three meta-tools in `tools/list`. Every model pays for each word of them; there are no
/// `outputSchema`s, since a model reads the text, and `additionalProperties` is not closed, since an unknown member is
/// refused with the known ones.
pub(super) fn meta_tools(client: &Client) -> Value {
    let areas = areas(&client.core, &client.identity);
    let root = client.core.root(&client.identity);
    json!([
        {
            "name": NAMES[0],
            "title": "Find tools",
            "description": format!("Finds tools. Search: query, two to six English words, action + object + product, one need a query; if `weak`, rephrase or list a node. List: path. One line each: path, summary; a path with `/` at its end is a node to list, others are tools. Top:{areas}"),
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": { "type": "string", "maxLength": 400 },
                    "limit": { "type": "integer", "minimum": 1, "maximum": 50, "default": 5 },
                    "path": { "type": "string", "default": root, "description": "Node" },
                    "depth": { "type": "integer", "minimum": 1, "maximum": MAX_DEPTH },
                },
            },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        },
        {
            "name": NAMES[1],
            "title": "Describe tools",
            "description": "What a tool does and the JSON Schema of its arguments, `args_schema`. Read it before the first call.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "path": { "type": "string" },
                    "paths": { "type": "array", "items": { "type": "string" }, "maxItems": MAX_DESCRIBED },
                    "full": { "type": "boolean", "description": "Also output schema, digest" },
                },
            },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        },
        {
            "name": NAMES[2],
            "title": "Call a tool",
            "description": "Runs the tool at `path` and returns its result.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "path": { "type": "string" },
                    "args": { "type": "object", "description": "As args_schema says" },
                    "meta": { "type": "object", "description": "`_meta` for the server" },
                },
                "required": ["path"],
            },
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "openWorldHint": true },
        },
    ])
}

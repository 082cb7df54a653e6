//! The introduction of the broker for clients: its name, the three tools, and their use. The texts are
//! written for a model that reads them once; their areas come from the catalog.

use broker_config::McpMode;
use serde_json::{Value, json};

use super::listing_text::line;
use super::{Client, job_tool};
use crate::ClientView;
use broker_core::{Broker, Identity, ListedEntry, MAX_DEPTH, MAX_DESCRIBED, areas as areas_of};
use broker_surface::meta::SplitCall;

/// The names of the three meta-tools.
pub(super) const NAMES: [&str; 3] = ["meta_tree", "meta_desc", "meta_call"];
/// The name of the search tool in search mode.
pub(super) const RETRIEVE: &str = "retrieve_tools";
/// The name of the tool that calls what was found.
const CALL_TOOL: &str = "call_tool";

/// The maximum length of the areas with their summaries, in bytes; longer ones are shown as paths alone.
const MAX_AREA_BYTES: usize = 1500;
/// The maximum number of paths; the rest is counted.
const MAX_AREA_PATHS: usize = 60;
/// The same in the instructions.
const MAX_NAMED_AREAS: usize = 20;

/// The maximum number of withdrawn tools that the instructions name; the rest is counted.
const MAX_NAMED_WITHDRAWN: usize = 10;

/// A tool of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnTool {
    Tree,
    Desc,
    /// Calls the tool at a path.
    MetaCall(Option<SplitCall>),
    Retrieve,
    /// Waits for a job, cancels it or reads its result.
    Job,
    /// Calls the tool of a flat name or a path.
    CallTool(Option<SplitCall>),
}

/// The broker's tool with this name, in a view.
pub(super) fn own_tool(view: ClientView, name: &str) -> Option<OwnTool> {
    let (prefix, call): (_, fn(_) -> _) = match view.mode {
        McpMode::Direct => return None,
        McpMode::Meta if name == NAMES[0] => return Some(OwnTool::Tree),
        McpMode::Meta if name == NAMES[1] => return Some(OwnTool::Desc),
        McpMode::Meta => (NAMES[2], OwnTool::MetaCall),
        McpMode::Search if name == RETRIEVE => return Some(OwnTool::Retrieve),
        McpMode::Search => (CALL_TOOL, OwnTool::CallTool),
    };
    if !view.split_calls {
        return (name == prefix).then(|| call(None));
    }
    let ending = name.strip_prefix(prefix)?.strip_prefix('_')?;
    let (safety, _) = SplitCall::ALL.iter().find(|(_, known)| *known == ending)?;
    let split = SplitCall {
        prefix,
        safety: *safety,
    };
    Some(call(Some(split)))
}

/// The names of the tools of a view that call others.
pub(super) fn call_names(view: ClientView) -> Vec<String> {
    let prefix = match view.mode {
        McpMode::Direct => return Vec::new(),
        McpMode::Meta => NAMES[2],
        McpMode::Search => CALL_TOOL,
    };
    match view.split_calls {
        false => vec![prefix.to_owned()],
        true => {
            let endings = SplitCall::ALL.iter();
            endings
                .map(|(_, ending)| format!("{prefix}_{ending}"))
                .collect()
        }
    }
}

/// The names of all tools of a view.
pub(super) fn own_names(view: ClientView) -> Vec<String> {
    let finders = match view.mode {
        McpMode::Direct => &[][..],
        McpMode::Meta => &NAMES[..2],
        McpMode::Search => &[RETRIEVE],
    };
    let finders = finders.iter().map(|name| (*name).to_owned());
    finders.chain(call_names(view)).collect()
}

/// One line for each top-level entry that exists for the caller, as `meta_tree` shows it. If that is long, only
/// the paths.
fn areas(broker: &impl Broker, identity: &Identity) -> String {
    let areas = areas_of(broker, identity);
    let mut lines = String::new();
    for area in &areas {
        lines.push('\n');
        lines.push_str(&line(area.path, area.is_node(), &area.summary));
        if lines.len() > MAX_AREA_BYTES {
            return format!("\n{}", paths(&areas, MAX_AREA_PATHS));
        }
    }
    lines
}

fn paths(areas: &[ListedEntry], max: usize) -> String {
    let shown = areas.iter().take(max);
    let shown = shown.map(|area| format!("{}{}", area.path, if area.is_node() { "/" } else { "" }));
    let mut text = shown.collect::<Vec<_>>().join(" ");
    if let more @ 1.. = areas.len().saturating_sub(max) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// How a model uses the broker, in the client's mode, and the tools that it cannot call.
pub(super) fn instructions(client: &Client<impl Broker>) -> String {
    let items = client.broker.items(&client.identity);
    let withdrawn = items.iter().filter(|item| item.withdrawn);
    let (mut paths, mut count) = (Vec::new(), 0);
    for item in withdrawn {
        if count < MAX_NAMED_WITHDRAWN {
            paths.push(item.path);
        }
        count += 1;
    }
    let mut text = use_of(client);
    if count > 0 {
        text.push_str("\nWithdrawn, not callable: ");
        text.push_str(&paths.join(" "));
    }
    if let more @ 1.. = count - paths.len() {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// How a model uses the broker, in the client's mode.
fn use_of(client: &Client<impl Broker>) -> String {
    let top = || {
        let areas = areas_of(&client.broker, &client.identity);
        paths(&areas, MAX_NAMED_AREAS)
    };
    match client.view.mode {
        McpMode::Meta if client.view.split_calls => {
            format!(
                "{META_INSTRUCTIONS}{SPLIT_META_INSTRUCTIONS}Areas: {}",
                top()
            )
        }
        McpMode::Meta => format!("{META_INSTRUCTIONS}Areas: {}", top()),
        McpMode::Search => format!("{}Areas: {}", search_instructions(client), top()),
        McpMode::Direct => {
            let areas = areas(&client.broker, &client.identity);
            direct_instructions(&left_out_for_vendor(client), &areas)
        }
    }
}

/// Returns the tools that the list leaves out because of the limits of the client's vendor; empty if all tools are
/// listed.
fn left_out_for_vendor(client: &Client<impl Broker>) -> String {
    let Some(vendor) = client.view.vendor else {
        return String::new();
    };
    let mut tools = client.broker.callable_tools(&client.identity);
    tools.retain(|tool| tool.listable);
    let (all, mut text) = (tools.len(), String::new());
    if let Some(max) = vendor.max_tools().filter(|max| all > *max) {
        text.push_str(&format!(
            "The list has the first {max} of {all} tools in the order of the tree, since the model's API takes no more. Ask the \
             user for a smaller part of the tree if a tool is missing.\n"
        ));
    }
    tools.retain(|tool| !tool.is_listable(Some(vendor)));
    if !tools.is_empty() {
        let shown = tools.iter().take(MAX_NAMED_WITHDRAWN);
        let shown = shown.map(|tool| tool.path).collect::<Vec<_>>().join(" ");
        text.push_str(&format!(
            "Not in the list, since the model's API refuses the names of their arguments: {shown}"
        ));
        if let more @ 1.. = tools.len().saturating_sub(MAX_NAMED_WITHDRAWN) {
            text.push_str(&format!(" and {more} more"));
        }
        text.push('\n');
    }
    text
}

fn direct_instructions(left_out: &str, areas: &str) -> String {
    format!(
        "This server gives access to the tools of several servers. The name of a tool is its place \
         in a tree, with hyphens: `area-tool` is the tool `tool` of the area `area`.\n\
         When a call fails with an error object, `message` and `hint` say what to change. Correct the \
         call and send it again; repeat it unchanged only with `\"retryable\": true`.\n\
         {left_out}At the top:{areas}"
    )
}

/// The areas follow, without summaries: some clients pass on only the instructions, others only the descriptions of
/// tools.
const META_INSTRUCTIONS: &str = "Many tools behind three: find one with meta_tree, read its arguments with meta_desc, \
     run it with meta_call. Copy paths from replies; do not guess them. If a call fails, follow `hint`; repeat it \
     unchanged only if `retryable`. ";

/// The texts that change with split calls.
const SPLIT_META_INSTRUCTIONS: &str = "meta_call is three tools: meta_call_read for tools that change nothing, \
     meta_call_write for tools that change something without deleting or overwriting, meta_call_destructive for all \
     others. A call by the wrong one is refused with the right name. ";

fn search_instructions(client: &Client<impl Broker>) -> String {
    let call = match client.session_tools {
        Some(_) => "the hits become tools of this session: call them by their names".to_owned(),
        None => format!("call a hit by {}", call_names(client.view).join(", ")),
    };
    format!(
        "Many tools behind one search: find tools with {RETRIEVE}, then {call}. If a call fails, follow `hint`; repeat \
         it unchanged only if `retryable`. "
    )
}

/// The entries of the meta-tools in `tools/list`. Every model pays for each word of them; there are no
/// `outputSchema`s, since a model reads the text, and `additionalProperties` is not closed, since an unknown member is
/// refused with the known ones.
pub(super) fn meta_tools(client: &Client<impl Broker>) -> Vec<Value> {
    let areas = areas(&client.broker, &client.identity);
    let root = client.identity.root();
    let mut tools = vec![
        json!({
            "name": NAMES[0],
            "title": "Find tools",
            "description": format!("Finds tools. Search: query, two to six English words, action + object + product, one need a query; if `weak`, rephrase or list a node. List: path. One line each: path, summary; nodes end with `/`. Top:{areas}"),
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": query_schema(),
                    "limit": limit_schema(5),
                    "path": { "type": "string", "default": root, "description": "Node" },
                    "depth": { "type": "integer", "minimum": 1, "maximum": MAX_DEPTH },
                },
            },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        }),
        json!({
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
        }),
    ];
    tools.extend(call_tools(
        client.view,
        "Runs the tool at `path` and returns its result.",
        &json!({
            "type": "object",
            "properties": {
                "path": { "type": "string" },
                "args": open_object("As args_schema says"),
                "meta": { "type": "object" },
            },
            "required": ["path"],
        }),
    ));
    tools.extend(job_tool(client));
    tools
}

/// Returns the entry of the tool for jobs, where jobs are on.
pub(super) fn job_tool(client: &Client<impl Broker>) -> Option<Value> {
    client.broker.jobs().map(|_| job_tool::entry())
}

fn query_schema() -> Value {
    json!({ "type": "string", "maxLength": 400 })
}

/// The schema of the arguments of another tool. The conversion of schemas to OpenAI's strict form would close it, so that
/// no argument could be sent; `additionalProperties` makes it step aside.
fn open_object(description: &str) -> Value {
    json!({ "type": "object", "description": description, "additionalProperties": true })
}

/// The schema of the number of hits.
fn limit_schema(default: usize) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": 50, "default": default })
}

/// Returns the entries of the broker's tools in search mode; `is_dynamic` if the found tools are in the list as well.
pub(super) fn search_tools(client: &Client<impl Broker>, is_dynamic: bool) -> Vec<Value> {
    let areas = areas(&client.broker, &client.identity);
    let call = match is_dynamic {
        true => "The best hits become tools of this session.",
        false => "Returns name, description and input_schema of each.",
    };
    let mut tools = vec![json!({
        "name": RETRIEVE,
        "title": "Find tools",
        "description": format!("Finds tools: query, two to six English words, action + object + product, one need a query; if `weak`, rephrase. {call} Areas:{areas}"),
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": query_schema(),
                "limit": limit_schema(client.view.top_k),
            },
            "required": ["query"],
        },
        // A search changes only the list of the session.
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })];
    if !is_dynamic {
        tools.extend(call_tools(
            client.view,
            "Runs a tool that retrieve_tools found and returns its result.",
            &json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "description": "Name or path of the tool" },
                    "arguments": open_object("As its input_schema says"),
                },
                "required": ["name"],
            }),
        ));
    }
    tools.extend(job_tool(client));
    tools
}

/// The entries of the tools that call others: one, or three with true annotations.
fn call_tools(view: ClientView, description: &str, schema: &Value) -> Vec<Value> {
    let names = call_names(view);
    let entry = |name: &str, title: &str, note: &str, annotations: Value| {
        json!({
            "name": name,
            "title": title,
            "description": format!("{description}{note}"),
            "inputSchema": schema,
            "annotations": annotations,
        })
    };
    let [read, write, destructive] = &names[..] else {
        let annotations =
            json!({ "readOnlyHint": false, "destructiveHint": true, "openWorldHint": true });
        return names
            .iter()
            .map(|name| entry(name, "Call a tool", "", annotations.clone()))
            .collect();
    };
    vec![
        entry(
            read,
            "Call a tool that reads",
            " Only tools that change nothing.",
            json!({ "readOnlyHint": true, "openWorldHint": true }),
        ),
        entry(
            write,
            "Call a tool that writes",
            " Only tools that change something, and neither delete nor overwrite.",
            json!({ "readOnlyHint": false, "destructiveHint": false, "openWorldHint": true }),
        ),
        entry(
            destructive,
            "Call a tool that may destroy",
            " Only tools that may delete or overwrite, or do not say what they do.",
            json!({ "readOnlyHint": false, "destructiveHint": true, "openWorldHint": true }),
        ),
    ]
}

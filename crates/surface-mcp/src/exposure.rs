//! The introduction of the broker and the tool list, for the mode of a client.

use broker_config::McpMode;
use broker_wire::era::SUPPORTED;
use broker_wire::protocol::{INTERNAL_ERROR, INVALID_PARAMS, LEGACY_LATEST, META_SERVER_INFO};
use broker_wire::write::{Text, push_string};
use broker_wire::{Era, RpcError};
use serde_json::{Value, json};

use super::Client;
use super::result::error_object;
use super::server_info::server_info;
use super::tasks::listed::{ListForm, mark};
use super::tasks::{extension, legacy};
use super::tools::{call_names, instructions, job_tool, meta_tools, search_tools};
use broker_core::{
    Account, Broker, Charge, CoreError, ItemKind, ToolQuery, memory_error_for_request,
};

/// Maximum time that a modern client may cache texts that do not change while the broker runs.
const TTL_MS: u64 = 300_000;
/// The same for a list that changes, whose changes a client can subscribe to.
pub(super) const CHANGING_TTL_MS: u64 = 30_000;
/// The maximum size of one page of `tools/list`.
const MAX_PAGE_TOOLS: usize = 1000;
const MAX_PAGE_BYTES: usize = 1 << 20;
/// The memory that a list takes while it is made, as a multiple of its length.
const MAX_COPIES: usize = 2;

/// The result of `initialize`. Without a session, a client gets no announcements.
pub(super) fn initialize(client: &Client<impl Broker>, revision: &str, has_session: bool) -> Text {
    text(&json!({
        "protocolVersion": revision,
        "capabilities": legacy_capabilities(client, revision, has_session),
        "serverInfo": server_info(),
        "instructions": instructions(client),
    }))
}

/// The result of `server/discover`.
pub(super) fn discover(client: &Client<impl Broker>) -> Text {
    let mut result = json!({
        "supportedVersions": SUPPORTED,
        "capabilities": modern_capabilities(client),
        "instructions": instructions(client),
    });
    for (name, value) in modern_members(client, TTL_MS) {
        result[name] = value;
    }
    text(&result)
}

/// The result of `tools/list` from `cursor` on, a JSON value, for a client that has tasks or not.
///
/// The list is charged to `account` until it was written.
pub(super) fn list(
    client: &Client<impl Broker>,
    account: &Account,
    cursor: Option<&str>,
    (era, has_tasks): (Era, bool),
) -> Result<Text, RpcError> {
    let form = ListForm {
        // A client with tasks gets no other result in place of the one that the schema promises.
        without_output: client.may_promote() && !has_tasks,
        // The modern era has no such member.
        task_support: era == Era::Legacy && client.tasks().is_some(),
    };
    let (tools, next, ttl) = match (client.view.mode, cursor) {
        (McpMode::Meta, None) => (meta_list(client, form), None, TTL_MS),
        (McpMode::Search, None) => (search_list(client, form, era), None, TTL_MS),
        (McpMode::Meta | McpMode::Search, Some(_)) => return Err(unknown_cursor()),
        (McpMode::Direct, cursor) => {
            let after = cursor
                .map(serde_json::from_str::<String>)
                .transpose()
                .map_err(|_| unknown_cursor())?;
            let what = ToolQuery {
                vendor: client.view.vendor,
                after: after.as_deref(),
                names: None,
                without_output: form.without_output,
                task_support: form.task_support,
                max_tools: MAX_PAGE_TOOLS,
                max_bytes: MAX_PAGE_BYTES,
            };
            let page = client.broker.tools(&client.identity, &what);
            let page = page.ok_or_else(unknown_cursor)?;
            let mut tools = page.json();
            if let Some(job) = job_tool(client).filter(|_| page.last.is_none()) {
                tools.pop();
                let comma = if page.tools.is_empty() { "" } else { "," };
                tools.extend_from_slice(format!("{comma}{job}]").as_bytes());
            }
            (tools, page.last, CHANGING_TTL_MS)
        }
    };
    let needed = MAX_COPIES * tools.len();
    let mut charge = Charge::default();
    charge
        .cover(account, needed)
        .map_err(|full| no_memory(client, &memory_error_for_request(full, needed, account)))?;
    let mut result = br#"{"tools":"#.to_vec();
    result.extend_from_slice(&tools);
    if let Some(last) = next {
        // A cursor is the name of the last tool, so that it outlives withdrawals and restarts.
        result.extend_from_slice(br#","nextCursor":"#);
        push_string(&mut result, last);
    }
    if era == Era::Modern {
        for (name, value) in modern_members(client, ttl) {
            result.extend_from_slice(format!(r#","{name}":{value}"#).as_bytes());
        }
    }
    result.push(b'}');
    Ok(Text::charged(result, charge))
}

/// Returns the tool list of meta mode.
fn meta_list(client: &Client<impl Broker>, form: ListForm) -> Vec<u8> {
    let mut tools = meta_tools(client);
    if form.task_support {
        mark(&mut tools, &call_names(client.view));
    }
    Value::from(tools).to_string().into_bytes()
}

/// Returns the tool list of search mode. The modern era forbids a list that changes with other requests, so there it is
/// always the same.
fn search_list(client: &Client<impl Broker>, form: ListForm, era: Era) -> Vec<u8> {
    let session = client.session_tools.as_ref();
    let session = session.filter(|_| era == Era::Legacy);
    let mut own = search_tools(client, session.is_some());
    if form.task_support {
        mark(&mut own, &call_names(client.view));
    }
    let own = own.iter().map(Value::to_string).collect::<Vec<_>>();
    let mut list = format!("[{}", own.join(",")).into_bytes();
    if let Some(session) = session {
        for tool in session.listed(&client.broker, &client.identity, (client.view.vendor, form)) {
            list.push(b',');
            tool.push_json(&mut list);
        }
    }
    list.push(b']');
    list
}

pub(super) fn no_memory(client: &Client<impl Broker>, error: &CoreError) -> RpcError {
    let object = error_object(error, client.ids.next().as_str());
    RpcError::new(INTERNAL_ERROR, error.message.clone()).data(object)
}

/// The refusal of a cursor.
pub(super) fn unknown_cursor() -> RpcError {
    RpcError::new(INVALID_PARAMS, "the cursor is not one of this list")
}

/// Prompts and resources are declared if the caller has any.
fn legacy_capabilities(client: &Client<impl Broker>, revision: &str, has_session: bool) -> Value {
    let mut all = if has_session {
        let changes = client.list_changes(&client.identity);
        with_items(client, capabilities(changes.is_some()))
    } else {
        let mut all = with_items(client, capabilities(false));
        // Its level would be that of one request.
        if let Some(members) = all.as_object_mut() {
            members.remove("logging");
        }
        all
    };
    // Earlier revisions have no tasks.
    if revision == LEGACY_LATEST && client.tasks().is_some() {
        all["tasks"] = legacy::capability();
    }
    all
}

fn modern_capabilities(client: &Client<impl Broker>) -> Value {
    let mut all = with_items(client, capabilities(client.view.mode == McpMode::Direct));
    if client.tasks().is_some() {
        all["extensions"] = extension::capability();
    }
    all
}

/// Declares prompts and resources if the caller has any.
fn with_items(client: &Client<impl Broker>, mut all: Value) -> Value {
    let (mut has_prompts, mut has_resources) = (false, false);
    for item in client.broker.items(&client.identity) {
        match item.kind {
            ItemKind::Prompt => has_prompts = true,
            ItemKind::Resource | ItemKind::Template => has_resources = true,
            ItemKind::Tool => {}
        }
    }
    if has_prompts {
        all["prompts"] = json!({});
    }
    // The link to a job can be read where there is no other resource.
    if has_resources || client.broker.jobs().is_some() {
        all["resources"] = json!({});
    }
    if has_prompts || has_resources {
        all["completions"] = json!({});
    }
    all
}

/// `logging/setLevel` and its counterpart of the modern era are answered in every mode.
fn capabilities(list_changes: bool) -> Value {
    let tools = match list_changes {
        true => json!({ "listChanged": true }),
        false => json!({}),
    };
    json!({ "tools": tools, "logging": {} })
}

/// The members that every cacheable result of the modern era needs. The results are the same for all
/// callers that may use the same entries.
pub(super) fn modern_members(
    client: &Client<impl Broker>,
    ttl_ms: u64,
) -> [(&'static str, Value); 4] {
    // Callers may see different entries.
    let scope = match client.broker.services().lists_may_differ() {
        true => "private",
        false => "public",
    };
    [
        ("resultType", json!("complete")),
        ("ttlMs", json!(ttl_ms)),
        ("cacheScope", json!(scope)),
        ("_meta", json!({ META_SERVER_INFO: server_info() })),
    ]
}

fn text(result: &Value) -> Text {
    result.to_string().into_bytes().into()
}

//! `retrieve_tools`: the tools that fit a query, with what a call of them needs.

use std::borrow::Cow;

use broker_model::model_vendor::ModelVendor;
use broker_wire::Era;
use broker_wire::write::{self, Outgoing, Text, push_string};
use serde_json::Value;
use tokio::sync::mpsc;

use super::notifications::TOOLS_CHANGED;
use super::session_tools::Registration;
use super::tools::call_names;
use super::{Client, result};
use broker_core::{
    Account, Broker, CallableTool, Charge, CoreError, Detail, FoundTool, FoundTools, SearchQuery,
    memory_error_for_request,
};
use broker_surface::meta::RetrieveBody;

/// A tool that was found, with what a call needs.
struct Hit<'a> {
    tool: &'a CallableTool,
    score: f64,
}

impl<'a> Hit<'a> {
    fn new(found: &'a FoundTool) -> Option<Self> {
        Some(Self {
            tool: found.callable.as_ref()?,
            score: found.score,
        })
    }
}

/// The maximum bytes of descriptions and schemas in one answer.
const MAX_FOUND_BYTES: usize = 1 << 20;

/// Searches, and announces the change of the session's list before the answer.
pub(super) async fn answer(
    client: &Client<impl Broker>,
    account: &Account,
    announcements: Option<&mpsc::Sender<Outgoing>>,
    (arguments, dynamic, era): (&[u8], bool, Era),
) -> Result<Text, Box<CoreError>> {
    let (body, registration) = retrieve((client, account), arguments, dynamic).await?;
    if let Some(tools) = client
        .session_tools
        .as_ref()
        .filter(|_| !registration.is_empty())
        && !tools.announce_on_stream()
    {
        if let Some(messages) = announcements
            && messages
                .try_send(write::notification(TOOLS_CHANGED, None))
                .is_err()
        {
            tracing::debug!("an announcement was dropped: its client does not read");
        }
        tools.announced();
    }
    let needed = result::MAX_OWN_COPIES * body.len();
    let mut charge = Charge::default();
    charge
        .cover(account, needed)
        .map_err(|full| Box::new(memory_error_for_request(full, needed, account)))?;
    let result = result::own(&String::from_utf8_lossy(&body), era);
    Ok(Text::charged(result, charge))
}

/// Searches, and registers the hits for the session if its list is `dynamic`. Returns the answer:
/// `{"tools":[{"name","path","description","input_schema","score","registered"}],"newly_registered":[…],"evicted":[…],"weak"?,"degraded"?,"hint"?}`,
/// and the change of the list.
async fn retrieve(
    (client, account): (&Client<impl Broker>, &Account),
    arguments: &[u8],
    dynamic: bool,
) -> Result<(Vec<u8>, Registration), Box<CoreError>> {
    let RetrieveBody { query, limit } = RetrieveBody::parse(arguments)?;
    let limit = limit.unwrap_or(client.view.top_k);
    let what = SearchQuery {
        query: &query,
        path: None,
        limit,
        detail: Detail::Call {
            max_bytes: MAX_FOUND_BYTES,
        },
        account,
    };
    let found = client.broker.search(&client.identity, what).await?;
    let hits: Vec<Hit<'_>> = found.hits.iter().filter_map(Hit::new).collect();
    let session = client.session_tools.as_ref().filter(|_| dynamic);
    let registration = session.map_or_else(Registration::default, |session| {
        let hits = hits.iter().take(client.view.top_k);
        // A tool with the name of one of the broker's own tools is called by its path, as is one that clients cannot list.
        let is_listed = |hit: &&Hit<'_>| {
            hit.tool.is_listable(client.view.vendor) && !client.has_own_tool(hit.tool.name)
        };
        let hits = hits.filter(is_listed);
        let hits: Vec<_> = hits.map(|hit| (hit.tool.name, hit.tool.path)).collect();
        session.register(&hits)
    });
    let is_registered = |name: &str| session.is_some_and(|session| session.has(name));
    // The names of the list, where the hits are in it.
    let vendor = client.view.vendor.filter(|_| session.is_some());
    let mut out = written((&found, &hits), &registration, vendor, is_registered);
    if session.is_none() && !hits.is_empty() {
        out.extend_from_slice(b",\"hint\":");
        push_string(&mut out, &hint(client));
    }
    out.push(b'}');
    Ok((out, registration))
}

/// The answer without its hint and its last brace.
fn written(
    (found, hits): (&FoundTools, &[Hit<'_>]),
    registration: &Registration,
    vendor: Option<ModelVendor>,
    is_registered: impl Fn(&str) -> bool,
) -> Vec<u8> {
    let mut out = b"{\"tools\":[".to_vec();
    for (rank, hit) in hits.iter().enumerate() {
        let tool = hit.tool;
        out.extend_from_slice(if rank > 0 {
            b",{\"name\":"
        } else {
            b"{\"name\":"
        });
        push_string(&mut out, &listed_name(vendor, tool.name));
        out.extend_from_slice(b",\"path\":");
        push_string(&mut out, tool.path);
        out.extend_from_slice(b",\"description\":");
        push_string(&mut out, &tool.description);
        out.extend_from_slice(b",\"input_schema\":");
        out.extend_from_slice(tool.input_schema.as_bytes());
        let (score, registered) = (Value::from(hit.score), is_registered(tool.name));
        let rest = format!(",\"score\":{score},\"registered\":{registered}}}");
        out.extend_from_slice(rest.as_bytes());
    }
    out.extend_from_slice(b"],\"newly_registered\":");
    out.extend_from_slice(names(vendor, &registration.added).as_bytes());
    out.extend_from_slice(b",\"evicted\":");
    out.extend_from_slice(names(vendor, &registration.evicted).as_bytes());
    if found.is_weak {
        out.extend_from_slice(b",\"weak\":true");
    }
    if found.is_degraded {
        out.extend_from_slice(b",\"degraded\":\"words\"");
    }
    out
}

fn names(vendor: Option<ModelVendor>, names: &[&str]) -> String {
    let names = names.iter().map(|name| listed_name(vendor, name));
    Value::from_iter(names.map(Cow::into_owned)).to_string()
}

fn listed_name(vendor: Option<ModelVendor>, name: &str) -> Cow<'_, str> {
    vendor.map_or(Cow::Borrowed(name), |vendor| vendor.tool_name(name))
}

/// How a client without registered tools calls what it found.
fn hint(client: &Client<impl Broker>) -> String {
    let names = call_names(client.view);
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    format!(
        "Call a tool by {} with its `name`, and with `arguments` as its `input_schema` says.",
        names.join(" or ")
    )
}

//! Prompts and resources over MCP: their lists, and the calls that get or read one.

use broker_wire::protocol::INVALID_PARAMS;
use broker_wire::write::Text;
use broker_wire::{Era, JsonMembers, RpcError, valid_string};
use bytes::Bytes;
use serde_json::json;

use super::Client;
use super::exposure::{CHANGING_TTL_MS, modern_members, unknown_cursor};
use super::item_error;
use super::own_listing::decided_later;
use super::params::Params;
use crate::exposure::no_memory;
use broker_core::{
    Account, Broker, Charge, CoreError, ItemKind, ListedItem, Name, Operation, Outcome,
    memory_error_for_request,
};
use broker_surface::meta::{MetaCaller, read_args};

/// The maximum size of one page of a list.
const MAX_PAGE_ITEMS: usize = 1000;
const MAX_PAGE_BYTES: usize = 1 << 20;
/// The memory that a list takes while it is made, as a multiple of its length.
const MAX_COPIES: usize = 2;

/// A method about prompts and resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemMethod {
    List(ItemList),
    GetPrompt,
    ReadResource,
    Complete,
}

impl ItemMethod {
    /// Returns the method with this name.
    pub(super) fn parse(method: &str) -> Option<Self> {
        Some(match method {
            "prompts/list" => Self::List(ItemList::Prompts),
            "resources/list" => Self::List(ItemList::Resources),
            "resources/templates/list" => Self::List(ItemList::Templates),
            "prompts/get" => Self::GetPrompt,
            "resources/read" => Self::ReadResource,
            "completion/complete" => Self::Complete,
            _ => return None,
        })
    }

    /// Whether its answer depends on the resources that sources list now.
    pub(super) const fn needs_resources(self) -> bool {
        matches!(self, Self::List(ItemList::Resources) | Self::ReadResource)
    }
}

/// The answer to a request about prompts and resources, or the call that it makes.
#[derive(Debug)]
pub(super) enum ItemAnswer {
    List(Text),
    Call(ItemCall),
}

/// The answer with the resources that are listed now.
pub(super) fn answer(
    client: &Client<impl Broker>,
    account: &Account,
    method: ItemMethod,
    params: &Params<'_>,
    era: Era,
) -> Result<ItemAnswer, RpcError> {
    let call = match method {
        ItemMethod::List(items) => {
            let list = decided_later(|| list(client, account, items, params, era));
            return list.map(ItemAnswer::List);
        }
        // The reason is of more use than the report that the name is not known.
        ItemMethod::GetPrompt | ItemMethod::ReadResource | ItemMethod::Complete
            if client
                .broker
                .services()
                .start_refusal(&client.identity)
                .is_some() =>
        {
            Ok(ItemCall::keep_refused(params))
        }
        ItemMethod::GetPrompt => ItemCall::parse_prompt(client, params),
        ItemMethod::ReadResource => ItemCall::parse_resource(client, params, era),
        ItemMethod::Complete => ItemCall::parse_completion(client, params),
    };
    call.map(ItemAnswer::Call)
}

/// A list of prompts or resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemList {
    Prompts,
    Resources,
    Templates,
}

impl ItemList {
    const fn member(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    fn items(self, client: &Client<impl Broker>) -> Vec<ListedItem> {
        let kind = match self {
            Self::Prompts => ItemKind::Prompt,
            Self::Resources => ItemKind::Resource,
            Self::Templates => ItemKind::Template,
        };
        client.broker.listed_items(&client.identity, kind)
    }
}

/// A call of a prompt, template or resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ItemCall {
    pub(super) path: &'static str,
    request: ItemRequest,
}

/// The request that a client makes of a prompt, template or resource.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ItemRequest {
    /// `prompts/get` with these arguments.
    Get(Bytes),
    /// `resources/read` of this URI.
    Read(Box<str>),
    /// `completion/complete` with these parameters.
    Complete(Bytes),
}

/// The result of a list from the cursor in `params` on. It is charged to `account` until it was written.
fn list(
    client: &Client<impl Broker>,
    account: &Account,
    list: ItemList,
    params: &Params<'_>,
    era: Era,
) -> Result<Text, RpcError> {
    let cursor = params
        .members
        .given("cursor")
        .map(serde_json::from_str::<String>);
    let after = cursor.transpose().map_err(|_| unknown_cursor())?;
    let items = list.items(client);
    let start = match &after {
        None => 0,
        Some(cursor) => {
            let last = place(cursor);
            items.partition_point(|item| item.place() <= last)
        }
    };
    if start == items.len() && after.is_some() {
        return Err(unknown_cursor());
    }
    let mut result = format!(r#"{{"{}":["#, list.member()).into_bytes();
    let mut next = None;
    for (count, item) in items[start..].iter().enumerate() {
        let is_full = count >= MAX_PAGE_ITEMS || result.len() + item.json.len() > MAX_PAGE_BYTES;
        if count > 0 && is_full {
            next = Some(cursor_after(&items[start + count - 1]));
            break;
        }
        if count > 0 {
            result.push(b',');
        }
        result.extend_from_slice(item.json.as_bytes());
    }
    result.push(b']');
    if let Some(next) = next {
        result.extend_from_slice(format!(r#","nextCursor":{}"#, json!(next)).as_bytes());
    }
    if era == Era::Modern {
        for (name, value) in modern_members(client, CHANGING_TTL_MS) {
            result.extend_from_slice(format!(r#","{name}":{value}"#).as_bytes());
        }
    }
    result.push(b'}');
    let needed = MAX_COPIES * result.len();
    let mut charge = Charge::default();
    charge
        .cover(account, needed)
        .map_err(|full| no_memory(client, &memory_error_for_request(full, needed, account)))?;
    Ok(Text::charged(result, charge))
}

/// Returns the cursor of the items after this one: its path, and its URI after a space. A path has no space. The cursor
/// stays valid if the item is withdrawn.
fn cursor_after(item: &ListedItem) -> String {
    match item.place() {
        (path, None) => path.to_owned(),
        (path, Some(uri)) => format!("{path} {uri}"),
    }
}

/// The path and the URI of a cursor.
fn place(cursor: &str) -> (&str, Option<&str>) {
    match cursor.split_once(' ') {
        None => (cursor, None),
        Some((path, uri)) => (path, Some(uri)),
    }
}

impl ItemCall {
    /// Reads the params of `prompts/get`.
    fn parse_prompt(client: &Client<impl Broker>, params: &Params<'_>) -> Result<Self, RpcError> {
        let wrong = |message: &str| RpcError::new(INVALID_PARAMS, message);
        let name = params.members.get("name").and_then(valid_string);
        let name = name.ok_or_else(|| wrong("`name` must be a string"))?;
        let arguments = match params.members.given("arguments") {
            None => Bytes::from_static(b"{}"),
            Some(raw) if raw.starts_with('{') => params.raw.slice_ref(raw.as_bytes()),
            Some(_) => return Err(wrong("`arguments` must be an object")),
        };
        let found = client.broker.look_up(&client.identity, Name::Prompt(&name));
        let found = found.map_err(|_| {
            let shown = broker_model::text::shown_line(&name, 160);
            wrong(&format!(
                "unknown prompt `{shown}`: `prompts/list` has the names"
            ))
        })?;
        Ok(Self {
            path: found.item.path,
            request: ItemRequest::Get(arguments),
        })
    }

    /// Reads the params of `resources/read`.
    fn parse_resource(
        client: &Client<impl Broker>,
        params: &Params<'_>,
        era: Era,
    ) -> Result<Self, RpcError> {
        let uri = params.members.get("uri").and_then(valid_string);
        let uri = uri.ok_or_else(|| RpcError::new(INVALID_PARAMS, "`uri` must be a string"))?;
        let found = client.broker.look_up(&client.identity, Name::Uri(&uri));
        let found = found.map_err(|_| item_error::not_found(&uri, era))?;
        Ok(Self {
            path: found.item.path,
            request: ItemRequest::Read(uri.into()),
        })
    }

    /// Reads the params of `completion/complete`.
    fn parse_completion(
        client: &Client<impl Broker>,
        params: &Params<'_>,
    ) -> Result<Self, RpcError> {
        let wrong = |message: &str| RpcError::new(INVALID_PARAMS, message);
        let reference = params.members.given("ref").map(JsonMembers::parse);
        let Some(Ok(reference)) = reference else {
            return Err(wrong("`ref` must be an object"));
        };
        let text = |name: &str| reference.get(name).and_then(valid_string);
        let look_up = |name: Name<'_>| client.broker.look_up(&client.identity, name).ok();
        let found = match text("type").as_deref() {
            Some("ref/prompt") => text("name").and_then(|name| look_up(Name::Prompt(&name))),
            Some("ref/resource") => text("uri").and_then(|uri| look_up(Name::Template(&uri))),
            _ => return Err(wrong("`ref.type` must be `ref/prompt` or `ref/resource`")),
        };
        let found = found.ok_or_else(|| {
            wrong("`ref` names no prompt or template: `prompts/list` and `resources/templates/list` have them")
        })?;
        let argument = params.members.given("argument").map(JsonMembers::parse);
        let has_text =
            |members: &JsonMembers<'_>, name| members.get(name).and_then(valid_string).is_some();
        if !matches!(&argument, Some(Ok(it)) if has_text(it, "name") && has_text(it, "value")) {
            return Err(wrong("`argument` must have the strings `name` and `value`"));
        }
        let members = ["ref", "argument", "context"];
        let members = members.iter().filter_map(|name| {
            let value = params.members.given(name)?;
            Some(format!("\"{name}\":{value}"))
        });
        let members: Vec<String> = members.collect();
        let params = Bytes::from(format!("{{{}}}", members.join(",")));
        Ok(Self {
            path: found.item.path,
            request: ItemRequest::Complete(params),
        })
    }

    /// Returns a call that a refused start answers, whatever it names.
    fn keep_refused(params: &Params<'_>) -> Self {
        Self {
            path: "",
            request: ItemRequest::Get(params.raw.clone()),
        }
    }

    /// Returns the text that the call keeps of the `params` of its message.
    pub(super) fn kept_text(&self, params: &Params<'_>) -> Bytes {
        match &self.request {
            ItemRequest::Get(text) | ItemRequest::Complete(text) => text.clone(),
            ItemRequest::Read(_) => params.raw.clone(),
        }
    }

    /// Whether the modern era needs the members of a cacheable result.
    pub(super) const fn is_cacheable(&self) -> bool {
        matches!(self.request, ItemRequest::Read(_))
    }

    /// Makes the call.
    pub(super) async fn make(
        &self,
        caller: &MetaCaller<'_, impl Broker>,
    ) -> Result<Outcome, Box<CoreError>> {
        let (operation, received) = match &self.request {
            ItemRequest::Get(arguments) => {
                let (args, received) = read_args(arguments.clone())?;
                (Operation::GetPrompt(args), received)
            }
            ItemRequest::Read(uri) => (Operation::ReadResource(uri.clone()), None),
            ItemRequest::Complete(params) => {
                let (args, received) = read_args(params.clone())?;
                (Operation::Complete(args), received)
            }
        };
        caller.call_item(self.path, operation, received).await
    }
}

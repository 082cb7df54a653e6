//! Prompts, templates and resources: their lists, and the entry that serves a URI.

use std::sync::Arc;

use broker_model::item::ItemKind;
use broker_model::json::string_text;
use broker_model::uri_template::UriTemplate;
use serde_json::Value;

use crate::catalog::Item;
use crate::listing::scope::Scope;
use crate::snapshot::Snapshot;

/// The maximum number of resources in a description, and their maximum length in bytes.
const MAX_DESCRIBED: usize = 200;
const MAX_DESCRIBED_BYTES: usize = 64 << 10;
/// Maximum length of a text of a resource in a description, in characters.
const MAX_TEXT_CHARS: usize = 200;

/// An element of a list of prompts, templates or resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedItem {
    /// The path of its entry.
    pub path: &'static str,
    /// The URI of a resource that the source lists now: the path is that of all these resources.
    pub uri: Option<Arc<str>>,
    /// Its members, as the server listed them: one JSON object.
    pub json: Arc<str>,
}

impl ListedItem {
    /// Returns the place in the list: lists are in the order of these pairs of path and URI.
    pub fn place(&self) -> (&str, Option<&str>) {
        (self.path, self.uri.as_deref())
    }
}

/// The form of an entry's read of a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadForm {
    /// The entry is the resource: without arguments.
    Resource,
    /// The entry is a template that covers the URI: the URI replaces its arguments.
    Template,
    /// The source lists the URI now: the argument `uri` has it.
    Live,
}

/// The members of a resource that a description shows.
const SHOWN_MEMBERS: [&str; 5] = ["uri", "name", "title", "description", "mimeType"];

/// Finds the item that serves a URI, and the form of its read.
pub(super) fn find_readable(snapshot: &Snapshot, uri: &str) -> Option<(u32, ReadForm)> {
    let (scope, drift_state) = (snapshot.scope(), &snapshot.core.fleet.drift_state);
    let is_resource =
        |item: &Item| item.kind == ItemKind::Resource && item.id == uri && !item.is_live();
    let is_listed = |item: &Item| {
        let source = item.source as usize;
        let list = item.is_live().then(|| drift_state.live.get(source));
        list.flatten().is_some_and(|list| list.has(uri))
    };
    let covers =
        |item: &Item| covers(item, uri) && drift_state.admits_uri(item.source as usize, uri);
    // The source does not depend on the caller, who could otherwise read the URI from another one.
    let first = |form, is_it: &dyn Fn(&Item) -> bool| {
        let found = scope.catalog.items.iter().position(is_it)?;
        Some((found as u32, form))
    };
    let (at, form) = first(ReadForm::Resource, &is_resource)
        .or_else(|| first(ReadForm::Live, &is_listed))
        .or_else(|| first(ReadForm::Template, &covers))?;
    let item = scope.catalog.item(at);
    // Rules about arguments apply to the argument of a live entry, not to a URI.
    let called = (form == ReadForm::Live).then_some(at);
    let caller = &snapshot.caller;
    let may_read = scope.admits(item.entry)
        && caller.may_read(&snapshot.view, scope.catalog, item.source, uri, called);
    may_read.then_some((at, form))
}

/// Lists the served items of a kind that exist for the caller, in the order of their paths, then of their URIs.
pub(crate) fn list(snapshot: &Snapshot, kind: ItemKind) -> Vec<ListedItem> {
    let (scope, drift_state) = (snapshot.scope(), &snapshot.core.fleet.drift_state);
    let mut items = Vec::new();
    for item in listed(scope).filter(|item| item.kind == kind) {
        let path = scope.catalog.entry(item.entry).path;
        if item.is_live() {
            let list = drift_state.live.get(item.source as usize);
            let listed = list.iter().flat_map(|list| list.iter());
            items.extend(listed.map(|(uri, json)| ListedItem {
                path,
                uri: Some(Arc::clone(uri)),
                json: Arc::clone(json),
            }));
        } else {
            items.push(ListedItem {
                path,
                uri: None,
                json: format!("{{{}}}", scope.catalog.text(item.list_head)).into(),
            });
        }
    }
    items.sort_by(|one, other| one.place().cmp(&other.place()));
    items
}

impl Scope<'_> {
    /// Adds the resources that the source of an entry lists now to the description of the entry. Its closing brace is
    /// still missing.
    pub(crate) fn push_live(&self, tool: &Item, description: &mut String) {
        let Some(list) = self.drift_state.live.get(tool.source as usize) else {
            let message =
                "the source has not listed its resources yet; describe the entry again later";
            description.push_str(&format!(",\"resources_unknown\":\"{message}\""));
            return;
        };
        let (mut shown, mut bytes) = (Vec::new(), 0);
        for (_, json) in list.iter().take(MAX_DESCRIBED) {
            let resource = shown_resource(json).to_string();
            bytes += resource.len();
            if bytes > MAX_DESCRIBED_BYTES {
                break;
            }
            shown.push(resource);
        }
        let more = list.len() - shown.len();
        description.push_str(",\"resources\":[");
        description.push_str(&shown.join(","));
        description.push(']');
        if more > 0 {
            description.push_str(&format!(",\"more\":{more}"));
        }
        description.push_str(",\"reviewed\":false");
    }
}

/// Returns the members of a resource for a description, with short texts.
fn shown_resource(json: &str) -> Value {
    let resource = broker_model::json::parse(json).unwrap_or_default();
    let members = resource.as_object().into_iter().flatten();
    let shown = members.filter_map(|(name, value)| {
        let is_shown = SHOWN_MEMBERS.contains(&name.as_str());
        let text = string_text(value).filter(|_| is_shown)?;
        let text = match name.as_str() {
            "uri" => text.to_owned(),
            _ => text.chars().take(MAX_TEXT_CHARS).collect(),
        };
        Some((name.clone(), Value::String(text)))
    });
    Value::Object(shown.collect())
}

/// Whether an entry is a template that covers a URI.
pub(crate) fn covers(item: &Item, uri: &str) -> bool {
    let literal = item.id.split('{').next().unwrap_or_default();
    // The template is read only if its beginning fits.
    item.kind == ItemKind::Template
        && uri.starts_with(literal)
        && UriTemplate::parse(item.id).is_ok_and(|template| template.covers(uri))
}

/// Returns the served tools and other things that exist for the caller.
fn listed(scope: Scope<'_>) -> impl Iterator<Item = &'static Item> {
    let tools = scope.catalog.items.iter().zip(0..);
    tools
        .filter(move |(tool, at)| scope.view.is_served(*at) && scope.admits(tool.entry))
        .map(|(tool, _)| tool)
}

//! Prompts, templates and resources: their lists, and the entry that a name or a URI names.

use std::sync::Arc;

use broker_model::CallCode;
use broker_model::item::ItemKind;
use broker_model::json::string_text;
use broker_model::text::shown_line;
use broker_model::uri_template::UriTemplate;
use serde_json::Value;

use crate::Core;
use crate::catalog::Item;
use crate::errors::error::CoreError;
use crate::identity::Identity;
use crate::interface::ToolItem;
use crate::listing::scope::Scope;

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

/// The entry that serves a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadableUri {
    /// The path of the entry.
    pub path: &'static str,
    /// The path of its source.
    pub source: &'static str,
    /// The form of the entry's read.
    pub form: ReadForm,
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

impl Core {
    /// Lists the prompts that exist for the caller, in the order of their paths. Does not contact a server.
    pub fn list_prompts(&self, identity: &Identity) -> Vec<ListedItem> {
        self.list_items(identity, ItemKind::Prompt)
    }

    /// Lists the resources that exist for the caller, in the order of their paths, then of their URIs. Does not contact
    /// a server.
    pub fn list_resources(&self, identity: &Identity) -> Vec<ListedItem> {
        self.list_items(identity, ItemKind::Resource)
    }

    /// Lists the templates of resources that exist for the caller, in the order of their paths. Does not contact a
    /// server.
    pub fn list_templates(&self, identity: &Identity) -> Vec<ListedItem> {
        self.list_items(identity, ItemKind::Template)
    }

    /// Whether prompts exist for the caller, withdrawn ones included.
    pub fn has_prompts(&self, identity: &Identity) -> bool {
        let is_prompt = |tool: &Item| tool.kind == ItemKind::Prompt;
        self.find_item(identity, is_prompt).is_some()
    }

    /// Whether resources or templates exist for the caller, withdrawn ones included.
    pub fn has_resources(&self, identity: &Identity) -> bool {
        let is_one = |item: &Item| match item.kind {
            ItemKind::Resource | ItemKind::Template => true,
            ItemKind::Tool | ItemKind::Prompt => false,
        };
        self.find_item(identity, is_one).is_some()
    }

    /// Whether a source whose resources the caller may read has not been compared yet at this start, so that its
    /// resources are not known.
    pub fn awaits_resources(&self, identity: &Identity) -> bool {
        let inner = self.inner();
        let state = &inner.drift_state;
        let is_awaited =
            |tool: &Item| tool.is_live() && !state.gate.is_settled(tool.source as usize);
        self.find_item(identity, is_awaited).is_some()
    }

    /// Finds the prompt with this name. Does not contact a server.
    ///
    /// # Errors
    ///
    /// `path_not_found` if no such prompt exists for the caller.
    pub fn lookup_prompt(
        &self,
        identity: &Identity,
        name: &str,
    ) -> Result<ToolItem, Box<CoreError>> {
        let is_prompt = |item: &Item| item.kind == ItemKind::Prompt && item.id == name;
        let found = self.find_item(identity, is_prompt);
        found.ok_or_else(|| no_prompt(name))
    }

    /// Finds the template with this text. Does not contact a server.
    ///
    /// # Errors
    ///
    /// `path_not_found` if no such template exists for the caller.
    pub fn lookup_template(
        &self,
        identity: &Identity,
        template: &str,
    ) -> Result<ToolItem, Box<CoreError>> {
        let is_template = |item: &Item| item.kind == ItemKind::Template && item.id == template;
        let found = self.find_item(identity, is_template);
        found.ok_or_else(|| no_template(template))
    }

    /// Returns the entry that serves a URI: the locked resource, else the entry of a source that lists the URI now,
    /// else a template that covers it. Does not contact a server.
    ///
    /// # Errors
    ///
    /// `path_not_found` unless there is one, and the caller may use every entry of this source that the URI may belong
    /// to.
    pub fn lookup_resource(
        &self,
        identity: &Identity,
        uri: &str,
    ) -> Result<ReadableUri, Box<CoreError>> {
        let found = self.find_readable(identity, uri);
        found.ok_or_else(|| no_resource(uri))
    }

    fn find_readable(&self, identity: &Identity, uri: &str) -> Option<ReadableUri> {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        let scope = inner.scope(&view, &caller);
        let is_resource =
            |item: &Item| item.kind == ItemKind::Resource && item.id == uri && !item.is_live();
        let is_listed = |tool: &Item| {
            let source = tool.source as usize;
            let list = tool.is_live().then(|| inner.drift_state.live.of(source));
            list.flatten().is_some_and(|list| list.has(uri))
        };
        let covers = |tool: &Item| {
            covers(tool, uri) && inner.drift_state.admits_uri(tool.source as usize, uri)
        };
        // The source does not depend on the caller, who could otherwise read the URI from another one.
        let first = |form, is_it: &dyn Fn(&Item) -> bool| {
            let found = scope.catalog.items.iter().position(is_it)?;
            Some((found as u32, form))
        };
        let (at, form) = first(ReadForm::Resource, &is_resource)
            .or_else(|| first(ReadForm::Live, &is_listed))
            .or_else(|| first(ReadForm::Template, &covers))?;
        let tool = scope.catalog.item(at);
        // Rules about arguments apply to the argument of a live entry, not to a URI.
        let called = (form == ReadForm::Live).then_some(at);
        let may_read = scope.admits(tool.entry)
            && caller.may_read(&view, scope.catalog, (tool.source, uri), called);
        may_read.then(|| ReadableUri {
            path: scope.catalog.entry(tool.entry).path,
            source: scope.catalog.sources[tool.source as usize].path,
            form,
        })
    }

    fn list_items(&self, identity: &Identity, kind: ItemKind) -> Vec<ListedItem> {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        let scope = inner.scope(&view, &caller);
        let mut items = Vec::new();
        for tool in listed(scope).filter(|tool| tool.kind == kind) {
            let path = scope.catalog.entry(tool.entry).path;
            if tool.is_live() {
                let list = inner.drift_state.live.of(tool.source as usize);
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
                    json: format!("{{{}}}", scope.catalog.text(tool.list_head)).into(),
                });
            }
        }
        items.sort_by(|one, other| one.place().cmp(&other.place()));
        items
    }

    fn find_item(&self, identity: &Identity, is_it: impl Fn(&Item) -> bool) -> Option<ToolItem> {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        let scope = inner.scope(&view, &caller);
        // Withdrawn ones are found: a call says why they are not served.
        let mut tools = (0..).zip(scope.catalog.items);
        let found = tools.find(|(_, tool)| is_it(tool) && scope.admits(tool.entry));
        found.map(|(at, _)| inner.item(at, view.withdrawn(at).is_some()))
    }
}

/// Returns the error of a URI that no entry of the caller serves.
pub(crate) fn no_resource(uri: &str) -> Box<CoreError> {
    let message = format!("no resource has the URI `{}`", shown_line(uri, 160));
    Box::new(CoreError::new(CallCode::PathNotFound, message).maybe_executed(false))
}

/// Returns the error of a template that does not exist for the caller.
fn no_template(template: &str) -> Box<CoreError> {
    let message = format!(
        "no template of resources is `{}`",
        shown_line(template, 160)
    );
    Box::new(CoreError::new(CallCode::PathNotFound, message).maybe_executed(false))
}

/// Returns the error of a prompt that does not exist for the caller.
pub(crate) fn no_prompt(name: &str) -> Box<CoreError> {
    let message = format!("no prompt has the name `{}`", shown_line(name, 160));
    Box::new(CoreError::new(CallCode::PathNotFound, message).maybe_executed(false))
}

impl Scope<'_> {
    /// Adds the resources that the source of an entry lists now to the description of the entry. Its closing brace is
    /// still missing.
    pub(crate) fn push_live(&self, tool: &Item, description: &mut String) {
        let Some(list) = self.drift_state.live.of(tool.source as usize) else {
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

//! Finds the item that a name of a client names. Contacts no server, and suggests no other name.

use std::borrow::Cow;

use broker_model::CallCode;
use broker_model::access::CallSafety;
use broker_model::item::ItemKind;
use broker_model::model_vendor::ModelVendor;
use broker_model::text::shown_line;

use crate::catalog::{EntryKind, HeaderParam, Item};
use crate::errors::error::CoreError;
use crate::item::ToolItem;
use crate::listing::heads::summary_in;
use crate::listing::items::{ReadForm, find_readable};
use crate::listing::paths;
use crate::listing::tools::{self, lists_output};
use crate::listing::vendor;
use crate::snapshot::Snapshot;

/// The name of an item, as a client gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// The path of an item of any kind.
    Path(&'a str),
    /// The flat name of a tool, or its name in lists for the vendor.
    Flat(&'a str, Option<ModelVendor>),
    /// The name of a prompt.
    Prompt(&'a str),
    /// The text of a template of resources.
    Template(&'a str),
    /// A URI. The locked resource serves it, else the entry of a source that lists the URI now, else a template that
    /// covers it; and only if the caller may use every entry of this source that the URI may belong to.
    Uri(&'a str),
}

/// An item that was found by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundItem {
    /// The item.
    pub item: ToolItem,
    /// The digest that was reviewed.
    pub digest: &'static str,
    /// The arguments that a client repeats as HTTP headers.
    pub header_params: &'static [HeaderParam],
    /// Whether lists have the schema of its results, so that clients expect structured content.
    pub lists_output: bool,
    /// Whether its server says that each call of it is a task.
    pub requires_task: bool,
    /// How the item reads the URI that named it.
    pub read_form: ReadForm,
    /// The members of every listing of it, without the closing brace.
    head: &'static str,
    /// The members of its list entry, without braces.
    list_head: &'static str,
}

/// A tool that a client calls by its own name: what a call has to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatTool {
    /// Its path.
    pub path: &'static str,
    /// The arguments that a client repeats as HTTP headers.
    pub header_params: &'static [HeaderParam],
    /// Whether lists have the schema of its results.
    pub lists_output: bool,
    /// Whether its server says that each call of it is a task.
    pub requires_task: bool,
}

impl From<FoundItem> for FlatTool {
    fn from(found: FoundItem) -> Self {
        Self {
            path: found.item.path,
            header_params: found.header_params,
            lists_output: found.lists_output,
            requires_task: found.requires_task,
        }
    }
}

impl FoundItem {
    /// Returns its summary as plain text.
    pub fn summary(&self) -> Cow<'static, str> {
        summary_in(self.head)
    }

    /// Returns the effects that a call may have, by the reviewed annotations.
    pub fn safety(&self) -> CallSafety {
        tools::safety(self.item.kind, self.list_head)
    }
}

impl Snapshot {
    /// Returns an item by its index.
    pub(crate) fn item(&self, at: u32) -> ToolItem {
        let is_withdrawn = self.view.withdrawn(at).is_some();
        ToolItem::new(self.core.catalog, at, is_withdrawn)
    }

    /// Finds the item with this name.
    ///
    /// # Errors
    ///
    /// `path_not_found` if no such item exists for the caller, `path_is_node` at a node.
    pub(crate) fn look_up(&self, name: Name<'_>) -> Result<FoundItem, Box<CoreError>> {
        let scope = self.scope();
        let by_id = |kind, id: &str| self.find(|item| item.kind == kind && item.id == id);
        let (at, form) = match name {
            Name::Path(path) => {
                let found = scope.catalog.find(path).filter(|at| scope.admits(*at));
                let entry = found.ok_or_else(|| not_found("tool or node is at", path))?;
                match scope.catalog.entry(entry).kind {
                    EntryKind::Item(at) => (at, ReadForm::Resource),
                    EntryKind::Node { .. } => return Err(paths::is_node(scope, entry)),
                }
            }
            Name::Flat(name, vendor) => {
                let changed = || vendor.and_then(|vendor| vendor::find(scope, vendor, name));
                let at = tools::find(scope, name).or_else(changed);
                let at = at.ok_or_else(|| not_found("tool has the name", name))?;
                (at, ReadForm::Resource)
            }
            Name::Prompt(name) => {
                let at = by_id(ItemKind::Prompt, name);
                (at.ok_or_else(|| no_prompt(name))?, ReadForm::Resource)
            }
            Name::Template(template) => {
                let at = by_id(ItemKind::Template, template);
                let at = at.ok_or_else(|| not_found("template of resources is", template))?;
                (at, ReadForm::Template)
            }
            Name::Uri(uri) => find_readable(self, uri).ok_or_else(|| no_resource(uri))?,
        };
        Ok(self.found(at, form))
    }

    fn found(&self, at: u32, read_form: ReadForm) -> FoundItem {
        let catalog = self.core.catalog;
        let item = catalog.item(at);
        let has_output = item.listed.is_some_and(|listed| listed.output.is_some());
        FoundItem {
            item: self.item(at),
            digest: item.digest,
            header_params: item.header_params,
            lists_output: has_output && lists_output(&self.terms.settings[at as usize]),
            requires_task: item.requires_task,
            read_form,
            head: catalog.text(catalog.entry(item.entry).head),
            list_head: catalog.text(item.list_head),
        }
    }

    /// Finds the first item of this kind that exists for the caller. Withdrawn ones are found: a call says why they are
    /// not served.
    fn find(&self, is_it: impl Fn(&Item) -> bool) -> Option<u32> {
        let scope = self.scope();
        let mut items = (0..).zip(scope.catalog.items);
        let found = items.find(|(_, item)| is_it(item) && scope.admits(item.entry));
        found.map(|(at, _)| at)
    }

    /// Returns the items of every kind that exist for the caller, in the order of their paths.
    pub(crate) fn items(&self) -> Vec<ToolItem> {
        let scope = self.scope();
        let items = (0..).zip(scope.catalog.items);
        let admitted = items.filter(|(_, item)| scope.admits(item.entry));
        admitted.map(|(at, _)| self.item(at)).collect()
    }

    /// Whether a source whose resources the caller may read has not been compared yet at this start, so that its
    /// resources are not known.
    pub(crate) fn awaits_resources(&self) -> bool {
        let gate = &self.core.fleet.drift_state.gate;
        let is_awaited = |item: &Item| item.is_live() && !gate.is_settled(item.source as usize);
        self.find(is_awaited).is_some()
    }
}

fn not_found(relation: &str, name: &str) -> Box<CoreError> {
    let message = format!("no {relation} `{}`", shown_line(name, 160));
    Box::new(CoreError::new(CallCode::PathNotFound, message).maybe_executed(false))
}

/// Returns the error of a URI that no entry of the caller serves.
pub(crate) fn no_resource(uri: &str) -> Box<CoreError> {
    not_found("resource has the URI", uri)
}

/// Returns the error of a prompt that does not exist for the caller.
pub(crate) fn no_prompt(name: &str) -> Box<CoreError> {
    not_found("prompt has the name", name)
}

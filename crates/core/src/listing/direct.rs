//! The tools under their flat names: the pages of `tools/list`, and the tool that a flat name names.

use std::borrow::Cow;

use broker_config::RenderMode;
use broker_model::access::{CallSafety, Hints};
use broker_model::digest::etag;
use broker_model::item::ItemKind;
use broker_model::model_vendor::ModelVendor;
use broker_schema::vendor_form;
use serde::Deserialize;
use serde_json::Value;

use crate::Core;
use crate::admission::NarrowedArgs;
use crate::catalog::{Catalog, EntryKind, HeaderParam, Item};
use crate::identity::Identity;
use crate::listing::scope::Scope;
use crate::listing::vendor::{self, EntryParts};
use crate::sources::setup::ToolSettings;

/// A tool that was found by its flat name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatTool {
    /// Its path.
    pub path: &'static str,
    /// The arguments that a client repeats as HTTP headers.
    pub header_params: &'static [HeaderParam],
    /// Whether lists have the schema of its results, so that clients expect structured content.
    pub lists_output: bool,
}

/// A tool with what a call of it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallableTool {
    /// Its flat name.
    pub name: &'static str,
    /// Its path.
    pub path: &'static str,
    /// Its description; empty if it is absent.
    pub description: String,
    /// The schema of its arguments. The caller must match it.
    pub input_schema: Cow<'static, str>,
    /// Whether lists without a vendor can contain it.
    pub listable: bool,
}

impl CallableTool {
    /// Whether lists within the limits of `vendor` can contain it.
    pub fn is_listable(&self, vendor: Option<ModelVendor>) -> bool {
        let accepts = |vendor| vendor_form(&self.input_schema, vendor).is_ok();
        self.listable && vendor.is_none_or(accepts)
    }
}

/// The members of a list entry that are read at run time.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ListHead {
    description: Option<String>,
    annotations: Option<Value>,
}

/// A part of the list of all tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPage {
    /// A JSON array of `{"name":…,…,"inputSchema":…,"outputSchema":…}`.
    pub tools: Vec<u8>,
    /// The flat name of its last tool, if more follow. It is the name in the catalog also in a list for a vendor.
    pub last: Option<&'static str>,
}

impl Core {
    /// Finds the tool with this flat name, if it exists for the caller.
    pub fn find_flat(&self, identity: &Identity, name: &str) -> Option<FlatTool> {
        self.find_listed(identity, None, name)
    }

    /// Finds the tool with this flat name, or with this name in lists for `vendor`, if it exists for the caller.
    pub fn find_listed(
        &self,
        identity: &Identity,
        vendor: Option<ModelVendor>,
        name: &str,
    ) -> Option<FlatTool> {
        let inner = self.inner();
        let (view, settings) = (inner.drift_state.view.load(), inner.settings.load());
        let caller = inner.caller(identity);
        describe(inner.scope(&view, &caller), &settings, vendor, name)
    }

    /// Returns the served tools that exist for the caller as entries of `tools/list`, in the order of their paths: at
    /// most `max_tools` in about `max_bytes`, but at least one if any is left. `after` is the flat name of the last
    /// tool of the previous page, which may be withdrawn since; `None` if no such tool exists. All pages together are
    /// within the limits of `vendor`.
    pub fn direct_tools(
        &self,
        identity: &Identity,
        vendor: Option<ModelVendor>,
        after: Option<&str>,
        max_tools: usize,
        max_bytes: usize,
    ) -> Option<ToolPage> {
        let inner = self.inner();
        let (view, settings) = (inner.drift_state.view.load(), inner.settings.load());
        let caller = inner.caller(identity);
        let scope = inner.scope(&view, &caller);
        page(scope, &settings, vendor, after, max_tools, max_bytes)
    }

    /// Finds the tool at this path, if it exists for the caller.
    pub fn find_tool(&self, identity: &Identity, path: &str) -> Option<FlatTool> {
        let inner = self.inner();
        let (view, settings) = (inner.drift_state.view.load(), inner.settings.load());
        let caller = inner.caller(identity);
        at_path(inner.scope(&view, &caller), &settings, path)
    }

    /// Returns the served tools that exist for the caller, in the order of their paths.
    pub fn callable_tools(&self, identity: &Identity) -> Vec<CallableTool> {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        all(inner.scope(&view, &caller))
    }

    /// Returns the entity tag of a text that was made for the caller. Where callers may see different entries, callers
    /// of other admission classes get other tags for the same text.
    pub fn entity_tag(&self, identity: &Identity, text: &[u8]) -> String {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        inner.scope(&view, &caller).etag_of(etag(text))
    }

    /// Returns the served tools of these flat names that exist for the caller, as entries of `tools/list` within the
    /// limits of `vendor`, each with its flat name, in the given order.
    pub fn listed_tools<'n>(
        &self,
        identity: &Identity,
        vendor: Option<ModelVendor>,
        names: impl Iterator<Item = &'n str>,
    ) -> Vec<(&'static str, String)> {
        let inner = self.inner();
        let (view, settings) = (inner.drift_state.view.load(), inner.settings.load());
        let caller = inner.caller(identity);
        let scope = inner.scope(&view, &caller);
        names
            .filter_map(|name| listed(scope, &settings, vendor, name))
            .collect()
    }

    /// Returns the effects that a call of the tool at a path may have, by its reviewed annotations; `None` if the path
    /// names no tool that exists for the caller.
    pub fn call_safety(&self, identity: &Identity, path: &str) -> Option<CallSafety> {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        let (scope, catalog) = (inner.scope(&view, &caller), inner.catalog);
        let at = catalog.find(path).filter(|at| scope.admits(*at))?;
        match catalog.entry(at).kind {
            EntryKind::Item(tool) => Some(safety(catalog, catalog.item(tool))),
            EntryKind::Node { .. } => None,
        }
    }
}

/// Finds the index of the tool that a flat name names, if it exists for the caller.
pub(crate) fn find(scope: Scope<'_>, name: &str) -> Option<u32> {
    let found = scope.catalog.find_flat(name);
    found.filter(|at| scope.admits(scope.catalog.item(*at).entry))
}

/// Returns the tool with a flat name, or with a name in lists for a vendor, if it exists for the caller.
pub(crate) fn describe(
    scope: Scope<'_>,
    settings: &[ToolSettings],
    vendor: Option<ModelVendor>,
    name: &str,
) -> Option<FlatTool> {
    let changed = || vendor.and_then(|vendor| vendor::find(scope, vendor, name));
    let at = find(scope, name).or_else(changed)?;
    Some(flat_tool(scope, settings, at))
}

/// Returns the tool at a path, if it exists for the caller.
pub(crate) fn at_path(scope: Scope<'_>, settings: &[ToolSettings], path: &str) -> Option<FlatTool> {
    let entry = scope.catalog.find(path).filter(|at| scope.admits(*at))?;
    match scope.catalog.entry(entry).kind {
        EntryKind::Item(tool) if scope.catalog.item(tool).kind == ItemKind::Tool => {
            Some(flat_tool(scope, settings, tool))
        }
        _ => None,
    }
}

fn flat_tool(scope: Scope<'_>, settings: &[ToolSettings], at: u32) -> FlatTool {
    let tool = scope.catalog.item(at);
    let has_output = tool.listed.is_some_and(|listed| listed.output.is_some());
    FlatTool {
        lists_output: has_output && lists_output(&settings[at as usize]),
        path: scope.catalog.entry(tool.entry).path,
        header_params: tool.header_params,
    }
}

/// Returns the served tools that exist for the caller, in the order of their paths.
pub(crate) fn all(scope: Scope<'_>) -> Vec<CallableTool> {
    let tools = 0..scope.catalog.items.len() as u32;
    let served = tools.filter(|at| {
        let tool = scope.catalog.item(*at);
        tool.kind == ItemKind::Tool && scope.view.is_served(*at) && scope.admits(tool.entry)
    });
    served.map(|at| called(scope, at)).collect()
}

/// Returns a tool of the catalog with what a call of it needs.
pub(crate) fn called(scope: Scope<'_>, at: u32) -> CallableTool {
    let tool = scope.catalog.item(at);
    let narrowed = scope.caller.narrowed(at);
    let input = tool.listed.map_or(tool.args_schema, |listed| listed.input);
    CallableTool {
        name: tool.flat_name,
        path: scope.catalog.entry(tool.entry).path,
        description: head(scope.catalog, tool).description.unwrap_or_default(),
        input_schema: narrowed_schema(scope.catalog.text(input), narrowed.as_ref()),
        listable: tool.listed.is_some(),
    }
}

/// Returns the effects that a call of a tool may have, by its reviewed annotations.
pub(crate) fn safety(catalog: &Catalog, tool: &'static Item) -> CallSafety {
    if tool.kind != ItemKind::Tool {
        return CallSafety::Read;
    }
    CallSafety::of(Hints::of(head(catalog, tool).annotations.as_ref()))
}

/// Returns the members of a tool's entry besides name and schemas. The build wrote them as JSON.
fn head(catalog: &Catalog, tool: &'static Item) -> ListHead {
    let members = catalog.text(tool.list_head);
    let text = format!("{{{members}}}");
    // A number that `serde_json` refuses is in a member that is not read here.
    let exact = || serde_json::from_value(broker_model::json::parse(&text).ok()?).ok();
    let head = serde_json::from_str(&text).ok().or_else(exact);
    head.unwrap_or_default()
}

/// Returns the entry of a tool in `tools/list`, if the tool can be listed and exists for the caller.
pub(crate) fn listed(
    scope: Scope<'_>,
    settings: &[ToolSettings],
    vendor: Option<ModelVendor>,
    name: &str,
) -> Option<(&'static str, String)> {
    let at = find(scope, name).filter(|at| scope.lists(*at))?;
    let entry = entry(scope, settings, vendor, at)?.concat();
    Some((scope.catalog.item(at).flat_name, entry))
}

/// Returns the tools after the one with the flat name `after`, in the order of their paths, up to the number of tools
/// that `vendor` allows. `None` if no such tool exists for the caller.
pub(crate) fn page(
    scope: Scope<'_>,
    settings: &[ToolSettings],
    vendor: Option<ModelVendor>,
    after: Option<&str>,
    max_tools: usize,
    max_bytes: usize,
) -> Option<ToolPage> {
    // The last tool of a page may be withdrawn since.
    let start = match after {
        Some(name) => find(scope, name)? + 1,
        None => 0,
    };
    let (mut tools, mut count, mut last) = (b"[".to_vec(), 0, None);
    for at in start..vendor::list_end(scope, vendor) {
        if !scope.lists(at) {
            continue;
        }
        let Some(parts) = entry(scope, settings, vendor, at) else {
            continue;
        };
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        // With the comma before it and the bracket at the end.
        let is_full = count >= max_tools || tools.len() + bytes + 2 > max_bytes;
        if last.is_some() && is_full {
            tools.push(b']');
            return Some(ToolPage { tools, last });
        }
        if last.is_some() {
            tools.push(b',');
        }
        for part in parts {
            tools.extend_from_slice(part.as_bytes());
        }
        count += 1;
        last = Some(scope.catalog.item(at).flat_name);
    }
    tools.push(b']');
    Some(ToolPage { tools, last: None })
}

/// Returns the text of a tool's entry, in parts; `None` if clients, or the vendor, do not accept it.
fn entry(
    scope: Scope<'_>,
    settings: &[ToolSettings],
    vendor: Option<ModelVendor>,
    at: u32,
) -> Option<[Cow<'static, str>; 9]> {
    let tool = scope.catalog.item(at);
    let listed = tool.listed?;
    let narrowed = scope.caller.narrowed(at);
    let parts = EntryParts {
        name: Cow::Borrowed(tool.flat_name),
        head: Cow::Borrowed(scope.catalog.text(tool.list_head)),
        input: narrowed_schema(scope.catalog.text(listed.input), narrowed.as_ref()),
    };
    let EntryParts { name, head, input } = match vendor {
        None => parts,
        Some(vendor) => vendor::adapted(vendor, parts)?,
    };
    let output = listed
        .output
        .filter(|_| lists_output(&settings[at as usize]));
    let output = output.map(|span| scope.catalog.text(span));
    Some([
        // A flat name needs no escapes.
        "{\"name\":\"".into(),
        name,
        if head.is_empty() { "\"" } else { "\"," }.into(),
        head,
        ",\"inputSchema\":".into(),
        input,
        output.map_or("", |_| ",\"outputSchema\":").into(),
        output.unwrap_or_default().into(),
        "}".into(),
    ])
}

/// Returns the schema of arguments that the caller must match.
fn narrowed_schema(own: &'static str, narrowed: Option<&NarrowedArgs>) -> Cow<'static, str> {
    match narrowed {
        Some(narrowed) => Cow::Owned(narrowed.apply(own)),
        None => Cow::Borrowed(own),
    }
}

/// Whether results have the structured content that the schema of the server promises: they are not rendered in another
/// form. A cut result lacks structured content, and says so.
pub(crate) const fn lists_output(settings: &ToolSettings) -> bool {
    matches!(settings.form, RenderMode::Json)
}

/// Whether other settings change an entry of a listed tool.
pub(crate) fn is_listed_otherwise(
    catalog: &Catalog,
    is_served: impl Fn(u32) -> bool,
    before: &[ToolSettings],
    after: &[ToolSettings],
) -> bool {
    let tools = catalog.items.iter().zip(0..);
    let mut pairs = tools.zip(before.iter().zip(after));
    pairs.any(|((tool, at), (before, after))| {
        let has_output = tool.listed.is_some_and(|listed| listed.output.is_some());
        has_output && lists_output(before) != lists_output(after) && is_served(at)
    })
}

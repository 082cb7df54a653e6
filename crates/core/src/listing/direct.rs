//! The tools under their flat names: the pages of `tools/list`, and the tool that a flat name names.

use std::borrow::Cow;

use broker_model::access::{CallSafety, Hints};
use broker_model::config::RenderMode;
use broker_model::digest::etag;
use broker_model::item::ItemKind;
use serde::Deserialize;
use serde_json::Value;

use crate::Core;
use crate::admission::NarrowedArgs;
use crate::catalog::{Catalog, EntryKind, HeaderParam, Tool};
use crate::identity::Identity;
use crate::listing::scope::Scope;
use crate::sources::setup::ToolSettings;

/// A tool that was found by its flat name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatTool {
    /// Its path.
    pub path: &'static str,
    /// The arguments that a client repeats as HTTP headers.
    pub header_params: &'static [HeaderParam],
}

/// A tool with what a call of it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallableTool {
    /// Its flat name.
    pub name: &'static str,
    /// Its path.
    pub path: &'static str,
    /// Its description; empty if it has none.
    pub description: String,
    /// The schema of its arguments, which the caller must match.
    pub input_schema: Cow<'static, str>,
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
    /// The flat name of its last tool, if more follow.
    pub last: Option<&'static str>,
}

impl Core {
    /// The tool at this path, if it exists for the caller.
    pub fn find_tool(&self, identity: &Identity, path: &str) -> Option<FlatTool> {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        at_path(inner.scope(&view, &caller), path)
    }

    /// The served tools that exist for the caller, in the order of their paths.
    pub fn callable_tools(&self, identity: &Identity) -> Vec<CallableTool> {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        all(inner.scope(&view, &caller))
    }

    /// The entity tag of a text that was made for the caller. Where callers may see different entries, callers of other
    /// admission classes get other tags for the same text.
    pub fn entity_tag(&self, identity: &Identity, text: &[u8]) -> String {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        inner.scope(&view, &caller).etag_of(etag(text))
    }

    /// The served tools of these flat names that exist for the caller, as entries of `tools/list`, each with its flat
    /// name, in the given order.
    pub fn listed_tools<'n>(
        &self,
        identity: &Identity,
        names: impl Iterator<Item = &'n str>,
    ) -> Vec<(&'static str, String)> {
        let inner = self.inner();
        let (view, settings) = (inner.drift_state.view.load(), inner.settings.load());
        let caller = inner.caller(identity);
        let scope = inner.scope(&view, &caller);
        names
            .filter_map(|name| listed(scope, &settings, name))
            .collect()
    }

    /// The effects that a call of the tool at a path may have, by its reviewed annotations; `None` if the path names no tool that
    /// exists for the caller.
    pub fn call_safety(&self, identity: &Identity, path: &str) -> Option<CallSafety> {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        let (scope, catalog) = (inner.scope(&view, &caller), inner.catalog);
        let at = catalog.find(path).filter(|at| scope.admits(*at))?;
        match catalog.entry(at).kind {
            EntryKind::Tool(tool) => Some(safety(catalog, catalog.tool(tool))),
            EntryKind::Node { .. } => None,
        }
    }
}

/// The index of the tool that a flat name names, if it exists for the caller.
pub(crate) fn find(scope: Scope<'_>, name: &str) -> Option<u32> {
    let found = scope.catalog.find_flat(name);
    found.filter(|at| scope.admits(scope.catalog.tool(*at).entry))
}

/// The tool with a flat name, if it exists for the caller.
pub(crate) fn describe(scope: Scope<'_>, name: &str) -> Option<FlatTool> {
    find(scope, name).map(|at| flat_tool(scope, at))
}

/// The tool at a path, if it exists for the caller.
pub(crate) fn at_path(scope: Scope<'_>, path: &str) -> Option<FlatTool> {
    let entry = scope.catalog.find(path).filter(|at| scope.admits(*at))?;
    match scope.catalog.entry(entry).kind {
        EntryKind::Tool(tool) if scope.catalog.tool(tool).kind() == ItemKind::Tool => {
            Some(flat_tool(scope, tool))
        }
        _ => None,
    }
}

fn flat_tool(scope: Scope<'_>, at: u32) -> FlatTool {
    let tool = scope.catalog.tool(at);
    FlatTool {
        path: scope.catalog.entry(tool.entry).path,
        header_params: tool.header_params,
    }
}

/// The served tools that exist for the caller, in the order of their paths.
pub(crate) fn all(scope: Scope<'_>) -> Vec<CallableTool> {
    let tools = 0..scope.catalog.tools.len() as u32;
    let served = tools.filter(|at| {
        let tool = scope.catalog.tool(*at);
        tool.kind() == ItemKind::Tool && scope.view.is_served(*at) && scope.admits(tool.entry)
    });
    served.map(|at| called(scope, at)).collect()
}

/// A tool of the catalog with what a call of it needs.
pub(crate) fn called(scope: Scope<'_>, at: u32) -> CallableTool {
    let tool = scope.catalog.tool(at);
    let narrowed = scope.caller.narrowed(at);
    CallableTool {
        name: tool.flat_name,
        path: scope.catalog.entry(tool.entry).path,
        description: head(scope.catalog, tool).description.unwrap_or_default(),
        input_schema: listed_schema(scope.catalog.text(tool.args_schema), narrowed.as_ref()),
    }
}

/// The effects that a call of a tool may have, by its reviewed annotations.
pub(crate) fn safety(catalog: &Catalog, tool: &'static Tool) -> CallSafety {
    if tool.kind() != ItemKind::Tool {
        return CallSafety::Read;
    }
    CallSafety::of(Hints::of(head(catalog, tool).annotations.as_ref()))
}

/// The members of a tool's entry besides name and schemas. The build wrote them as JSON.
fn head(catalog: &Catalog, tool: &'static Tool) -> ListHead {
    let members = catalog.text(tool.list_head);
    let text = format!("{{{members}}}");
    // A number that `serde_json` refuses is in a member that is not read here.
    let exact = || serde_json::from_value(broker_model::json::parse(&text).ok()?).ok();
    let head = serde_json::from_str(&text).ok().or_else(exact);
    head.unwrap_or_default()
}

/// The entry of a tool in `tools/list`, if the tool is served and exists for the caller.
pub(crate) fn listed(
    scope: Scope<'_>,
    settings: &[ToolSettings],
    name: &str,
) -> Option<(&'static str, String)> {
    let at = find(scope, name).filter(|at| scope.view.is_served(*at))?;
    let tool = scope.catalog.tool(at);
    let narrowed = scope.caller.narrowed(at);
    let schema = listed_schema(scope.catalog.text(tool.args_schema), narrowed.as_ref());
    let entry = parts(scope.catalog, tool, &schema, &settings[at as usize]).concat();
    Some((tool.flat_name, entry))
}

/// The tools after the one with the flat name `after`, in the order of their paths. `None` if there is no such
/// tool for the caller.
pub(crate) fn page(
    scope: Scope<'_>,
    settings: &[ToolSettings],
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
    for at in start..scope.catalog.tools.len() as u32 {
        let tool = scope.catalog.tool(at);
        if !scope.view.is_served(at) || !scope.admits(tool.entry) || tool.flat_name.is_empty() {
            continue;
        }
        let narrowed = scope.caller.narrowed(at);
        let schema = listed_schema(scope.catalog.text(tool.args_schema), narrowed.as_ref());
        let parts = parts(scope.catalog, tool, &schema, &settings[at as usize]);
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
        last = Some(tool.flat_name);
    }
    tools.push(b']');
    Some(ToolPage { tools, last: None })
}

/// The text of a tool's entry, in parts.
fn parts<'a>(
    catalog: &Catalog,
    tool: &'static Tool,
    schema: &'a str,
    settings: &ToolSettings,
) -> [&'a str; 9] {
    let head = catalog.text(tool.list_head);
    let output = tool.output_schema.filter(|_| lists_output(settings));
    let output = output.map(|span| catalog.text(span));
    [
        // A flat name needs no escapes.
        "{\"name\":\"",
        tool.flat_name,
        if head.is_empty() { "\"" } else { "\"," },
        head,
        ",\"inputSchema\":",
        schema,
        output.map_or("", |_| ",\"outputSchema\":"),
        output.unwrap_or_default(),
        "}",
    ]
}

/// The schema of arguments as clients require it: clients refuse a whole list because of a tool without a
/// schema, which the catalog has as `{}`. Arguments are always an object.
fn listed_schema(args_schema: &'static str, narrowed: Option<&NarrowedArgs>) -> Cow<'static, str> {
    let own = match args_schema {
        "{}" => r#"{"type":"object"}"#,
        schema => schema,
    };
    match narrowed {
        Some(narrowed) => Cow::Owned(narrowed.apply(own)),
        None => Cow::Borrowed(own),
    }
}

/// Whether results have the structured content that the schema of the server promises: they are neither cut
/// nor rendered in another form.
pub(crate) const fn lists_output(settings: &ToolSettings) -> bool {
    settings.limit.is_none() && matches!(settings.form, RenderMode::Json)
}

/// Whether other settings change an entry of a listed tool.
pub(crate) fn is_listed_otherwise(
    catalog: &Catalog,
    is_served: impl Fn(u32) -> bool,
    before: &[ToolSettings],
    after: &[ToolSettings],
) -> bool {
    let tools = catalog.tools.iter().zip(0..);
    let mut pairs = tools.zip(before.iter().zip(after));
    pairs.any(|((tool, at), (before, after))| {
        tool.output_schema.is_some() && lists_output(before) != lists_output(after) && is_served(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_without_a_schema_is_listed_with_one_of_an_object() {
        assert_eq!(listed_schema("{}", None), r#"{"type":"object"}"#);
        let own = r#"{"type":"object","properties":{}}"#;
        assert_eq!(listed_schema(own, None), own);
    }
}

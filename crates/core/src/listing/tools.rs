//! The tools as clients list and call them directly, under their flat names.

use std::borrow::Cow;

use broker_config::RenderMode;
use broker_model::access::{CallSafety, Hints};
use broker_model::item::ItemKind;
use broker_model::model_vendor::ModelVendor;
use broker_schema::vendor_form;
use serde::Deserialize;
use serde_json::Value;

use crate::admission::NarrowedArgs;
use crate::catalog::Catalog;
use crate::listing::scope::Scope;
use crate::listing::vendor::{self, EntryParts};
use crate::snapshot::Snapshot;
use crate::sources::tool_settings::ToolSettings;

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

/// The part of the tool list that a client asks for.
#[derive(Clone, Copy, Debug)]
pub struct ToolQuery<'a> {
    /// The vendor whose limits the list keeps.
    pub vendor: Option<ModelVendor>,
    /// The flat name of the last tool of the previous page. It may be withdrawn since.
    pub after: Option<&'a str>,
    /// The flat names of the only tools that are listed, in this order; `None` for all tools, in the order of their
    /// paths.
    pub names: Option<&'a [&'static str]>,
    /// Whether the schemas of results are left out: a call may have another result.
    pub without_output: bool,
    /// Whether each entry says that its calls may be tasks.
    pub task_support: bool,
    /// The maximum number of tools.
    pub max_tools: usize,
    /// The maximum bytes of the entries. A page has at least one tool if any is left.
    pub max_bytes: usize,
}

impl Default for ToolQuery<'_> {
    /// Returns the query for all tools, without the limits of a vendor.
    fn default() -> Self {
        Self {
            vendor: None,
            after: None,
            names: None,
            without_output: false,
            task_support: false,
            max_tools: usize::MAX,
            max_bytes: usize::MAX,
        }
    }
}

/// A part of the tool list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPage {
    /// Its tools.
    pub tools: Vec<ListedTool>,
    /// The flat name of the last tool of the page, if more follow. It is the name in the catalog also in a list for a
    /// vendor.
    pub last: Option<&'static str>,
}

/// A served tool as an entry of `tools/list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedTool {
    /// Its path.
    pub path: &'static str,
    /// Its flat name.
    pub name: &'static str,
    /// `{"name":…,…,"inputSchema":…,"outputSchema"?:…}`, in parts.
    json: [Cow<'static, str>; 10],
}

impl ToolPage {
    /// Returns its entries as one JSON array.
    pub fn json(&self) -> Vec<u8> {
        let bytes = self
            .tools
            .iter()
            .map(|tool| tool.bytes() + 1)
            .sum::<usize>();
        let mut out = Vec::with_capacity(bytes + 2);
        out.push(b'[');
        for (index, tool) in self.tools.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            tool.push_json(&mut out);
        }
        out.push(b']');
        out
    }
}

impl ListedTool {
    /// Returns the length of its JSON in bytes.
    fn bytes(&self) -> usize {
        self.json.iter().map(|part| part.len()).sum()
    }

    /// Appends its JSON.
    pub fn push_json(&self, out: &mut Vec<u8>) {
        for part in &self.json {
            out.extend_from_slice(part.as_bytes());
        }
    }
}

/// Finds the index of the tool that a flat name names, if it exists for the caller.
pub(crate) fn find(scope: Scope<'_>, name: &str) -> Option<u32> {
    let found = scope.catalog.find_flat(name);
    found.filter(|at| scope.admits(scope.catalog.item(*at).entry))
}

/// Returns the served tools that exist for the caller, in the order of their paths.
pub(crate) fn all_callable(scope: Scope<'_>) -> Vec<CallableTool> {
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
        description: head(scope.catalog.text(tool.list_head))
            .description
            .unwrap_or_default(),
        input_schema: narrowed_schema(scope.catalog.text(input), narrowed.as_ref()),
        listable: tool.listed.is_some(),
    }
}

/// Returns the effects that a call of an item may have, by its reviewed annotations.
pub(super) fn safety(kind: ItemKind, list_head: &str) -> CallSafety {
    match kind {
        ItemKind::Tool => CallSafety::from_hints(Hints::read(head(list_head).annotations.as_ref())),
        ItemKind::Prompt | ItemKind::Template | ItemKind::Resource => CallSafety::Read,
    }
}

/// Returns the members of a tool's entry besides name and schemas. The build wrote them as JSON.
fn head(members: &str) -> ListHead {
    let text = format!("{{{members}}}");
    // A number that `serde_json` refuses is in a member that is not read here.
    let exact = || serde_json::from_value(broker_model::json::parse(&text).ok()?).ok();
    let head = serde_json::from_str(&text).ok().or_else(exact);
    head.unwrap_or_default()
}

/// Returns a page of the tool list. `None` if no tool with the flat name `after` exists for the caller.
pub(crate) fn page(snapshot: &Snapshot, what: &ToolQuery<'_>) -> Option<ToolPage> {
    let (scope, settings) = (snapshot.scope(), &snapshot.terms.settings);
    if let Some(names) = what.names {
        let listed = names.iter().filter_map(|name| {
            let at = find(scope, name).filter(|at| scope.lists(*at))?;
            entry(scope, settings, what, at)
        });
        return Some(ToolPage {
            tools: listed.take(what.max_tools).collect(),
            last: None,
        });
    }
    // The last tool of a page may be withdrawn since.
    let start = match what.after {
        Some(name) => find(scope, name)? + 1,
        None => 0,
    };
    // Each entry has a comma or bracket around it.
    let (mut tools, mut bytes) = (Vec::<ListedTool>::new(), 1);
    for at in start..vendor::list_end(scope, what.vendor) {
        if !scope.lists(at) {
            continue;
        }
        let Some(tool) = entry(scope, settings, what, at) else {
            continue;
        };
        bytes += tool.bytes() + 1;
        let is_full = tools.len() >= what.max_tools || bytes > what.max_bytes;
        if let Some(last) = tools.last().filter(|_| is_full) {
            let last = Some(last.name);
            return Some(ToolPage { tools, last });
        }
        tools.push(tool);
    }
    Some(ToolPage { tools, last: None })
}

/// Returns a tool's entry; `None` if clients, or the vendor, do not accept it.
fn entry(
    scope: Scope<'_>,
    settings: &[ToolSettings],
    what: &ToolQuery<'_>,
    at: u32,
) -> Option<ListedTool> {
    let tool = scope.catalog.item(at);
    let listed = tool.listed?;
    let narrowed = scope.caller.narrowed(at);
    let parts = EntryParts {
        name: Cow::Borrowed(tool.flat_name),
        head: Cow::Borrowed(scope.catalog.text(tool.list_head)),
        input: narrowed_schema(scope.catalog.text(listed.input), narrowed.as_ref()),
    };
    let EntryParts { name, head, input } = match what.vendor {
        None => parts,
        Some(vendor) => vendor::adapted(vendor, parts)?,
    };
    let output = listed
        .output
        .filter(|_| !what.without_output && lists_output(&settings[at as usize]));
    let output = output.map(|span| scope.catalog.text(span));
    // The statement of the broker: a call of any tool can be its task.
    let task_support = match (what.task_support, tool.requires_task) {
        (false, _) => "",
        (true, false) => r#","execution":{"taskSupport":"optional"}"#,
        (true, true) => r#","execution":{"taskSupport":"required"}"#,
    };
    let json = [
        // A flat name needs no escapes.
        "{\"name\":\"".into(),
        name,
        if head.is_empty() { "\"" } else { "\"," }.into(),
        head,
        ",\"inputSchema\":".into(),
        input,
        output.map_or("", |_| ",\"outputSchema\":").into(),
        output.unwrap_or_default().into(),
        task_support.into(),
        "}".into(),
    ];
    Some(ListedTool {
        path: scope.catalog.entry(tool.entry).path,
        name: tool.flat_name,
        json,
    })
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

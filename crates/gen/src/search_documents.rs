//! The searched texts of the tools of a plan.

use broker_search::Document;
use serde_json::Value;

use crate::plan::{Entry, Plan, ToolEntry};

/// The documents of the tools, in the order of their paths.
pub fn search_documents<'a>(plan: &'a Plan<'_>) -> Vec<Document<'a>> {
    let entries = plan.entries.iter();
    entries
        .filter_map(|(path, entry)| match entry {
            Entry::Tool(tool) => Some(document(plan, path.as_str(), tool)),
            Entry::Node { .. } => None,
        })
        .collect()
}

fn document<'a>(plan: &'a Plan<'_>, path: &'a str, tool: &'a ToolEntry<'_>) -> Document<'a> {
    let raw = &tool.tool.raw;
    let text = |value: Option<&'a Value>| value.and_then(Value::as_str);
    let (nodes, leaf) = path.rsplit_once('/').unwrap_or_default();
    let server = text(plan.sources[tool.source].1.server_info.get("name"));
    let mut place: Vec<&str> = nodes.split('/').filter(|name| !name.is_empty()).collect();
    place.extend(server);
    let summary = tool.said.and_then(|said| said.summary.as_deref());
    // An alias is a name that the operator gave.
    let alias = (leaf != tool.tool.upstream_name).then_some(leaf);
    Document {
        name: &tool.tool.upstream_name,
        title: text(raw.get("title"))
            .or_else(|| text(raw.get("annotations").and_then(|it| it.get("title")))),
        description: tool.description(),
        schema: raw.get("inputSchema"),
        place,
        phrases: summary.into_iter().chain(alias).collect(),
        hints: tool.tool.search_hints.iter().map(String::as_str).collect(),
    }
}

//! The facts of tools by which access rules select them.

use broker_model::NodePath;
use broker_model::access::{Hints, ToolFacts};
use broker_model::item::readable_path;

use super::{Entry, Plan, ToolEntry};

/// Returns the facts of the tools of a plan, in its order.
pub fn tools_facts<'p>(plan: &'p Plan<'_>) -> Vec<ToolFacts<'p>> {
    let tools = plan.entries.iter().filter_map(|(path, entry)| match entry {
        Entry::Tool(tool) => Some(tool_facts(path, tool)),
        Entry::Node { .. } => None,
    });
    tools.collect()
}

/// Returns the facts of a tool: its path and its reviewed hints.
pub fn tool_facts<'p>(path: &'p NodePath, tool: &ToolEntry<'_>) -> ToolFacts<'p> {
    ToolFacts {
        path: path.as_str(),
        readable: readable_path(path.as_str(), &tool.tool.upstream_name),
        hints: Hints::read(tool.annotations().as_ref()),
    }
}

//! Flat names name one tool each, and differ from the names of the meta-tools.

use std::collections::BTreeMap;

use broker_config::Config;
use broker_model::flat_name::{flat_name, is_meta_tool};
use broker_model::item::ItemKind;
use broker_model::json::escape_token;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode, NodePath};

use super::{Clash, Entry, Plan, ToolEntry};

/// The maximum number of paths that one message names.
const MAX_NAMED: usize = 5;

/// A tool with its path.
type Named<'p> = (&'p NodePath, &'p ToolEntry<'p>);

/// Each flat name that a meta-tool or several tools have.
pub(super) fn clashes(config: &Config, plan: &Plan<'_>) -> Vec<Clash> {
    let mut tools: BTreeMap<String, Vec<Named<'_>>> = BTreeMap::new();
    for (path, entry) in &plan.entries {
        if let Entry::Tool(tool) = entry
            && tool.tool.kind() == ItemKind::Tool
        {
            let name = flat_name(path, config.mcp.max_name);
            tools.entry(name).or_default().push((path, tool));
        }
    }
    let problem = |(name, tools): (&String, &Vec<Named<'_>>)| {
        let message = match tools.as_slice() {
            tools if is_meta_tool(name) => format!(
                "{} the flat name `{name}`, which a meta-tool has",
                subject(tools)
            ),
            [_] | [] => return None,
            tools => format!("{} the same flat name, `{name}`", subject(tools)),
        };
        let last = tools.last()?;
        let part = |(_, tool): &Named<'_>| {
            let (source, _) = plan.sources[tool.source];
            (source.path.clone(), tool.tool.upstream_name.clone())
        };
        Some(Clash {
            parts: tools.iter().map(part).collect(),
            problem: config.place(at_alias(plan, *last, message)),
        })
    };
    tools.iter().filter_map(problem).collect()
}

/// The error at the place where the alias of a tool is, or would be.
fn at_alias(plan: &Plan<'_>, (path, tool): Named<'_>, message: String) -> Diagnostic {
    let (source, _) = plan.sources[tool.source];
    let name = &tool.tool.upstream_name;
    let has_alias = source.aliases.contains_key(name);
    let pointer = if has_alias {
        let name = escape_token(name);
        format!("{}/path_aliases/{name}", source.pointer)
    } else {
        source.pointer.clone()
    };
    let shown = shown_line(name, 100);
    let verb = if has_alias { "Change" } else { "Add" };
    let help = format!(
        "{verb} the alias of `{path}`: `\"{shown}\": \"…\"` in `path_aliases` of `{}`.",
        source.path
    );
    Diagnostic::error(DiagnosticCode::FlatNameClash, message)
        .at(pointer)
        .help(help)
}

/// The tools as the subject of a sentence, with its verb.
fn subject(tools: &[Named<'_>]) -> String {
    let shown = tools.iter().take(MAX_NAMED);
    let shown: Vec<_> = shown.map(|(path, _)| format!("`{path}`")).collect();
    match (shown.as_slice(), tools.len() - shown.len()) {
        ([one], _) => format!("the tool {one} has"),
        ([first, second], _) => format!("the tools {first} and {second} have"),
        (_, 0) => format!("the tools {} have", shown.join(", ")),
        (_, more) => format!("the tools {} and {more} more have", shown.join(", ")),
    }
}

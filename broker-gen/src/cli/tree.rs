//! `tree`: the tree of config and lock, one line per entry. Starts no server.

use std::collections::BTreeMap;
use std::path::Path;

use broker_build::build_script;
use broker_build::left_out_audits::shown;
use broker_build::plan::{self, Entry, Plan};
use broker_build::tables::{listing, summary};
use broker_model::exit::Exit;
use broker_model::flat_name::flat_name;
use broker_model::terminal::Text;
use broker_model::text::{counted, shown_line};
use broker_model::trust::HiddenBy;
use broker_model::{Diagnostic, NodePath, text};
use clap::Args;

use super::output;

/// Maximum length of a summary in a line.
const SUMMARY: usize = 120;
/// The text in place of the summary of a tool that exists for no caller.
const FOR_PAGES_ONLY: &str =
    "(no caller sees it: `_meta.ui.visibility` names pages of the server only)";

#[derive(Debug, Args)]
pub(super) struct TreeArgs {
    #[command(flatten)]
    file: super::ConfigFile,
    /// Show hidden tools as well, each with the reason.
    #[arg(long)]
    hidden: bool,
    /// Show paths, and the flat name of each tool beside its path.
    #[arg(long, conflicts_with = "hidden")]
    flat: bool,
}

pub(super) fn run(args: &TreeArgs) -> Exit {
    match render(args) {
        Ok(text) => {
            output::data(&text);
            Exit::Ok
        }
        Err(problems) => output::diagnostics(&problems),
    }
}

/// Returns the tree of a config and its lock.
pub(super) fn plain_tree(config: &Path) -> Result<Text, Vec<Diagnostic>> {
    render(&TreeArgs {
        file: super::ConfigFile {
            config: config.to_owned(),
        },
        hidden: false,
        flat: false,
    })
}

fn render(args: &TreeArgs) -> Result<Text, Vec<Diagnostic>> {
    let file = &args.file.config;
    let (config, lock) = build_script::read(file, &file.to_string_lossy())?;
    let plan = plan::plan(&config, &lock.sources)?;
    let mut lines = Vec::new();
    if args.flat {
        let paths = plan.entries.iter();
        let paths = paths.filter(|(_, entry)| matches!(entry, Entry::Tool(_)));
        let name = |path| flat_name(path, config.mcp.max_name);
        lines.extend(paths.map(|(path, _)| (path.to_string(), name(path))));
    } else {
        walk(&plan, &NodePath::root(), 0, args.hidden, &mut lines);
    }
    let width = lines
        .iter()
        .map(|(name, _)| name.chars().count())
        .max()
        .unwrap_or(0);
    let mut out = Text::new();
    for (name, summary) in &lines {
        let line = format!("{name:width$}  {summary}");
        out.push(text!("{}\n", line.trim_end()));
    }
    for unlisted in listing::unlisted(&plan) {
        let what = match unlisted.whole {
            true => "is listed in the mode `meta` only",
            false => "is listed without its `outputSchema`",
        };
        out.push(text!("{} {}: {}\n", unlisted.path, what, unlisted.reason));
    }
    for part in lock.left_out_parts() {
        out.push(text!("{} {} ({})\n", shown(&part), part.state(), part.code));
    }
    let tools = |of: fn(&broker_model::lock::LockedSource) -> usize| -> usize {
        lock.sources.iter().map(of).sum()
    };
    let exposed = tools(|source| source.exposed.len());
    let hidden = tools(|source| source.hidden.len());
    let sources = lock.sources.len();
    out.push(text!(
        "{} of {}, {} hidden, lock {}\n",
        counted(exposed, "tool"),
        counted(sources, "source"),
        hidden,
        lock.root_digest()
    ));
    Ok(out)
}

fn walk(
    plan: &Plan<'_>,
    path: &NodePath,
    depth: usize,
    hidden: bool,
    lines: &mut Vec<(String, String)>,
) {
    let indent = "  ".repeat(depth);
    match &plan.entries[path] {
        Entry::Tool(tool) => {
            let leaf = path.leaf();
            let name = &tool.tool.upstream_name;
            let origin = if leaf == name {
                String::new()
            } else {
                format!(" (`{}`)", shown_line(name, 100))
            };
            let summary = match tool.is_for_pages_only() {
                true => FOR_PAGES_ONLY.to_owned(),
                false => shown_line(&summary::tool_summary(tool), SUMMARY),
            };
            lines.push((format!("{indent}{leaf}{origin}"), summary));
        }
        Entry::Node { node, children } => {
            let name = if path.is_root() {
                "/".to_owned()
            } else {
                format!("{}/", path.leaf())
            };
            let summary = shown_line(&summary::node_summary(plan, path, node), SUMMARY);
            lines.push((format!("{indent}{name}"), summary));
            for child in children {
                walk(plan, child, depth + 1, hidden, lines);
            }
            if hidden {
                let hidden = hidden_below(plan, path).into_iter();
                lines.extend(hidden.map(|(name, by)| {
                    let name = format!("{indent}  {}", shown_line(name, 100));
                    (name, by.to_string())
                }));
            }
        }
    }
}

/// The hidden tools of the source at `path`, each with the reason.
fn hidden_below<'p>(plan: &Plan<'p>, path: &NodePath) -> BTreeMap<&'p str, HiddenBy<'p>> {
    let here = plan
        .sources
        .iter()
        .filter(|(source, _)| source.path == *path);
    here.flat_map(|(source, locked)| {
        locked.hidden.iter().map(|tool| {
            let name = tool.name.as_str();
            let by = source.exposure.hidden_by(name);
            (name, by.unwrap_or(HiddenBy::Filter))
        })
    })
    .collect()
}

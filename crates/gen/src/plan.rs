//! Combines config and lock into a plan: the entry of every path of the tree.
//!
//! `lock` uses it to check a new lock, the build to check the committed one. It reads no file and starts no server.

use std::collections::{BTreeMap, BTreeSet};

use broker_config::{Config, Node, Source, ToolOverride, is_too_small_output, min_output_chars};
use broker_model::access::reviewed_annotations;
use broker_model::apps;
use broker_model::item::ItemKind;
use broker_model::json::escape_token;
use broker_model::lock::{LockedSource, LockedTool};
use broker_model::suggest;
use broker_model::text::{counted, shown_line};
use broker_model::{Diagnostic, DiagnosticCode, NodePath};
use serde_json::Value;

use crate::embedder_table::EmbedderTable;

mod access;
mod exposure;
mod facts;
mod flat_names;
mod fresh;
mod items;
mod shown_args;
mod stale;

pub use facts::{tool_facts, tools_facts};
pub use fresh::check_fresh;
pub use stale::{StaleSource, stale_sources};

/// The checked tree: every path names one entry, and every name in the config exists.
#[derive(Debug)]
pub struct Plan<'a> {
    /// Every entry by path, in byte order.
    pub entries: BTreeMap<NodePath, Entry<'a>>,
    /// The config's sources in its order, each with its part of the lock.
    pub sources: Vec<(&'a Source, &'a LockedSource)>,
    /// The vectors by the models of the config, of the file beside the lock; `None` if no file was read.
    pub vectors: Option<EmbedderTable>,
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
}

/// The entry of a path.
#[derive(Debug)]
pub enum Entry<'a> {
    /// A node; `children` in listing order: the config's nodes, then tools by leaf.
    Node {
        /// As configured; `None` for the implied root.
        node: &'a Node,
        /// The entries directly below.
        children: Vec<NodePath>,
    },
    /// A tool.
    Tool(ToolEntry<'a>),
}

/// A tool at its path.
#[derive(Debug)]
pub struct ToolEntry<'a> {
    /// The index of its source in [`Plan::sources`].
    pub source: usize,
    /// As locked.
    pub tool: &'a LockedTool,
    /// The config's override.
    pub said: Option<&'a ToolOverride>,
}

impl<'a> ToolEntry<'a> {
    /// Returns the description of the config, else the server's.
    pub fn description(&self) -> Option<&'a str> {
        let config = self.said.and_then(|said| said.description.as_deref());
        config.or_else(|| self.tool.raw.get("description").and_then(Value::as_str))
    }

    /// Returns the annotations in force: the server's annotations, with the hints of the config.
    pub fn annotations(&self) -> Option<Value> {
        let config = self.said.and_then(|said| said.annotations.as_ref());
        reviewed_annotations(self.tool.raw.get("annotations"), config)
    }

    /// Whether the reviewed tool is for pages of its server only, so that it exists for no caller.
    pub fn is_for_pages_only(&self) -> bool {
        self.tool.kind() == ItemKind::Tool && apps::is_for_pages_only(&self.tool.raw)
    }

    /// Whether the server says that each call of the reviewed tool is a task.
    pub fn requires_task(&self) -> bool {
        let execution = self.tool.raw.get("execution");
        let support = execution.and_then(|execution| execution.get("taskSupport"));
        self.tool.kind() == ItemKind::Tool && support.is_some_and(|support| support == "required")
    }
}

/// Tools and items that cannot be together in one tree.
#[derive(Clone, Debug)]
pub struct Clash {
    /// Each of them: its source and its key.
    pub parts: Vec<(NodePath, String)>,
    /// The problem, with its remedy.
    pub problem: Diagnostic,
}

/// Places the locked tools in the config's tree. Every problem is reported.
pub fn plan<'a>(
    config: &'a Config,
    sources: &'a [LockedSource],
) -> Result<Plan<'a>, Vec<Diagnostic>> {
    plan_beside(config, sources, &[])
}

/// As [`plan`]; of stale sources the tools are placed as they were locked, and what their config says of them is not
/// compared with the lock.
pub fn plan_beside<'a>(
    config: &'a Config,
    sources: &'a [LockedSource],
    stale: &'a [NodePath],
) -> Result<Plan<'a>, Vec<Diagnostic>> {
    let (plan, clashes, mut problems) = placed(config, sources, stale);
    problems.splice(0..0, clashes.into_iter().map(|clash| clash.problem));
    if problems.is_empty() {
        Ok(plan)
    } else {
        Err(problems)
    }
}

/// Returns the tools and items whose path or name another one has, or that have no valid path.
pub fn clashes(config: &Config, sources: &[LockedSource]) -> Vec<Clash> {
    placed(config, sources, &[]).1
}

fn placed<'a>(
    config: &'a Config,
    sources: &'a [LockedSource],
    stale: &'a [NodePath],
) -> (Plan<'a>, Vec<Clash>, Vec<Diagnostic>) {
    let mut planner = Planner {
        config,
        stale,
        plan: Plan {
            entries: BTreeMap::new(),
            sources: Vec::new(),
            vectors: None,
            warnings: Vec::new(),
        },
        locked: sources.iter().map(|locked| locked.path.as_str()).collect(),
        clashes: Vec::new(),
        problems: Vec::new(),
    };
    planner.add_node(&config.root);
    let locked: BTreeMap<&str, &LockedSource> = sources
        .iter()
        .map(|locked| (locked.path.as_str(), locked))
        .collect();
    for source in config.sources() {
        if let Some(locked) = locked.get(source.path.as_str()) {
            planner.plan.sources.push((source, locked));
            planner.add_source(planner.plan.sources.len() - 1, source, locked);
        }
    }
    planner.sort_children();
    planner.warn_about_case();
    planner.check_access();
    planner.check_item_clashes();
    let clashes = flat_names::clashes(config, &planner.plan);
    planner.clashes.extend(clashes);
    (planner.plan, planner.clashes, planner.problems)
}

struct Planner<'a> {
    config: &'a Config,
    stale: &'a [NodePath],
    plan: Plan<'a>,
    /// The paths of the sources in the lock.
    locked: BTreeSet<&'a str>,
    clashes: Vec<Clash>,
    problems: Vec<Diagnostic>,
}

impl<'a> Planner<'a> {
    fn add_node(&mut self, node: &'a Node) {
        let in_lock: Vec<&Node> = node
            .children
            .iter()
            .filter(|child| has_something(child, &self.locked))
            .collect();
        let children = in_lock.iter().map(|child| child.path.clone()).collect();
        self.plan
            .entries
            .insert(node.path.clone(), Entry::Node { node, children });
        in_lock.into_iter().for_each(|child| self.add_node(child));
    }

    fn error(
        &mut self,
        source: &Source,
        below: &str,
        code: DiagnosticCode,
        message: String,
        help: Option<String>,
    ) {
        let mut problem = Diagnostic::error(code, message).at(format!("{}{below}", source.pointer));
        problem.help = help;
        self.problems.push(self.config.place(problem));
    }

    fn clash(&mut self, parts: Vec<(&Source, &LockedTool)>, problem: Diagnostic) {
        let parts = parts.into_iter();
        self.clashes.push(Clash {
            parts: parts
                .map(|(source, tool)| (source.path.clone(), tool.upstream_name.clone()))
                .collect(),
            problem: self.config.place(problem),
        });
    }

    fn add_source(&mut self, index: usize, source: &'a Source, locked: &'a LockedSource) {
        for tool in &locked.exposed {
            self.add_tool(index, source, tool);
        }
        if self.is_stale(source) {
            return;
        }
        self.check_exposure(source, locked);
        self.check_items(source, locked);
        self.warn_about_hints(source, locked);
        let names = source
            .aliases
            .keys()
            .map(|name| (name, "path_aliases"))
            .chain(source.overrides.keys().map(|name| (name, "tool_overrides")));
        for (name, key) in names {
            if !locked
                .exposed
                .iter()
                .any(|tool| tool.upstream_name == *name)
            {
                self.unknown_tool(source, locked, name, key);
            }
        }
    }

    fn is_stale(&self, source: &Source) -> bool {
        self.stale.contains(&source.path)
    }

    fn add_tool(&mut self, index: usize, source: &'a Source, tool: &'a LockedTool) {
        let path = match source.path.join(&tool.exposed_name) {
            Ok(path) => path,
            Err(error) => {
                let shown = broker_model::text::shown_line(&tool.exposed_name, 100);
                let (key, id) = items::alias_of(tool);
                let kind = tool.kind().as_str();
                let message = format!(
                    "the name of the {kind} `{shown}` of `{}` cannot be a path segment: {error}",
                    source.path
                );
                let help = format!("Add `\"{}\": \"…\"` to its `{key}`.", shown_line(id, 100));
                let problem = Diagnostic::error(DiagnosticCode::AliasNeeded, message)
                    .at(&source.pointer)
                    .help(help);
                self.clash(vec![(source, tool)], problem);
                return;
            }
        };
        let clash = match self.plan.entries.get(&path) {
            None => None,
            Some(Entry::Node { .. }) => {
                let message = format!(
                    "the {} `{}` of `{}` has the path of the node `{path}`",
                    tool.kind().as_str(),
                    shown_line(items::alias_of(tool).1, 160),
                    source.path
                );
                Some((vec![(source, tool)], message))
            }
            Some(Entry::Tool(other)) => {
                let (owner, locked) = self.plan.sources[other.source];
                let message = format!(
                    "`{}` of `{}` and `{}` of `{}` both have the path `{path}`",
                    other.tool.upstream_name, locked.path, tool.upstream_name, source.path
                );
                Some((vec![(owner, other.tool), (source, tool)], message))
            }
        };
        if let Some((parts, message)) = clash {
            let (key, id) = items::alias_of(tool);
            let help = format!(
                "Give `{}` an alias in `{key}`, or deny it in `{}`.",
                shown_line(id, 160),
                items::filter_of(tool.kind())
            );
            let problem = Diagnostic::error(DiagnosticCode::LeafClash, message)
                .at(&source.pointer)
                .help(help);
            self.clash(parts, problem);
            return;
        }
        let said = source.overrides.get(&tool.upstream_name);
        let said = said.filter(|_| !self.is_stale(source));
        self.check_limit(source, tool, &path, said);
        if let Some(said) = said {
            let problems = shown_args::check(source, tool, &path, said);
            let config = self.config;
            self.problems
                .extend(problems.into_iter().map(|problem| config.place(problem)));
        }
        self.plan.entries.insert(
            path.clone(),
            Entry::Tool(ToolEntry {
                source: index,
                tool,
                said,
            }),
        );
        if let Some(Entry::Node { children, .. }) = self.plan.entries.get_mut(&source.path) {
            children.push(path);
        }
    }

    /// A cut reply still contains its path; a limit that leaves no room for it is refused.
    fn check_limit(
        &mut self,
        source: &Source,
        tool: &LockedTool,
        path: &NodePath,
        said: Option<&ToolOverride>,
    ) {
        let least = min_output_chars(path.as_str());
        let Some(limit) = said
            .and_then(|said| said.max_output_chars)
            .filter(|limit| is_too_small_output(path.as_str(), *limit))
        else {
            return;
        };
        let message = format!("`max_output_chars` {limit} leaves no room for a reply of `{path}`");
        let name = broker_model::json::escape_token(&tool.upstream_name);
        self.error(
            source,
            &format!("/tool_overrides/{name}/max_output_chars"),
            DiagnosticCode::ConfigRange,
            message,
            Some(format!("Write at least {least}.")),
        );
    }

    fn sort_children(&mut self) {
        for entry in self.plan.entries.values_mut() {
            if let Entry::Node { node, children } = entry {
                // Nodes come first, in the config's order; tools follow by leaf.
                let nodes = node.children.iter();
                let nodes = nodes.filter(|child| has_something(child, &self.locked));
                children[nodes.count()..].sort_by(|a, b| a.leaf().cmp(b.leaf()));
            }
        }
    }

    /// Reports the search hints that are left out.
    fn warn_about_hints(&mut self, source: &Source, locked: &LockedSource) {
        for tool in &locked.exposed {
            let Some(own) = source.overrides.get(&tool.upstream_name) else {
                continue;
            };
            let of = |count: usize| {
                format!(
                    "{} of `{}` of `{}`",
                    counted(count, "search hint"),
                    shown_line(&tool.upstream_name, 80),
                    source.path
                )
            };
            let (current, stale): (Vec<_>, Vec<_>) = own
                .search_hints
                .iter()
                .partition(|hint| hint.is_for(&tool.digest));
            let waiting = current.iter().filter(|hint| hint.generated).count();
            let mut warn = |code, message| {
                let name = escape_token(&tool.upstream_name);
                let place = format!("{}/tool_overrides/{name}/hints", source.pointer);
                let warning = Diagnostic::warning(code, message).at(place);
                self.plan.warnings.push(self.config.place(warning));
            };
            if !stale.is_empty() {
                let message = format!("left out: {}, written for another version", of(stale.len()));
                warn(DiagnosticCode::HintStale, message);
            }
            if waiting > 0 {
                let message = format!("not compiled: {}, which a model wrote", of(waiting));
                warn(DiagnosticCode::HintUnreviewed, message);
            }
        }
    }

    fn warn_about_case(&mut self) {
        let mut folded: BTreeMap<String, &NodePath> = BTreeMap::new();
        let mut warnings = Vec::new();
        for (path, entry) in &self.plan.entries {
            let Some(other) = folded.insert(path.as_str().to_lowercase(), path) else {
                continue;
            };
            // Two nodes were already compared by the config reader.
            if matches!(entry, Entry::Tool(_)) || matches!(self.plan.entries[other], Entry::Tool(_))
            {
                warnings.push(Diagnostic::warning(
                    DiagnosticCode::PathCase,
                    format!("`{other}` and `{path}` differ only in case"),
                ));
            }
        }
        self.plan.warnings.append(&mut warnings);
    }
}

/// Whether a node is more than the place of a source that the lock leaves out.
fn has_something(node: &Node, locked: &BTreeSet<&str>) -> bool {
    let is_left_out = |source: &Source| !locked.contains(source.path.as_str());
    !node.source.as_ref().is_some_and(is_left_out) || !node.children.is_empty()
}

/// At most `max` of the `names` that are most similar to any of `wanted`, in backticks.
pub fn nearest<'s>(wanted: impl Iterator<Item = &'s str>, names: &[&'s str], max: usize) -> String {
    let mut ranked: Vec<(f64, &str)> = Vec::new();
    for wanted in wanted {
        ranked.extend(suggest::ranked(wanted, names.iter().copied()));
    }
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let mut seen = BTreeSet::new();
    ranked.retain(|(_, name)| seen.insert(*name));
    let shown: Vec<_> = ranked
        .iter()
        .take(max)
        .map(|(_, name)| format!("`{}`", broker_model::text::shown_line(name, 100)))
        .collect();
    if shown.is_empty() {
        "none: it has no tools".to_owned()
    } else {
        shown.join(", ")
    }
}

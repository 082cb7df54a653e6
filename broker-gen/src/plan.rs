//! Combines config and lock into a plan: the entry of every path of the tree.
//!
//! `lock` uses it to check a new lock, the build to check the committed one. It reads and launches nothing.

use std::collections::{BTreeMap, BTreeSet};

use broker_model::access::reviewed_annotations;
use broker_model::config::{Config, Node, Source, ToolOverride, min_output_chars};
use broker_model::json::escape_token;
use broker_model::lock::{Lock, LockedSource, LockedTool};
use broker_model::suggest;
use broker_model::text::{counted, shown_line};
use broker_model::{Diagnostic, DiagnosticCode, NodePath};
use serde_json::Value;

use crate::settings;
use crate::vectors_file::EmbedderTable;

mod access;
mod exposure;
mod flat_names;
mod items;

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

impl ToolEntry<'_> {
    /// The annotations that are in force: those of the server, with the hints of the config.
    pub fn annotations(&self) -> Option<Value> {
        let config = self.said.and_then(|said| said.annotations.as_ref());
        reviewed_annotations(self.tool.raw.get("annotations"), config)
    }
}

/// Checks that the lock was made for this config, and names the sources that changed, are missing, or are
/// left over.
pub fn check_fresh(config: &Config, lock: &Lock) -> Result<(), Vec<Diagnostic>> {
    if lock.config_digest == config.digest() {
        return check_search_hints(config, lock);
    }
    let mut problems = Vec::new();
    for source in config.sources() {
        let message = match lock.source(source.path.as_str()) {
            None => format!("the source `{}` is not in the lock", source.path),
            Some(locked) if locked.config_digest != source.digest() => {
                format!(
                    "the config of the source `{}` has changed since it was locked{}",
                    source.path,
                    settings::shown_changes(config, source, locked)
                )
            }
            Some(_) => continue,
        };
        problems.push(
            config.place(Diagnostic::error(DiagnosticCode::LockStale, message).at(&source.pointer)),
        );
    }
    for locked in lock
        .sources
        .iter()
        .filter(|locked| config.source(&locked.path).is_none())
    {
        let message = format!(
            "the lock has the source `{}`, which the config does not have",
            locked.path
        );
        problems.push(Diagnostic::error(DiagnosticCode::LockOrphan, message));
    }
    if problems.is_empty() {
        let message = format!(
            "the lock was made for a config with the digest {}, this one has {}",
            lock.config_digest,
            config.digest()
        );
        problems.push(Diagnostic::error(DiagnosticCode::LockStale, message).in_file(&config.file));
    }
    Err(problems)
}

/// Checks that the lock repeats the search hints of the config.
fn check_search_hints(config: &Config, lock: &Lock) -> Result<(), Vec<Diagnostic>> {
    let mut problems = Vec::new();
    for locked in &lock.sources {
        let overrides = config.source(&locked.path).map(|source| &source.overrides);
        for tool in &locked.exposed {
            let own = overrides.and_then(|own| own.get(&tool.upstream_name));
            let hints = own.map(|own| own.compiled_hints(&tool.digest));
            if hints.unwrap_or_default() != tool.search_hints {
                let message = format!(
                    "the lock has other `search_hints` of `{}` of `{}` than the config",
                    shown_line(&tool.upstream_name, 80),
                    locked.path
                );
                problems.push(
                    Diagnostic::error(DiagnosticCode::LockStale, message).in_file(&config.file),
                );
            }
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems),
    }
}

/// Places the locked tools in the config's tree. Every problem is reported.
pub fn plan<'a>(
    config: &'a Config,
    sources: &'a [LockedSource],
) -> Result<Plan<'a>, Vec<Diagnostic>> {
    let mut planner = Planner {
        config,
        plan: Plan {
            entries: BTreeMap::new(),
            sources: Vec::new(),
            vectors: None,
            warnings: Vec::new(),
        },
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
    planner.problems.extend(clashes);
    if planner.problems.is_empty() {
        Ok(planner.plan)
    } else {
        Err(planner.problems)
    }
}

struct Planner<'a> {
    config: &'a Config,
    plan: Plan<'a>,
    problems: Vec<Diagnostic>,
}

impl<'a> Planner<'a> {
    fn add_node(&mut self, node: &'a Node) {
        let children = node
            .children
            .iter()
            .map(|child| child.path.clone())
            .collect();
        self.plan
            .entries
            .insert(node.path.clone(), Entry::Node { node, children });
        node.children.iter().for_each(|child| self.add_node(child));
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

    fn add_source(&mut self, index: usize, source: &'a Source, locked: &'a LockedSource) {
        for tool in &locked.exposed {
            self.add_tool(index, source, tool);
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
                self.error(
                    source,
                    "",
                    DiagnosticCode::AliasNeeded,
                    message,
                    Some(format!(
                        "Add `\"{}\": \"…\"` to its `{key}`.",
                        shown_line(id, 100)
                    )),
                );
                return;
            }
        };
        let clash = match self.plan.entries.get(&path) {
            None => None,
            Some(Entry::Node { .. }) => Some(format!(
                "the {} `{}` of `{}` has the path of the node `{path}`",
                tool.kind().as_str(),
                shown_line(items::alias_of(tool).1, 160),
                source.path
            )),
            Some(Entry::Tool(other)) => {
                let (_, locked) = self.plan.sources[other.source];
                Some(format!(
                    "`{}` of `{}` and `{}` of `{}` both have the path `{path}`",
                    other.tool.upstream_name, locked.path, tool.upstream_name, source.path
                ))
            }
        };
        if let Some(message) = clash {
            let (key, id) = items::alias_of(tool);
            let help = format!(
                "Give `{}` an alias in `{key}`, or deny it in `{}`.",
                shown_line(id, 160),
                items::filter_of(tool.kind())
            );
            self.error(source, "", DiagnosticCode::LeafClash, message, Some(help));
            return;
        }
        let said = source.overrides.get(&tool.upstream_name);
        self.check_limit(source, tool, &path, said);
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
            .filter(|limit| *limit < least)
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
                children[node.children.len()..].sort_by(|a, b| a.leaf().cmp(b.leaf()));
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

/// At most `max` of the `names` that are most similar to any of `wanted`, in backticks.
pub(crate) fn nearest<'s>(
    wanted: impl Iterator<Item = &'s str>,
    names: &[&'s str],
    max: usize,
) -> String {
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

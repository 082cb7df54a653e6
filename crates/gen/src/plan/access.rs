//! The checks of the access rules with the tools of the lock: rules without a match or without an effect, unknown
//! properties, and tools that no group may call.

use std::collections::BTreeSet;

use broker_model::DiagnosticCode as Code;
use broker_model::access::{Access, Effect, Matrix, Row, Rule, ToolFacts};
use broker_model::text::shown_line;
use serde_json::Value;

use super::{Diagnostic, Entry, Planner, ToolEntry, nearest, tools_facts};

/// The maximum number of tools that one problem names.
const MAX_NAMED: usize = 5;
/// The members of a schema that a rule may not have: they would refer to places of the tool's schema.
const REFERENCES: [&str; 6] = [
    "$ref",
    "$dynamicRef",
    "$id",
    "$defs",
    "definitions",
    "$schema",
];

impl Planner<'_> {
    /// Checks every rule with the tools that it matches.
    pub(super) fn check_access(&mut self) {
        let Some(access) = &self.config.access else {
            return;
        };
        let tools = tools_facts(&self.plan);
        let entries: Vec<&ToolEntry<'_>> = self
            .plan
            .entries
            .values()
            .filter_map(|entry| match entry {
                Entry::Tool(tool) => Some(tool),
                Entry::Node { .. } => None,
            })
            .collect();
        let (mut problems, mut warnings) = (Vec::new(), Vec::new());
        let mut matched = vec![Vec::new(); tools.len()];
        for (index, rule) in access.rules.iter().enumerate() {
            let of_rule: Vec<usize> = (0..tools.len())
                .filter(|at| rule.matches(&tools[*at]))
                .collect();
            if of_rule.is_empty() {
                match self.names_left_out(rule) {
                    true => warnings.push(names_left_out_only(rule)),
                    false => problems.push(matches_nothing(rule, &tools)),
                }
            }
            // The tools of a stale source are as locked, and no call reaches them.
            let is_fresh = |at: &usize| !self.is_stale(self.plan.sources[entries[*at].source].0);
            let fresh: Vec<usize> = of_rule.iter().copied().filter(is_fresh).collect();
            problems.extend(check_args(rule, &fresh, &entries, &tools));
            for at in of_rule {
                matched[at].push(index);
            }
        }
        let matrix = Matrix::new(access, &tools);
        if problems.is_empty() {
            warnings.extend(dead_rules(access, &tools, &matched, &matrix));
            warnings.extend(unreachable_tools(access, &tools, &matrix));
        }
        let place = |found: Diagnostic| self.config.place(found);
        let (problems, warnings): (Vec<_>, Vec<_>) = (
            problems.into_iter().map(place).collect(),
            warnings.into_iter().map(place).collect(),
        );
        self.problems.extend(problems);
        self.plan.warnings.extend(warnings);
    }

    /// Whether a rule may be about a part that the lock leaves out: about its path, or about a path below a source
    /// whose tools are unknown, or unknown with its current config.
    fn names_left_out(&self, rule: &Rule) -> bool {
        let unknown = self.config.sources().filter(|source| {
            let mut locked = self.plan.sources.iter();
            self.is_stale(source) || !locked.any(|(known, _)| known.path == source.path)
        });
        let unknown = unknown.map(|source| &source.path);
        let mut unknown = unknown.chain(&self.config.disabled);
        let may_be_below = |pattern: &String, source: &str| {
            let prefix = pattern.split(['*', '?', '[', '{']).next().unwrap_or("");
            let below = format!("{}/", source.trim_end_matches('/'));
            prefix.starts_with(&below) || below.starts_with(prefix)
        };
        let written = rule.paths.written();
        if unknown.any(|path| written.iter().any(|one| may_be_below(one, path.as_str()))) {
            return true;
        }
        let mut sources = self.plan.sources.iter();
        sources.any(|(source, locked)| {
            let names = locked.left_out.iter().filter_map(|one| {
                let name = one.name.as_deref()?;
                let key = one.kind.key(name);
                let alias = source.aliases.get(&key).or(source.item_aliases.get(&key));
                Some(alias.map_or(name, String::as_str))
            });
            let parent = source.path.as_str().trim_end_matches('/');
            let mut paths = names.map(|name| format!("{parent}/{name}"));
            paths.any(|path| rule.paths.matches(&path)) || locked.more_left_out.is_some()
        })
    }
}

fn names_left_out_only(rule: &Rule) -> Diagnostic {
    let message = "the rule matches only parts that the lock leaves out";
    Diagnostic::warning(Code::AccessNoMatch, message)
        .at(format!("{}/{}", rule.pointer, effect_key(rule)))
        .help("None: the rule is in force for what returns.")
}

fn effect_key(rule: &Rule) -> &'static str {
    match rule.effect {
        Effect::Allow => "allow",
        Effect::Deny => "deny",
    }
}

fn matches_nothing(rule: &Rule, tools: &[ToolFacts<'_>]) -> Diagnostic {
    let key = effect_key(rule);
    let by_path = tools.iter().filter(|tool| rule.paths.matches(tool.path));
    if by_path.clone().next().is_some() {
        let named = named(by_path.map(|tool| tool.path));
        let message = format!("no tool at {named} has the reviewed hints that `where` asks for");
        return Diagnostic::error(Code::AccessNoMatch, message)
            .at(format!("{}/where", rule.pointer))
            .help(
                "`broker-gen access` shows the hints; set them with `tool_overrides.X.annotations`",
            );
    }
    let written = rule.paths.written();
    let shown: Vec<_> = written
        .iter()
        .map(|pattern| format!("`{}`", shown_line(pattern, 80)))
        .collect();
    let message = format!(
        "the rule matches no tool of the lock: {}",
        match shown.is_empty() {
            true => "it has no pattern".to_owned(),
            false => shown.join(", "),
        }
    );
    let paths: Vec<&str> = tools.iter().map(|tool| tool.path).collect();
    let near = nearest(written.iter().map(String::as_str), &paths, 3);
    Diagnostic::error(Code::AccessNoMatch, message)
        .at(format!("{}/{key}", rule.pointer))
        .help(format!("the nearest tools: {near}"))
}

/// Tools in backticks, at most [`MAX_NAMED`].
fn named<'t>(paths: impl Iterator<Item = &'t str>) -> String {
    let paths: Vec<_> = paths.collect();
    let shown: Vec<_> = paths
        .iter()
        .take(MAX_NAMED)
        .map(|path| format!("`{path}`"))
        .collect();
    match paths.len().saturating_sub(MAX_NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The problems of the schema of a rule: references, and properties that a tool does not have.
fn check_args(
    rule: &Rule,
    matched: &[usize],
    entries: &[&ToolEntry<'_>],
    tools: &[ToolFacts<'_>],
) -> Vec<Diagnostic> {
    let Some(args) = &rule.args else {
        return Vec::new();
    };
    let pointer = format!("{}/args", rule.pointer);
    if let Some(key) = REFERENCES.into_iter().find(|key| has_key(args, key)) {
        let message = format!("`args` has `{key}`: it must be complete without references");
        return vec![Diagnostic::error(Code::AccessArgsInvalid, message).at(pointer)];
    }
    let mut problems = Vec::new();
    for property in properties(args) {
        let unknown = matched.iter().filter(|at| {
            let schema = entries[**at].tool.raw.get("inputSchema");
            let known = schema.and_then(|schema| schema.get("properties"));
            known.and_then(|known| known.get(property)).is_none()
        });
        let unknown: Vec<&str> = unknown.map(|at| tools[*at].path).collect();
        if unknown.is_empty() {
            continue;
        }
        let known = matched.iter().filter_map(|at| {
            let schema = entries[*at].tool.raw.get("inputSchema")?;
            schema.get("properties")?.as_object()
        });
        let known: BTreeSet<&str> = known
            .flat_map(|all| all.keys().map(String::as_str))
            .collect();
        let known: Vec<&str> = known.into_iter().collect();
        let message = format!(
            "`args` names the property `{}`, which {} does not have",
            shown_line(property, 80),
            named(unknown.into_iter())
        );
        problems.push(
            Diagnostic::error(Code::AccessArgsUnknownProperty, message)
                .at(&pointer)
                .help(format!(
                    "the nearest properties: {}",
                    nearest([property].into_iter(), &known, 3)
                )),
        );
    }
    problems
}

/// The properties that a schema names at its top, and in its conditions on the whole value.
fn properties(schema: &Value) -> BTreeSet<&str> {
    let mut all = BTreeSet::new();
    let Some(members) = schema.as_object() else {
        return all;
    };
    if let Some(Value::Object(properties)) = members.get("properties") {
        all.extend(properties.keys().map(String::as_str));
    }
    if let Some(Value::Array(required)) = members.get("required") {
        all.extend(required.iter().filter_map(Value::as_str));
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        if let Some(Value::Array(schemas)) = members.get(key) {
            all.extend(schemas.iter().flat_map(properties));
        }
    }
    for key in ["not", "if", "then", "else"] {
        all.extend(members.get(key).into_iter().flat_map(properties));
    }
    all
}

fn has_key(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(members) => {
            members.contains_key(key) || members.values().any(|value| has_key(value, key))
        }
        Value::Array(items) => items.iter().any(|item| has_key(item, key)),
        _ => false,
    }
}

/// Returns a warning for each rule that can be removed without a change of any row.
fn dead_rules(
    access: &Access,
    tools: &[ToolFacts<'_>],
    matched: &[Vec<usize>],
    matrix: &Matrix,
) -> Vec<Diagnostic> {
    let mut live = BTreeSet::new();
    for (at, of_tool) in matched.iter().enumerate() {
        for rule in of_tool {
            if live.contains(rule) {
                continue;
            }
            let others = of_tool.iter().filter(|other| *other != rule);
            let others = Access {
                rules: others.map(|other| access.rules[*other].clone()).collect(),
                ..access.clone()
            };
            let of_tool = Access {
                rules: of_tool
                    .iter()
                    .map(|one| access.rules[*one].clone())
                    .collect(),
                ..access.clone()
            };
            let one = std::slice::from_ref(&tools[at]);
            let (with, without) = (Matrix::new(&of_tool, one), Matrix::new(&others, one));
            if !with.widened_from(&without).is_empty() || !without.widened_from(&with).is_empty() {
                live.insert(*rule);
            }
        }
    }
    // A rule without a tool is about parts that the lock leaves out, and is in force for what returns.
    let has_tool = |rule: &usize| matched.iter().any(|of_tool| of_tool.contains(rule));
    let dead = (0..access.rules.len()).filter(|rule| !live.contains(rule) && has_tool(rule));
    let has_rows = !matrix.rows.is_empty();
    dead.filter(|_| has_rows)
        .map(|rule| {
            let message = "the rule changes nothing: the others decide the same for every tool";
            Diagnostic::warning(Code::AccessRuleDead, message).at(&access.rules[rule].pointer)
        })
        .collect()
}

/// A warning if some tools exist for no caller.
fn unreachable_tools(
    access: &Access,
    tools: &[ToolFacts<'_>],
    matrix: &Matrix,
) -> Option<Diagnostic> {
    if tools.is_empty() {
        return None;
    }
    if access.rules.is_empty() {
        let message = "`access` has no rule, so no tool exists for any caller";
        return Some(Diagnostic::warning(Code::AccessToolUnreachable, message).at("/access/rules"));
    }
    let nothing = Matrix {
        rows: vec![Row::default(); tools.len()],
        narrowings: Vec::new(),
    };
    let reachable: BTreeSet<usize> = matrix.widened_from(&nothing).into_iter().collect();
    let unreachable = (0..tools.len()).filter(|at| !reachable.contains(at));
    let unreachable: Vec<&str> = unreachable.map(|at| tools[at].path).collect();
    if unreachable.is_empty() {
        return None;
    }
    let message = format!(
        "no caller may use {}: no rule allows it, or others deny it to every group",
        named(unreachable.into_iter())
    );
    Some(Diagnostic::warning(Code::AccessToolUnreachable, message).at("/access/rules"))
}

//! The classifier. Matches the tools of the lock with the listed ones; [`super::tool`] compares a tool,
//! [`super::source`] the server itself.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::report::{BUILD, Class, Finding, RELOCK, Report, SourceDrift, ToolDrift};
use super::{rename, rules, source, tool};
use broker_model::codes::SourceCause;
use broker_model::digest::Digest;
use broker_model::item::{self, ItemKind};
use broker_model::lock::{LockedSource, LockedTool, strip_volatile};
use broker_model::path::NodePath;
use broker_model::snapshot::{ListedTool, Snapshot};
use broker_model::terminal::one_line;
use broker_model::trust::Exposure;

/// Compares the listing of a source with its part of the lock. `exposure` decides which new tools would be
/// exposed; new tools that it hides are not reported.
pub fn classify(locked: &LockedSource, live: &Snapshot, exposure: &Exposure) -> Report {
    let mut report = Report::default();
    let mut listed: BTreeMap<&str, &ListedTool> =
        live.tools.iter().map(|tool| (tool.name(), tool)).collect();
    // One tool is parsed at a time: all of them together could take a hundred times the memory of their text.
    let read = |tool: &ListedTool| {
        let mut raw = tool.read();
        strip_volatile(tool.name(), &mut raw, &locked.volatile);
        raw
    };
    let mut left: Vec<&LockedTool> = Vec::new();
    let mut room = tool::Room::of_source();
    for tool in &locked.exposed {
        match listed.remove(tool.upstream_name.as_str()).map(read) {
            Some(raw) if Digest::of_tool(&raw) == tool.digest => report.same += 1,
            Some(raw) => report.tools.push(ToolDrift::new(
                &locked.path,
                &tool.upstream_name,
                leaf(&locked.path, &tool.exposed_name),
                tool::changes(
                    tool,
                    &raw,
                    &relock_tools(&locked.path, &[&tool.upstream_name]),
                    &mut room,
                ),
            )),
            None => left.push(tool),
        }
    }
    for tool in &locked.hidden {
        listed.remove(tool.name.as_str());
    }
    let successors = rename::successors(&left, &listed, read);
    for tool in left {
        let successor = successors.get(tool.upstream_name.as_str()).copied();
        report.tools.push(gone(locked, tool, successor));
    }
    for (name, tool) in listed.iter().filter(|(name, _)| exposure.exposes(name)) {
        report.tools.push(added(locked, name, &read(tool)));
    }
    // In the lock's order, new tools at the end.
    report.tools.sort_by(|a, b| {
        let key = |tool: &ToolDrift| (tool.class == Class::Added, tool.tool.clone());
        key(a).cmp(&key(b))
    });
    let findings = source::changes(locked, live, &relock(&locked.path));
    if !findings.is_empty() {
        let drift = SourceDrift::new(&locked.path, findings);
        report.sources.push(drift);
    }
    report
}

/// The report on a source that could not be started or listed. `notes` are lines below the message, such as
/// the stderr of the server.
pub fn unchecked(source: &NodePath, cause: SourceCause, message: &str, notes: &[String]) -> Report {
    let lines = std::iter::once(message).chain(notes.iter().map(String::as_str));
    let lines: Vec<_> = lines.map(one_line).collect();
    let found = Finding {
        new: Some(json!({"cause": cause.as_str()})),
        ..Finding::of(
            rules::rule("source-unavailable"),
            lines.join("\n"),
            cause.remedy(),
        )
    };
    Report {
        sources: vec![SourceDrift::new(source, vec![found])],
        ..Report::default()
    }
}

pub(super) fn relock(source: &NodePath) -> String {
    format!("review it, then run {RELOCK} --source {source}`, {BUILD}")
}

/// The remedy for these tools alone, if a shell accepts their names unquoted.
fn relock_tools(source: &NodePath, names: &[&str]) -> String {
    let plain = |name: &&str| {
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && name.chars().all(fine)
    };
    if !names.iter().all(plain) {
        return relock(source);
    }
    let tools: String = names.iter().map(|name| format!(" --tool {name}")).collect();
    format!("review it, then run {RELOCK} --source {source}{tools}`, {BUILD}")
}

fn leaf(source: &NodePath, name: &str) -> String {
    // An added tool's name may not match the path grammar; it is shown in any case.
    if source.is_root() {
        format!("/{name}")
    } else {
        format!("{source}/{name}")
    }
}

/// A tool that the server no longer lists. Its probable successor is a separate note, so that neither class
/// nor exit code depends on the guess.
fn gone(locked: &LockedSource, tool: &LockedTool, successor: Option<&str>) -> ToolDrift {
    let name = &tool.upstream_name;
    let names: Vec<_> = [Some(name.as_str()), successor]
        .into_iter()
        .flatten()
        .collect();
    let remedy = relock_tools(&locked.path, &names);
    let listed = match ItemKind::of_key(name) {
        (ItemKind::Tool, name) => format!("`{name}`"),
        (kind, id) => format!("the {} `{id}`", kind.as_str()),
    };
    let mut findings = vec![Finding {
        old: Some(json!({"digest": tool.digest.as_str()})),
        ..Finding::of(
            rules::rule("tool-gone"),
            format!("the server no longer lists {listed}"),
            &remedy,
        )
    }];
    findings.extend(successor.map(|new| Finding {
        new: Some(json!({"name": new})),
        ..Finding::of(
            rules::rule("tool-renamed"),
            format!("`{name}` seems to be `{new}` now"),
            &remedy,
        )
    }));
    let path = leaf(&locked.path, &tool.exposed_name);
    ToolDrift::new(&locked.path, name, path, findings)
}

fn added(locked: &LockedSource, name: &str, raw: &Map<String, Value>) -> ToolDrift {
    let (kind, id) = ItemKind::of_key(name);
    let (filter, alias) = match kind {
        ItemKind::Tool => ("tool_filter", name.to_owned()),
        ItemKind::Prompt => ("prompt_filter", item::leaf(raw)),
        ItemKind::Template | ItemKind::Resource => ("resource_filter", item::leaf(raw)),
    };
    let kind = kind.as_str();
    let found = Finding {
        new: Some(json!({"digest": Digest::of_tool(raw).as_str()})),
        ..Finding::of(
            rules::rule("tool-added"),
            format!(
                "the server has a new {kind} `{id}`, which the filter admits; it is not exposed"
            ),
            &format!(
                "to expose it, {}; else deny it in `{filter}`",
                relock_tools(&locked.path, &[name])
            ),
        )
    };
    let path = leaf(&locked.path, &alias);
    ToolDrift::new(&locked.path, name, path, vec![found])
}

//! The classifier. Matches the tools of the lock with the listed ones; [`super::tool`] compares a tool,
//! [`super::source`] the server itself.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::class::Class;
use super::report::{BUILD, Finding, RELOCK, Report, SourceDrift, ToolDrift};
use super::{rename, rules, source, tool};
use broker_model::codes::{LeftOutCode, SourceCause};
use broker_model::digest::Digest;
use broker_model::item::{self, ItemKind};
use broker_model::left_out::{self, LeftOut};
use broker_model::lock::{LockedSource, LockedTool, strip_volatile};
use broker_model::path::NodePath;
use broker_model::snapshot::{ListedTool, Snapshot};
use broker_model::terminal::one_line;
use broker_model::text::shown_line;
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
    let mut room = tool::Room::new();
    for tool in &locked.exposed {
        let live_tool = listed.remove(tool.upstream_name.as_str());
        let problem = match live_tool {
            Some(found) => found.is_unread().then(|| unusable(None)),
            None => unusable_part(live, &tool.upstream_name),
        };
        if let Some(problem) = problem {
            report.tools.push(withdrawn(locked, tool, problem));
            continue;
        }
        match live_tool.map(read) {
            Some(raw) if Digest::from_tool(&raw) == tool.digest => report.same += 1,
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
    // They were seen when the source was locked. A name that was cut is reported as new.
    for one in &locked.left_out {
        if let Some(name) = &one.name {
            listed.remove(one.kind.key(name).as_str());
        }
    }
    let successors = rename::successors(&left, &listed, read);
    for tool in left {
        let successor = successors.get(tool.upstream_name.as_str()).copied();
        let live = successor.and_then(|name| listed.get(name).map(|tool| (name, read(tool))));
        report.tools.push(match live {
            Some((name, raw)) => renamed(locked, tool, name, raw),
            None => gone(locked, tool),
        });
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
        ..Finding::new(
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

/// The report on parts of a source that the lock leaves out, and that became sound or changed.
pub fn left_out_changed(source: &NodePath, messages: &[String]) -> Report {
    let rule = rules::rule("left-out-changed");
    let found = messages
        .iter()
        .map(|message| Finding::new(rule, one_line(message), &relock(source)));
    let findings: Vec<_> = found.collect();
    Report {
        sources: match findings.is_empty() {
            true => Vec::new(),
            false => vec![SourceDrift::new(source, findings)],
        },
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

/// The finding on a reviewed tool whose definition is left out of the listing, if it is.
fn unusable_part(live: &Snapshot, key: &str) -> Option<Finding> {
    let (kind, id) = ItemKind::parse_key(key);
    let shown = shown_line(id, left_out::MAX_NAME_CHARS);
    let parts = || live.left_out.iter().filter(|part| part.kind == kind);
    let own = parts().find(|part| part.name.as_deref() == Some(shown.as_str()));
    if own.is_some() {
        return own.map(|part| unusable(Some(part)));
    }
    let cut = parts().find(|part| part.code == LeftOutCode::ListCut)?;
    let message = format!(
        "the server may list it in a part of the list that was not read: {}",
        cut.reason
    );
    Some(Finding::new(rules::rule("list-cut"), message, ""))
}

/// The finding on a reviewed tool whose live definition cannot be used.
fn unusable(part: Option<&LeftOut>) -> Finding {
    let Some(part) = part else {
        let message = "the server's definition cannot be read".to_owned();
        return Finding::new(rules::rule("tool-unusable"), message, "");
    };
    let rule = match part.code == LeftOutCode::DefinedTwice {
        true => "tool-defined-twice",
        false => "tool-unusable",
    };
    Finding {
        pointer: part.place.clone(),
        new: Some(json!({"digest": part.digest.as_str()})),
        ..Finding::new(rules::rule(rule), part.reason.clone(), "")
    }
}

/// A reviewed tool that cannot be compared.
fn withdrawn(locked: &LockedSource, tool: &LockedTool, mut problem: Finding) -> ToolDrift {
    let remedy =
        "correct the server; the tool is served again when the server lists it as reviewed";
    remedy.clone_into(&mut problem.remedy);
    problem.old = Some(json!({"digest": tool.digest.as_str()}));
    let path = leaf(&locked.path, &tool.exposed_name);
    ToolDrift::new(&locked.path, &tool.upstream_name, path, vec![problem])
}

/// A tool that the server no longer lists.
fn gone(locked: &LockedSource, tool: &LockedTool) -> ToolDrift {
    let name = &tool.upstream_name;
    let found = Finding {
        old: Some(json!({"digest": tool.digest.as_str()})),
        ..Finding::new(
            rules::rule("tool-gone"),
            format!("the server no longer lists {}", named(name)),
            &relock_tools(&locked.path, &[name]),
        )
    };
    let path = leaf(&locked.path, &tool.exposed_name);
    ToolDrift::new(&locked.path, name, path, vec![found])
}

/// A tool that the server seems to list under another name. It counts as gone, so that neither class nor exit code
/// depends on the guess.
fn renamed(
    locked: &LockedSource,
    tool: &LockedTool,
    successor: &str,
    live: Map<String, Value>,
) -> ToolDrift {
    let name = &tool.upstream_name;
    let digest = Digest::from_tool(&live);
    let class = rename::class_but_for_the_name(tool, live);
    let how = match class == Class::Same {
        true => "with the same definition".to_owned(),
        false => format!(
            "with other differences, the worst of class `{}`",
            class.as_str()
        ),
    };
    let found = Finding {
        pointer: "/name".to_owned(),
        old: Some(json!({"name": name, "digest": tool.digest.as_str()})),
        new: Some(json!({"name": successor, "digest": digest.as_str()})),
        ..Finding::new(
            rules::rule("tool-renamed"),
            format!(
                "the server no longer lists {}; it seems to be {} now, {how}",
                named(name),
                named(successor)
            ),
            &relock_tools(&locked.path, &[name, successor]),
        )
    };
    let path = leaf(&locked.path, &tool.exposed_name);
    ToolDrift::new(&locked.path, name, path, vec![found])
}

/// The name of a tool or of another item, for a sentence.
fn named(key: &str) -> String {
    let (kind, id) = ItemKind::parse_key(key);
    match kind {
        ItemKind::Tool => format!("`{id}`"),
        ItemKind::Prompt | ItemKind::Template | ItemKind::Resource => {
            format!("the {} `{id}`", kind.as_str())
        }
    }
}

fn added(locked: &LockedSource, name: &str, raw: &Map<String, Value>) -> ToolDrift {
    let (kind, id) = ItemKind::parse_key(name);
    let filter = match kind {
        ItemKind::Tool => "tool_filter",
        ItemKind::Prompt => "prompt_filter",
        ItemKind::Template | ItemKind::Resource => "resource_filter",
    };
    let alias = item::derived_leaf(name, raw);
    let kind = kind.as_str();
    let found = Finding {
        new: Some(json!({"digest": Digest::from_tool(raw).as_str()})),
        ..Finding::new(
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

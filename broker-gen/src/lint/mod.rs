//! Texts that are not innocent: what a model would read and a reviewer would not see, or would not
//! want it to be told.
//!
//! [`lint`] is pure: locked sources in, findings out. It judges what stands there, not what changed.

use std::collections::HashSet;

use broker_drift::Finding;
use broker_model::digest::Digest;
use broker_model::lock::{LockedSource, LockedTool};
use broker_model::path::NodePath;
use broker_model::text::{shell_word, shown, shown_line};

mod alike;
mod foreign;
mod hidden;
mod markup;
mod matcher;
mod names;
mod parameters;
mod payload;
mod phrases;
mod rules;
mod texts;

pub use rules::{advice, rules};

use rules::rule;
use texts::{Text, texts_of, texts_of_source};

/// Places that are listed for one tool.
const MAX_FINDINGS: usize = 50;
/// Characters of a text that are shown on each side of a place.
const AROUND: usize = 40;

/// A tool or a source's own texts, with findings.
#[derive(Clone, Debug, PartialEq)]
pub struct Linted {
    /// The node that the source is mounted on.
    pub source: NodePath,
    /// The server's name for the tool; `None` for the source itself.
    pub tool: Option<String>,
    /// Where callers find it.
    pub path: String,
    /// The whole tool's, or what the source says of itself: a decision is bound to it.
    pub digest: Digest,
    /// At least one; the errors first.
    pub findings: Vec<Finding>,
}

/// Something found in one text.
#[derive(Debug)]
struct Found {
    rule: &'static str,
    /// In bytes of the text.
    at: usize,
    to: usize,
    message: String,
}

/// Looks at every text of every exposed tool, and of what every source says of itself. What two tools
/// share is told of the one that stands later, so that one decision settles it.
pub fn lint(sources: &[LockedSource]) -> Vec<Linted> {
    let mut linted = Vec::new();
    let named = foreign::Named::of(sources);
    let mut across = names::check(sources);
    across.extend(alike::check(sources));
    let mut innocent = HashSet::new();
    for (number, source) in sources.iter().enumerate() {
        let used = foreign::Own::of(source);
        let mut findings = Vec::new();
        for text in &texts_of_source(source) {
            findings.extend(of_text(text, &mut innocent));
            findings.extend(place(text, named.check(number, &used, text)));
        }
        linted.push(Linted {
            source: source.path.clone(),
            tool: None,
            path: source.path.as_str().to_owned(),
            digest: source.own_digest(),
            findings,
        });
        for (index, tool) in source.exposed.iter().enumerate() {
            let mut findings = Vec::new();
            for text in &texts_of(tool) {
                findings.extend(of_text(text, &mut innocent));
                findings.extend(place(text, named.check(number, &used, text)));
            }
            let shared = across.iter().filter(|one| one.tool == (number, index));
            findings.extend(shared.map(|one| one.finding.clone()));
            linted.push(Linted {
                source: source.path.clone(),
                tool: Some(tool.upstream_name.clone()),
                path: path_of(source, tool),
                digest: tool.digest.clone(),
                findings,
            });
        }
    }
    linted.retain(|one| !one.findings.is_empty());
    linted.iter_mut().for_each(finish);
    linted
}

/// Where callers find a tool, also where the path grammar does not take its name.
fn path_of(source: &LockedSource, tool: &LockedTool) -> String {
    if source.path.is_root() {
        format!("/{}", tool.exposed_name)
    } else {
        format!("{}/{}", source.path, tool.exposed_name)
    }
}

/// Something found about one tool by looking at another.
#[derive(Debug)]
struct Across {
    /// The numbers of its source and of the tool in it.
    tool: (usize, usize),
    finding: Finding,
}

/// `innocent` are texts in which nothing was found: catalogs repeat themselves.
fn of_text<'a>(text: &Text<'a>, innocent: &mut HashSet<&'a str>) -> Vec<Finding> {
    let mut found = Vec::new();
    if !innocent.contains(text.text) {
        found.extend(hidden::check(text.text));
        found.extend(payload::check(text.text));
        found.extend(markup::check(text.text));
        found.extend(phrases::check(text.text));
        if found.is_empty() {
            innocent.insert(text.text);
        }
    }
    found.extend(names::check_script(text));
    found.extend(parameters::check(text));
    place(text, found)
}

fn place(text: &Text<'_>, found: Vec<Found>) -> Vec<Finding> {
    let finding = |one: Found| Finding {
        pointer: text.pointer.clone(),
        new: Some(excerpt(text.text, one.at, one.to).into()),
        ..Finding::of(rule(one.rule), one.message, "")
    };
    found.into_iter().map(finding).collect()
}

/// A part of a text, escaped so that everything in it is seen.
fn excerpt(text: &str, at: usize, to: usize) -> String {
    let from = text[..at]
        .char_indices()
        .rev()
        .nth(AROUND - 1)
        .map_or(0, |(index, _)| index);
    let found = &text[at..to];
    let most = found
        .char_indices()
        .nth(3 * AROUND)
        .map_or(found.len(), |(index, _)| index);
    let rest = &text[to..];
    let end = rest
        .char_indices()
        .nth(AROUND)
        .map_or(rest.len(), |(index, _)| index);
    let dots = |cut: bool| if cut { "…" } else { "" };
    let flat = |text: &str| shown(text).replace('\n', " ");
    let shown = format!(
        "{}{}{}{}{}{}",
        dots(from > 0),
        flat(&text[from..at]),
        flat(&found[..most]),
        dots(most < found.len()),
        flat(&rest[..end]),
        dots(end < rest.len())
    );
    // Indented texts are read in a line.
    let mut out = String::with_capacity(shown.len());
    for c in shown.chars() {
        if c != ' ' || !out.ends_with(' ') {
            out.push(c);
        }
    }
    out
}

/// The errors first, then in the order of the tool; not too many; each with what to do.
fn finish(linted: &mut Linted) {
    let findings = &mut linted.findings;
    findings.sort_by_key(|one| std::cmp::Reverse(one.severity));
    let total = findings.len();
    findings.truncate(MAX_FINDINGS);
    if let Some(last) = findings.last_mut().filter(|_| total > MAX_FINDINGS) {
        last.message = format!("{}, and {} more places", last.message, total - MAX_FINDINGS);
    }
    let of_tool = linted
        .tool
        .as_deref()
        .map(|tool| format!(" --tool {}", shell_word(tool)))
        .unwrap_or_default();
    for one in findings {
        one.remedy = format!(
            "{}; if it is meant well, `broker-gen accept --source {}{of_tool} --rule {} --reason …`",
            advice(one.rule),
            linted.source,
            one.rule,
        );
    }
}

/// A name from a server in a message.
fn quoted(name: &str) -> String {
    format!("`{}`", shown_line(name, 80))
}

#[cfg(test)]
mod tests;

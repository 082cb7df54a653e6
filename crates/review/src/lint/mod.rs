//! The lint: suspicious texts that a model reads and a reviewer does not see or would not accept.
//!
//! [`lint`] is pure: locked sources in, findings out. It checks the current texts, not their changes.

use std::collections::HashSet;

use broker_drift::{Finding, LintResult};
use broker_model::lock::{LockedSource, LockedTool};
use broker_model::text::{shell_word, shown, shown_line};

mod alike;
mod bait;
mod foreign;
mod hidden;
mod hints;
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

/// Maximum number of listed places of one tool.
const MAX_FINDINGS: usize = 50;
/// Characters of a text that are shown on each side of a place.
const AROUND: usize = 40;

/// A finding in one text.
#[derive(Debug)]
struct TextFinding {
    rule: &'static str,
    /// Byte offset in the text.
    at: usize,
    to: usize,
    message: String,
}

/// Checks every text of every exposed tool and of every source itself. A finding about two tools is
/// reported for the later one, so that one decision settles it.
pub fn lint(sources: &[LockedSource]) -> Vec<LintResult> {
    let mut linted = Vec::new();
    let named = foreign::Named::collect(sources);
    let mut across = names::check(sources);
    across.extend(alike::check(sources));
    across.extend(hints::check(sources, &named));
    let mut clean = HashSet::new();
    for (number, source) in sources.iter().enumerate() {
        let used = foreign::Own::collect(source);
        let mut findings = Vec::new();
        for text in &texts_of_source(source) {
            findings.extend(lint_text(text, &mut clean));
            findings.extend(place(text, named.check(number, &used, text)));
        }
        linted.push(LintResult {
            source: source.path.clone(),
            tool: None,
            path: source.path.as_str().to_owned(),
            digest: source.own_digest(),
            findings,
        });
        for (index, tool) in source.exposed.iter().enumerate() {
            let mut findings = Vec::new();
            for text in &texts_of(tool) {
                findings.extend(lint_text(text, &mut clean));
                findings.extend(place(text, named.check(number, &used, text)));
            }
            let shared = across.iter().filter(|one| one.tool == (number, index));
            findings.extend(shared.map(|one| one.finding.clone()));
            linted.push(LintResult {
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

/// The path of a tool for callers, even if its name does not match the path grammar.
fn path_of(source: &LockedSource, tool: &LockedTool) -> String {
    if source.path.is_root() {
        format!("/{}", tool.exposed_name)
    } else {
        format!("{}/{}", source.path, tool.exposed_name)
    }
}

/// A finding on one tool that depends on another tool.
#[derive(Debug)]
struct CrossSourceFinding {
    /// The index of its source, and of the tool in it.
    tool: (usize, usize),
    finding: Finding,
}

/// `clean` are texts without a finding: catalogs repeat texts.
fn lint_text<'a>(text: &Text<'a>, clean: &mut HashSet<&'a str>) -> Vec<Finding> {
    let mut found = Vec::new();
    if !clean.contains(text.text) {
        found.extend(hidden::check(text.text));
        found.extend(payload::check(text.text));
        found.extend(markup::check(text.text));
        found.extend(phrases::check(text.text));
        if found.is_empty() {
            clean.insert(text.text);
        }
    }
    found.extend(names::check_script(text));
    found.extend(parameters::check(text));
    found.extend(bait::check(text));
    place(text, found)
}

fn place(text: &Text<'_>, found: Vec<TextFinding>) -> Vec<Finding> {
    let finding = |one: TextFinding| Finding {
        pointer: text.pointer.clone(),
        new: Some(excerpt(text.text, one.at, one.to).into()),
        ..Finding::new(rule(one.rule), one.message, "")
    };
    found.into_iter().map(finding).collect()
}

/// A part of a text, escaped so that every character is visible.
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
    // Indented texts are shown in one line.
    let mut out = String::with_capacity(shown.len());
    for c in shown.chars() {
        if c != ' ' || !out.ends_with(' ') {
            out.push(c);
        }
    }
    out
}

/// Errors first, then in the order of the tool; bounded in number; each with its remedy.
fn finish(linted: &mut LintResult) {
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

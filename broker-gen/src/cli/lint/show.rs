//! Findings of the lint for people and as JSON.

use std::fmt::Write as _;
use std::path::Path;

use crate::lint::advice;
use broker_drift::{Finding, FindingSeverity, LintResult};
use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::{counted, is_invisible, shell_word, shown, shown_line};
use broker_terminal::Layout as _;
use serde_json::{Value, json};

/// The version of the JSON format.
const FORMAT_VERSION: u64 = 1;
/// Maximum number of shown findings of one tool; the JSON form has all.
const SHOWN_FINDINGS: usize = 8;

/// The counts of the run: checked texts, and findings that are not shown.
#[derive(Debug)]
pub(super) struct LintRun {
    pub(super) sources: usize,
    pub(super) tools: usize,
    pub(super) suppressed: usize,
}

pub(in crate::cli) fn has_errors(one: &LintResult) -> bool {
    one.findings
        .iter()
        .any(|finding| finding.severity == FindingSeverity::Error)
}

pub(super) fn count(linted: &[LintResult], severity: FindingSeverity) -> usize {
    let all = linted.iter().flat_map(|one| &one.findings);
    all.filter(|finding| finding.severity == severity).count()
}

/// One block per tool, those with errors first.
pub(super) fn human(linted: &[LintResult]) -> Text {
    let mut blocks: Vec<&LintResult> = linted.iter().collect();
    blocks.sort_by_key(|one| !has_errors(one));
    let mut out = Text::new();
    for one in blocks {
        let what = if one.tool.is_some() { "" } else { "source " };
        out.push(text!("{}{}\n", what, shown_line(&one.path, 200)));
        let shown = &one.findings[..one.findings.len().min(SHOWN_FINDINGS)];
        for (index, finding) in shown.iter().enumerate() {
            write_finding(&mut out, one, finding);
            // Consecutive findings of one rule share their remedy.
            if shown
                .get(index + 1)
                .is_none_or(|next| next.rule != finding.rule)
            {
                out.wrap("    help ", "         ", advice(finding.rule));
            }
        }
        if one.findings.len() > shown.len() {
            let more = one.findings.len() - shown.len();
            out.push(text!("  … and {} more\n", more));
        }
    }
    out
}

/// The command that accepts a harmless finding; empty without findings.
pub(super) fn settle(linted: &[LintResult], config: &Path) -> Text {
    if linted.is_empty() {
        return Text::new();
    }
    text!(
        "accept harmless findings with\n  {} --source … --tool … --rule … --reason …\n",
        accept(config)
    )
}

/// The command that suppresses a finding of this config.
pub(super) fn accept(config: &Path) -> String {
    format!(
        "broker-gen accept --config {}",
        shell_word(&config.to_string_lossy())
    )
}

fn write_finding(out: &mut Text, one: &LintResult, finding: &Finding) {
    let message = shown_line(&finding.message, 300);
    let rule = text!("  {}[{}] ", finding.severity.as_str(), finding.rule);
    out.wrap(rule, "    ", &message);
    let pointer = shown_line(&finding.pointer, 300);
    out.wrap("    at   ", "         ", &pointer);
    let text = finding.new.as_ref().and_then(Value::as_str).map(shown);
    // A name is not repeated.
    let is_said = |text: &String| {
        message.contains(&format!("`{text}`")) || shown(&one.path).ends_with(&format!("/{text}"))
    };
    if let Some(text) = text.filter(|text| !is_said(text)) {
        out.wrap("    text ", "         ", &text);
    }
}

pub(super) fn summary(linted: &[LintResult], looked: &LintRun) -> Text {
    let [errors, warnings] =
        [FindingSeverity::Error, FindingSeverity::Warning].map(|severity| count(linted, severity));
    text!(
        "summary: {}, {}, {} suppressed; checked {} of {}\n",
        counted(errors, "error"),
        counted(warnings, "warning"),
        looked.suppressed,
        counted(looked.tools, "tool"),
        counted(looked.sources, "source"),
    )
}

pub(super) fn to_json(linted: &[LintResult], looked: &LintRun) -> Value {
    json!({
        "format_version": FORMAT_VERSION,
        "linted": linted,
        "summary": {
            "error": count(linted, FindingSeverity::Error),
            "warning": count(linted, FindingSeverity::Warning),
            "suppressed": looked.suppressed,
            "tools": looked.tools,
            "sources": looked.sources,
        },
    })
}

/// The entries of the audits file that would suppress the errors of one tool.
pub(super) fn suppressions(one: &LintResult) -> Text {
    let mut rules: Vec<&str> = one
        .findings
        .iter()
        .filter(|finding| finding.severity == FindingSeverity::Error)
        .map(|finding| finding.rule)
        .collect();
    rules.dedup();
    let mut out = Text::new();
    for rule in rules {
        out.push(text!("  [[suppressions]]\n  rule = {}\n", toml(rule)));
        out.push(text!("  source = {}\n", toml(one.source.as_str())));
        if let Some(tool) = &one.tool {
            out.push(text!("  tool = {}\n", toml(tool)));
        }
        out.push(text!("  digest = {}\n", toml(one.digest.as_str())));
        out.push("  reason = \"…\"\n  who = \"…\"\n  date = \"…\"\n");
    }
    out
}

/// A TOML string with every invisible character escaped.
fn toml(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() || is_invisible(c) => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

//! Findings of the lint as people and programs read them.

use std::fmt::Write as _;

use broker_model::drift::{Finding, FindingSeverity};
use broker_model::lint::Linted;
use broker_model::text::{counted, is_invisible, shown, shown_line};
use serde_json::{Value, json};

/// The version of the JSON shape.
const FORMAT_VERSION: u64 = 1;
/// Findings of one tool that are shown; the JSON form has all.
const SHOWN_FINDINGS: usize = 8;

/// What was looked at, and what of it is not told.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) sources: usize,
    pub(super) tools: usize,
    pub(super) suppressed: usize,
}

pub(super) fn has_errors(one: &Linted) -> bool {
    one.findings
        .iter()
        .any(|finding| finding.severity == FindingSeverity::Error)
}

pub(super) fn count(linted: &[Linted], severity: FindingSeverity) -> usize {
    let all = linted.iter().flat_map(|one| &one.findings);
    all.filter(|finding| finding.severity == severity).count()
}

/// One block a tool, those with errors first.
pub(super) fn human(linted: &[Linted]) -> String {
    let mut blocks: Vec<&Linted> = linted.iter().collect();
    blocks.sort_by_key(|one| !has_errors(one));
    let mut out = String::new();
    for one in blocks {
        let what = if one.tool.is_some() {
            ""
        } else {
            "instructions of "
        };
        // Writing to memory does not fail.
        let _ = writeln!(out, "{what}{}", shown_line(&one.path, 200));
        let shown = one.findings.iter().take(SHOWN_FINDINGS);
        let mut last = "";
        for (index, finding) in shown.enumerate() {
            if index > 0 && finding.rule != last {
                help(&mut out, &one.findings[index - 1]);
            }
            last = finding.rule;
            write_finding(&mut out, finding);
        }
        if one.findings.len() > SHOWN_FINDINGS {
            let more = one.findings.len() - SHOWN_FINDINGS;
            let _ = writeln!(out, "  … and {more} more");
        } else if let Some(finding) = one.findings.last() {
            help(&mut out, finding);
        }
    }
    out
}

fn write_finding(out: &mut String, finding: &Finding) {
    let _ = writeln!(
        out,
        "  {}[{}] {}",
        finding.severity.as_str(),
        finding.rule,
        shown_line(&finding.message, 300)
    );
    let _ = writeln!(out, "    at   {}", shown_line(&finding.pointer, 300));
    if let Some(text) = finding.new.as_ref().and_then(Value::as_str) {
        let _ = writeln!(out, "    text {}", shown(text));
    }
}

fn help(out: &mut String, finding: &Finding) {
    let _ = writeln!(out, "    help: {}", shown_line(&finding.remedy, 500));
}

pub(super) fn summary(linted: &[Linted], looked: &Looked) -> String {
    let [errors, warnings] =
        [FindingSeverity::Error, FindingSeverity::Warning].map(|severity| count(linted, severity));
    format!(
        "summary: {}, {}, {} suppressed; looked at {} of {}\n",
        counted(errors, "error"),
        counted(warnings, "warning"),
        looked.suppressed,
        counted(looked.tools, "tool"),
        counted(looked.sources, "source"),
    )
}

pub(super) fn to_json(linted: &[Linted], looked: &Looked) -> Value {
    let tools = linted.iter().map(|one| {
        json!({
            "source": one.source.as_str(),
            "tool": one.tool,
            "path": one.path,
            "digest": one.digest.as_str(),
            "findings": one.findings.iter().map(Finding::to_json).collect::<Vec<_>>(),
        })
    });
    json!({
        "format_version": FORMAT_VERSION,
        "linted": tools.collect::<Vec<_>>(),
        "summary": {
            "error": count(linted, FindingSeverity::Error),
            "warning": count(linted, FindingSeverity::Warning),
            "suppressed": looked.suppressed,
            "tools": looked.tools,
            "sources": looked.sources,
        },
    })
}

/// What the audits file would need so that the errors of one tool are let pass.
pub(super) fn suppressions(one: &Linted) -> String {
    let mut rules: Vec<&str> = one
        .findings
        .iter()
        .filter(|finding| finding.severity == FindingSeverity::Error)
        .map(|finding| finding.rule)
        .collect();
    rules.dedup();
    let mut out = String::new();
    for rule in rules {
        let _ = writeln!(out, "  [[suppressions]]\n  rule = {}", toml(rule));
        let _ = writeln!(out, "  source = {}", toml(one.source.as_str()));
        if let Some(tool) = &one.tool {
            let _ = writeln!(out, "  tool = {}", toml(tool));
        }
        let _ = writeln!(out, "  digest = {}", toml(one.digest.as_str()));
        out.push_str("  reason = \"…\"\n  who = \"…\"\n  date = \"…\"\n");
    }
    out
}

/// A string of TOML, in which everything is seen.
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

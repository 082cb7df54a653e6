//! Findings of the lint for people and as JSON.

use std::cmp::Reverse;
use std::path::Path;

use crate::audits::quoted;
use crate::lint::{advice, rules};
use broker_drift::{Finding, FindingSeverity, LintResult, Rule};
use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::{counted, shell_word, shown, shown_line};
use broker_terminal::Layout as _;
use serde_json::{Value, json};

/// The version of the JSON format.
const FORMAT_VERSION: u64 = 1;
/// Maximum number of errors of one rule that are shown in full; the JSON form has all.
const SHOWN_ERRORS: usize = 20;
/// Maximum number of warnings of one rule that are shown in full.
const SHOWN_WARNINGS: usize = 3;
/// Maximum number of tools that a line with a count names.
const NAMED_PATHS: usize = 4;

/// The counts of the run: checked texts, and findings that are not shown.
#[derive(Debug)]
pub struct LintRun {
    pub sources: usize,
    pub tools: usize,
    pub suppressed: usize,
}

pub fn has_errors(one: &LintResult) -> bool {
    one.findings
        .iter()
        .any(|finding| finding.severity == FindingSeverity::Error)
}

pub fn count(linted: &[LintResult], severity: FindingSeverity) -> usize {
    let all = linted.iter().flat_map(|one| &one.findings);
    all.filter(|finding| finding.severity == severity).count()
}

/// One block for each rule, errors first. A rule with many findings is one line with a count; `more` is the
/// end of that line: the command that shows all of them.
pub fn human(linted: &[LintResult], more: &str, all: bool) -> Text {
    let mut out = Text::new();
    for group in groups(linted) {
        let shown = group
            .findings
            .len()
            .min(if all { usize::MAX } else { group.shown() });
        for (one, finding) in &group.findings[..shown] {
            write_finding(&mut out, one, finding);
        }
        if group.findings.len() > shown {
            write_folded(&mut out, &group, shown, more);
        }
        out.wrap("    help ", "         ", advice(group.rule.id));
    }
    out
}

/// The findings of one rule.
struct Group<'a> {
    rule: &'static Rule,
    severity: FindingSeverity,
    findings: Vec<(&'a LintResult, &'a Finding)>,
}

fn groups(linted: &[LintResult]) -> Vec<Group<'_>> {
    let all = linted
        .iter()
        .flat_map(|one| one.findings.iter().map(move |finding| (one, finding)));
    let of_rule = |rule: &'static Rule| {
        let findings: Vec<_> = all
            .clone()
            .filter(|(_, finding)| finding.rule == rule.id)
            .collect();
        let severity = findings.iter().map(|(_, finding)| finding.severity).max()?;
        Some(Group {
            rule,
            severity,
            findings,
        })
    };
    let mut groups: Vec<_> = rules().iter().filter_map(of_rule).collect();
    // Stable, so that rules of one severity are in the order of their page.
    groups.sort_by_key(|group| Reverse(group.severity));
    groups
}

impl Group<'_> {
    /// The number of findings that are shown in full. Names explain themselves; a text has to be read.
    fn shown(&self) -> usize {
        const OF_NAMES: [&str; 5] = [
            "confusable-name",
            "mixed-script-name",
            "near-duplicate-description",
            "parameter-asks",
            "same-name",
        ];
        let count = self.findings.len();
        match self.severity {
            FindingSeverity::Error => SHOWN_ERRORS,
            _ if count <= SHOWN_WARNINGS => count,
            _ if OF_NAMES.contains(&self.rule.id) => 0,
            _ => SHOWN_WARNINGS,
        }
    }
}

/// The findings after the first `shown` in one line.
fn write_folded(out: &mut Text, group: &Group<'_>, shown: usize, more: &str) {
    let rest = &group.findings[shown..];
    let mut paths: Vec<&str> = rest.iter().map(|(one, _)| one.path.as_str()).collect();
    paths.dedup();
    let named: Vec<_> = paths
        .iter()
        .take(NAMED_PATHS)
        .map(|path| shown_line(path, 200))
        .collect();
    let others = match paths.len().saturating_sub(NAMED_PATHS) {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let place = if shown > 0 { "more place" } else { "place" };
    let count = counted(rest.len(), place);
    let reason = group.rule.reason.trim_end_matches('.');
    let line = format!("{count}: {reason}");
    let rule = text!("{}[{}] ", group.severity.as_str(), group.rule.id);
    out.wrap(rule, "    ", &line);
    out.wrap(
        "    at   ",
        "         ",
        &format!("{}{others}; {more}", named.join(", ")),
    );
}

/// The command that accepts all harmless findings; empty without findings.
pub fn settle(linted: &[LintResult], config: &Path) -> Text {
    let all: Vec<_> = groups(linted);
    if all.is_empty() {
        return Text::new();
    }
    // Each error needs a separate decision.
    let warnings = all
        .iter()
        .filter(|group| group.severity != FindingSeverity::Error);
    let rules: String = warnings
        .map(|group| format!(" --rule {}", group.rule.id))
        .collect();
    let mut out = Text::new();
    if all
        .iter()
        .any(|group| group.severity == FindingSeverity::Error)
    {
        out.push(text!(
            "accept a harmless error with\n  {} --source … --tool … --rule … --reason …\n",
            accept(config)
        ));
    }
    if !rules.is_empty() {
        out.push(text!(
            "accept the warnings, if all of them are harmless, with\n  {} --all{} --reason …\n",
            accept(config),
            rules
        ));
    }
    out
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
    let path = shown_line(&one.path, 200);
    let rule = text!("{}[{}] ", finding.severity.as_str(), finding.rule);
    let what = if one.tool.is_some() { "" } else { "source " };
    out.wrap(rule, "    ", &format!("{what}{path}: {message}"));
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

pub fn summary(linted: &[LintResult], looked: &LintRun) -> Text {
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

pub fn to_json(linted: &[LintResult], looked: &LintRun) -> Value {
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
pub fn suppressions(one: &LintResult) -> Text {
    let mut rules: Vec<&str> = one
        .findings
        .iter()
        .filter(|finding| finding.severity == FindingSeverity::Error)
        .map(|finding| finding.rule)
        .collect();
    rules.dedup();
    let mut out = Text::new();
    for rule in rules {
        out.push(text!("  [[suppressions]]\n  rule = {}\n", quoted(rule)));
        out.push(text!("  source = {}\n", quoted(one.source.as_str())));
        if let Some(tool) = &one.tool {
            out.push(text!("  tool = {}\n", quoted(tool)));
        }
        out.push(text!("  digest = {}\n", quoted(one.digest.as_str())));
        out.push("  reason = \"…\"\n  who = \"…\"\n  date = \"…\"\n");
    }
    out
}

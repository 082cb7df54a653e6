//! The differences between the sources and the lock as operators see them: of each finding the reviewed and the live value, an
//! example, and the remedy. Every part is bounded.

use std::io::{self, Write};

use broker_drift::{Finding, Report};
use serde::Serialize;
use serde_json::Value;

use crate::Fleet;
use crate::catalog::EntryKind;
use crate::view::View;

/// Maximum number of entries.
const MAX_ENTRIES: usize = 100;
/// Maximum number of findings of an entry.
const MAX_FINDINGS: usize = 10;
/// Maximum bytes of the text of a value.
const MAX_VALUE_BYTES: usize = 2000;
/// The end of a value that was cut.
const CUT: &str = "… (cut)";

/// The differences that the latest comparisons found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Differences {
    /// The first tools and sources that differ.
    pub entries: Vec<DifferingEntry>,
    /// The number of further ones.
    pub more: usize,
    /// The sources that were not compared since the start.
    pub not_compared: Vec<&'static str>,
}

/// A tool or a source that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DifferingEntry {
    /// Its path.
    pub path: String,
    /// The name of the tool at its server; absent for a source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The class of the worst finding.
    pub class: &'static str,
    /// Whether it is in the lock.
    pub is_reviewed: bool,
    /// Whether calls of it are refused.
    pub withdraws: bool,
    /// The first findings.
    pub findings: Vec<ShownFinding>,
    /// The number of further ones.
    pub more: usize,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownFinding {
    /// The rule.
    pub rule: &'static str,
    /// The class.
    pub class: &'static str,
    /// A pointer into the tool or the listing of the source.
    pub pointer: String,
    /// The difference in one sentence.
    pub message: String,
    /// The reviewed value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewed: Option<String>,
    /// The live value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<String>,
    /// A call or an answer as an example.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness: Option<String>,
    /// The command that resolves it.
    pub remedy: String,
}

impl Differences {
    pub(crate) fn new(fleet: &Fleet) -> Self {
        let view = fleet.drift_state.view_after_verdicts();
        let mut all = Self::default();
        let reports = fleet.drift_state.reports();
        for (source, report) in fleet.catalog.sources.iter().zip(reports.iter()) {
            match report {
                Some(report) => all.add(report, fleet, &view),
                None => all.not_compared.push(source.path),
            }
        }
        drop(reports);
        all
    }

    fn add(&mut self, report: &Report, fleet: &Fleet, view: &View) {
        for one in &report.sources {
            let withdraws = one.class.withdraws_source() || one.class.withdraws_tools_of_source();
            self.push(one.class.as_str(), &one.findings, |findings| {
                DifferingEntry {
                    path: cut(one.source.as_str().to_owned()),
                    tool: None,
                    is_reviewed: true,
                    withdraws,
                    ..findings
                }
            });
        }
        for one in &report.tools {
            let entry = fleet.catalog.find(&one.path);
            let item = entry.and_then(|at| match fleet.catalog.entry(at).kind {
                EntryKind::Item(item) => Some(item),
                EntryKind::Node { .. } => None,
            });
            self.push(one.class.as_str(), &one.findings, |findings| {
                DifferingEntry {
                    path: cut(one.path.clone()),
                    tool: Some(cut(one.tool.clone())),
                    is_reviewed: item.is_some(),
                    withdraws: item.is_some_and(|item| view.withdrawn(item).is_some()),
                    ..findings
                }
            });
        }
    }

    fn push(
        &mut self,
        class: &'static str,
        findings: &[Finding],
        complete: impl FnOnce(DifferingEntry) -> DifferingEntry,
    ) {
        if self.entries.len() == MAX_ENTRIES {
            self.more += 1;
            return;
        }
        self.entries.push(complete(DifferingEntry {
            path: String::new(),
            tool: None,
            class,
            is_reviewed: false,
            withdraws: false,
            findings: findings.iter().take(MAX_FINDINGS).map(shown).collect(),
            more: findings.len().saturating_sub(MAX_FINDINGS),
        }));
    }
}

fn shown(finding: &Finding) -> ShownFinding {
    let text = |value: &Option<Value>| value.as_ref().map(value_text);
    ShownFinding {
        rule: finding.rule,
        class: finding.class.as_str(),
        pointer: cut(finding.pointer.clone()),
        message: cut(finding.message.clone()),
        reviewed: text(&finding.old),
        live: text(&finding.new),
        witness: text(&finding.witness),
        remedy: cut(finding.remedy.clone()),
    }
}

/// Returns a value as text: a string as it is, another value as JSON.
fn value_text(value: &Value) -> String {
    if let Value::String(text) = value {
        let mut end = text.len().min(MAX_VALUE_BYTES + 1);
        while !text.is_char_boundary(end) {
            end += 1;
        }
        return cut(text[..end].to_owned());
    }
    let mut start = Start(Vec::new());
    // It fails once the text is too long.
    let _ = serde_json::to_writer_pretty(&mut start, value);
    cut(String::from_utf8_lossy(&start.0).into_owned())
}

/// Cuts a text that is too long.
fn cut(mut text: String) -> String {
    if text.len() > MAX_VALUE_BYTES {
        let mut end = MAX_VALUE_BYTES;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(CUT);
    }
    text
}

/// Keeps the start of a text, and refuses to be written to after that: the rest of a long value costs no time.
struct Start(Vec<u8>);

impl Write for Start {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() > MAX_VALUE_BYTES {
            return Err(io::Error::other("the text is too long"));
        }
        self.0
            .extend_from_slice(&bytes[..bytes.len().min(MAX_VALUE_BYTES + 1)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_of_a_value_is_bounded() {
        for (value, expected) in [
            (json!("a\u{202e}"), "a\u{202e}"),
            (json!({"a": 1}), "{\n  \"a\": 1\n}"),
            (Value::Null, "null"),
        ] {
            assert_eq!(value_text(&value), expected);
        }
        let long = "ä".repeat(1 << 20);
        for value in [
            json!(long),
            json!([long]),
            json!(vec![1; 1 << 20]),
            json!({ long: 1 }),
        ] {
            let text = value_text(&value);
            assert!(text.len() <= MAX_VALUE_BYTES + CUT.len(), "{}", text.len());
            assert!(text.ends_with(CUT));
        }
    }

    #[test]
    fn number_of_entries_is_bounded() {
        let mut all = Differences::default();
        for _ in 0..MAX_ENTRIES + 5 {
            all.push("text", &[], |entry| entry);
        }
        assert_eq!((all.entries.len(), all.more), (MAX_ENTRIES, 5));
    }
}

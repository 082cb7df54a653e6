//! The report for a terminal of 80 columns without colour: the worst first, one block per tool.
//!
//! All text of a server is escaped and cut.

use std::fmt;

use serde_json::Value;

use super::report::{Class, Finding, Report, SourceDrift, ToolDrift};
use super::text_diff::{text_diff, unified};
use broker_model::json::to_review_text;
use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::shown_line;
use broker_terminal::{Layout as _, WIDTH, columns};

/// Maximum characters of a shown witness.
const WITNESS: usize = 400;
/// Maximum number of shown findings of one tool; the JSON form has all.
const SHOWN_FINDINGS: usize = 8;
/// Maximum number of shown lines of one change.
const SHOWN_LINES: usize = 30;

/// The names of the two sides of a report.
type Sides = [&'static str; 2];

/// A report on two locks.
#[derive(Debug)]
pub struct BetweenLocks<'a>(pub &'a Report);

/// [`Report::text`].
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().as_str())
    }
}

impl BetweenLocks<'_> {
    /// The whole report.
    pub fn text(&self) -> Text {
        render(self.0, ["old ", "new "])
    }
}

impl SourceDrift {
    /// Its title for people.
    pub fn title(&self) -> String {
        format!("source {}", self.source)
    }
}

impl ToolDrift {
    /// Its title for people: its path, and the server's name if it differs.
    pub fn title(&self) -> String {
        let path = shown_line(&self.path, 200);
        let name = shown_line(&self.tool, 100);
        if path.ends_with(&format!("/{name}")) {
            path
        } else {
            format!("{path} (`{name}`)")
        }
    }
}

impl Report {
    /// The whole report.
    pub fn text(&self) -> Text {
        render(self, ["lock", "live"])
    }

    /// `1 same, 2 breaking`: the number of each class.
    pub fn counts(&self) -> String {
        let summary = self.summary();
        let counts = Class::ALL
            .into_iter()
            .map(|class| (class, summary.get(&class).copied().unwrap_or_default()))
            .filter(|(class, count)| *count > 0 || *class == Class::Same);
        let counts: Vec<_> = counts
            .map(|(class, count)| format!("{count} {}", class.as_str()))
            .collect();
        counts.join(", ")
    }
}

impl Finding {
    /// The change of this finding for people: a text as a unified diff of its lines, a long value as a diff of
    /// its JSON, a short one as both values. `sides` are the names of old and new.
    pub fn change(&self, sides: [&str; 2]) -> String {
        if self.pointer.is_empty() || (self.old.is_none() && self.new.is_none()) {
            return String::new();
        }
        if let (Some(Value::String(old)), Some(Value::String(new))) = (&self.old, &self.new)
            && (is_long(old) || is_long(new))
        {
            return text_diff(old, new, sides, SHOWN_LINES);
        }
        let one_line = |value: &Option<Value>| {
            let value = value.as_ref();
            value.map_or_else(|| "(absent)".to_owned(), Value::to_string)
        };
        let lines = sides
            .into_iter()
            .zip([&self.old, &self.new].map(one_line))
            .map(|(side, value)| format!("{side} {}", shown_line(&value, usize::MAX)));
        let lines: Vec<_> = lines.collect();
        if lines.iter().all(|line| columns(line) <= WIDTH - 4) {
            return lines.join("\n");
        }
        let pretty = |value: &Option<Value>| value.as_ref().map(to_review_text).unwrap_or_default();
        unified(&pretty(&self.old), &pretty(&self.new), sides, SHOWN_LINES)
    }

    /// Whether another finding has the same change.
    pub fn shows_what(&self, other: &Self) -> bool {
        self.old.is_some()
            && (&self.pointer, &self.old, &self.new) == (&other.pointer, &other.old, &other.new)
    }

    /// The witness in one sentence.
    pub fn example(&self) -> Option<String> {
        let witness = self.witness.as_ref()?;
        let what = if self.rule.starts_with("output") {
            "answer"
        } else {
            "call"
        };
        Some(format!(
            "for example the {what} {}",
            shown_line(&witness.to_string(), WITNESS)
        ))
    }
}

/// Longer than one line with its side, or of several lines.
fn is_long(text: &str) -> bool {
    text.contains('\n') || columns(text) > 60
}

fn render(report: &Report, sides: Sides) -> Text {
    let sources = report
        .sources
        .iter()
        .map(|source| (source.class, source.title(), source.findings.as_slice()));
    let tools = report
        .tools
        .iter()
        .map(|tool| (tool.class, tool.title(), tool.findings.as_slice()));
    let mut blocks: Vec<_> = sources.chain(tools).collect();
    // Stable, so that blocks of one class stay in the lock's order.
    blocks.sort_by_key(|(class, ..)| std::cmp::Reverse(*class));
    let mut out = Text::new();
    for (class, title, findings) in blocks {
        out.wrap("", "  ", &format!("{}: {title}", class.as_str()));
        let mut remedy = "";
        for (index, finding) in findings.iter().take(SHOWN_FINDINGS).enumerate() {
            if finding.remedy != remedy && !remedy.is_empty() {
                help(&mut out, remedy);
            }
            remedy = &finding.remedy;
            write_finding(&mut out, finding, &findings[..index], sides);
        }
        if findings.len() > SHOWN_FINDINGS {
            out.push(text!(
                "  … and {} more places\n",
                findings.len() - SHOWN_FINDINGS
            ));
        }
        help(&mut out, remedy);
    }
    out.push(text!("summary: {}\n", report.counts()));
    out
}

fn help(out: &mut Text, remedy: &str) {
    out.wrap("  help: ", "        ", &shown_line(remedy, 400));
}

fn write_finding(out: &mut Text, finding: &Finding, before: &[Finding], sides: Sides) {
    // Only the message of a source that could not be started or listed has several lines, each already
    // escaped.
    let lines = match finding.class {
        Class::Unchecked => finding.message.lines().take(8).collect(),
        _ => vec![finding.message.as_str()],
    };
    for (index, line) in lines.into_iter().enumerate() {
        let line = shown_line(line, 400);
        if index == 0 {
            let (severity, rule) = (finding.severity.as_str(), finding.rule);
            out.wrap("  ", "    ", &format!("{severity}[{rule}] {line}"));
        } else {
            out.wrap("    ", "    ", &line);
        }
    }
    if !finding.pointer.is_empty() {
        out.push(text!("    at  {}\n", shown_line(&finding.pointer, 300)));
    }
    if before.iter().any(|other| other.shows_what(finding)) {
        out.push("    the same change as above\n");
        return;
    }
    out.push(Text::lines("    ", &finding.change(sides)));
    if let Some(example) = finding.example() {
        out.wrap("    ", "      ", &example);
    }
}

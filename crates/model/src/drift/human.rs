//! The report for a terminal: the worst first, one block a tool, readable without colour.
//!
//! Everything a server wrote is shown escaped and cut.

use std::fmt;

use serde_json::Value;

use super::report::{Class, Finding, Report};
use crate::text::shown_line;

/// Characters of a value that are shown.
const VALUE_WIDTH: usize = 160;
/// Findings of one tool that are shown; the JSON form has all.
const SHOWN_FINDINGS: usize = 8;

/// What the two sides of a report are called.
type Sides = [&'static str; 2];

/// A report on two locks, where nothing is live.
#[derive(Debug)]
pub struct BetweenLocks<'a>(pub &'a Report);

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, ["lock", "live"])
    }
}

impl fmt::Display for BetweenLocks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, ["old ", "new "])
    }
}

impl Report {
    fn write(&self, f: &mut fmt::Formatter<'_>, sides: Sides) -> fmt::Result {
        let mut blocks: Vec<(Class, String, &[Finding])> = Vec::new();
        for source in &self.sources {
            blocks.push((
                source.class,
                format!("source {}", source.source),
                &source.findings,
            ));
        }
        for tool in &self.tools {
            let path = shown_line(&tool.path, 200);
            let name = shown_line(&tool.tool, 100);
            let title = if path.ends_with(&format!("/{name}")) {
                path
            } else {
                format!("{path} (`{name}`)")
            };
            blocks.push((tool.class, title, &tool.findings));
        }
        // Stable, so that blocks of one class stay in the lock's order.
        blocks.sort_by_key(|(class, ..)| std::cmp::Reverse(*class));
        for (class, title, findings) in blocks {
            writeln!(f, "{}: {title}", class.as_str())?;
            let mut remedy = "";
            for finding in findings.iter().take(SHOWN_FINDINGS) {
                if finding.remedy != remedy && !remedy.is_empty() {
                    writeln!(f, "  help: {}", shown_line(remedy, 400))?;
                }
                remedy = &finding.remedy;
                write_finding(f, finding, sides)?;
            }
            if findings.len() > SHOWN_FINDINGS {
                writeln!(f, "  … and {} more places", findings.len() - SHOWN_FINDINGS)?;
            }
            writeln!(f, "  help: {}", shown_line(remedy, 400))?;
        }
        let summary = self.summary();
        let counts = Class::ALL
            .into_iter()
            .map(|class| (class, summary.get(&class).copied().unwrap_or_default()))
            .filter(|(class, count)| *count > 0 || *class == Class::Same);
        let counts: Vec<_> = counts
            .map(|(class, count)| format!("{count} {}", class.as_str()))
            .collect();
        writeln!(f, "summary: {}", counts.join(", "))
    }
}

fn write_finding(f: &mut fmt::Formatter<'_>, finding: &Finding, sides: Sides) -> fmt::Result {
    writeln!(
        f,
        "  {}[{}] {}",
        finding.severity.as_str(),
        finding.rule,
        shown_line(&finding.message, 400)
    )?;
    if !finding.pointer.is_empty() {
        writeln!(f, "    at  {}", shown_line(&finding.pointer, 300))?;
        for (mark, value) in sides.into_iter().zip([&finding.old, &finding.new]) {
            let value = value
                .as_ref()
                .map_or_else(|| "(absent)".to_owned(), Value::to_string);
            writeln!(f, "    {mark} {}", shown_line(&value, VALUE_WIDTH))?;
        }
    }
    if let Some(witness) = &finding.witness {
        let what = if finding.rule.starts_with("output") {
            "answer"
        } else {
            "call"
        };
        let shown = shown_line(&witness.to_string(), VALUE_WIDTH);
        writeln!(f, "    for example the {what} {shown}")?;
    }
    Ok(())
}

//! The drift report for a terminal of 80 columns without colour: the worst first, one block per tool. Tools with
//! equal findings share a block, and each remedy is written once, at the end.
//!
//! All text of a server is escaped and cut.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};

use broker_drift::{BUILD, Class, Finding, RELOCK, Report, SERVE, access_lines};
use broker_model::json::to_review_text;
use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::shown_line;
use broker_terminal::{Layout as _, WIDTH, columns};
use serde_json::Value;

use crate::text_diff::{text_diff, unified};

#[cfg(test)]
mod tests;

/// Maximum number of shown findings of one tool; the JSON form has all.
const SHOWN_FINDINGS: usize = 8;
/// Maximum number of tools that are named if they share their findings.
const SHOWN_TITLES: usize = 20;
/// Maximum characters of a shown remedy.
const MAX_HELP: usize = 1000;
/// Maximum number of shown changes of access; the JSON form has all.
const SHOWN_ACCESS: usize = 40;
/// Maximum number of shown lines of one change.
const SHOWN_LINES: usize = 30;

/// Maximum number of shown lines about a source that could not be checked: its message, the likely reason,
/// and its output.
const UNCHECKED_LINES: usize = 14;

/// The names of the two sides of a report.
type Sides = [&'static str; 2];

/// Returns a report on live servers for people.
pub fn report_text(report: &Report) -> Text {
    render(report, ["lock", "live"])
}

/// Returns a report on two locks for people.
pub fn text_between_locks(report: &Report) -> Text {
    render(report, ["old ", "new "])
}

/// Returns the change of a finding for people: a text as a unified diff of its lines, a long value as a diff of
/// its JSON, a short one as both values. `sides` are the names of old and new.
pub fn change(finding: &Finding, sides: [&str; 2]) -> String {
    if finding.pointer.is_empty() || (finding.old.is_none() && finding.new.is_none()) {
        return String::new();
    }
    if let (Some(Value::String(old)), Some(Value::String(new))) = (&finding.old, &finding.new)
        && (is_long(old) || is_long(new))
    {
        return text_diff(old, new, sides, SHOWN_LINES);
    }
    let one_line = |value: &Option<Value>| {
        let value = value.as_ref();
        value.map_or_else(|| "(absent)".to_owned(), broker_model::json::to_text)
    };
    let lines = sides
        .into_iter()
        .zip([&finding.old, &finding.new].map(one_line))
        .map(|(side, value)| format!("{side} {}", shown_line(&value, usize::MAX)));
    let lines: Vec<_> = lines.collect();
    if lines.iter().all(|line| columns(line) <= WIDTH - 4) {
        return lines.join("\n");
    }
    let pretty = |value: &Option<Value>| value.as_ref().map(to_review_text).unwrap_or_default();
    unified(
        &pretty(&finding.old),
        &pretty(&finding.new),
        sides,
        SHOWN_LINES,
    )
}

/// Longer than one line with its side, or of several lines.
fn is_long(text: &str) -> bool {
    text.contains('\n') || columns(text) > 60
}

/// The blocks of a report, and the remedies that are not yet written.
#[derive(Default)]
struct Blocks<'a> {
    /// The title with the names, and the findings, of tools whose findings read the same.
    folded: Vec<(Class, Vec<String>, Text)>,
    /// The place in `folded` of findings that read the same.
    places: HashMap<(Class, String), usize>,
    /// Each text once, in the order of the blocks.
    remedies: Vec<&'a str>,
    /// The texts in `remedies`. A report may have as many as a listing has tools.
    known_remedies: HashSet<&'a str>,
}

fn render(report: &Report, sides: Sides) -> Text {
    let sources = report.sources.iter().map(|source| {
        (
            source.class,
            source.title(),
            None,
            source.findings.as_slice(),
        )
    });
    let tools = report.shown_tools().map(|tool| {
        let name = Some(tool.tool.as_str());
        (tool.class, tool.title(), name, tool.findings.as_slice())
    });
    let mut all: Vec<_> = sources.chain(tools).collect();
    // Stable, so that blocks of one class stay in the lock's order.
    all.sort_by_key(|(class, ..)| std::cmp::Reverse(*class));
    let mut blocks = Blocks::default();
    for (class, title, name, findings) in all {
        blocks.add(class, title, name, findings, sides);
    }
    let mut out = Text::new();
    for (class, titles, body) in &blocks.folded {
        let class = class.as_str();
        match titles.as_slice() {
            [title] => out.wrap("", "  ", &format!("{class}: {title}")),
            _ => {
                let named = titles[..titles.len().min(SHOWN_TITLES)].join(", ");
                let more = match titles.len().saturating_sub(SHOWN_TITLES) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let title = format!("{class}: {} tools: {named}{more}", titles.len());
                out.wrap("", "  ", &title);
            }
        }
        out.push(body.clone());
    }
    write_access(&mut out, report, sides);
    for remedy in remedies(report, &blocks.remedies) {
        out.wrap("help: ", "      ", &shown_line(&remedy, MAX_HELP));
    }
    out.push(text!("summary: {}\n", report.counts()));
    out
}

/// Who gains or loses what by the rules of access.
fn write_access(out: &mut Text, report: &Report, sides: Sides) {
    if report.access.is_empty() {
        return;
    }
    let condition = match sides {
        [_, "live"] => ", if what the servers offer now is locked",
        _ => "",
    };
    out.push(text!("access: who gains or loses what{}\n", condition));
    for line in access_lines(&report.access, SHOWN_ACCESS) {
        out.wrap("  ", "    ", &line);
    }
}

impl<'a> Blocks<'a> {
    fn add(
        &mut self,
        class: Class,
        title: String,
        name: Option<&str>,
        findings: &'a [Finding],
        sides: Sides,
    ) {
        let mut body = Text::new();
        for (index, finding) in findings.iter().take(SHOWN_FINDINGS).enumerate() {
            write_finding(&mut body, finding, &findings[..index], sides);
        }
        if findings.len() > SHOWN_FINDINGS {
            body.push(text!(
                "  … and {} more places\n",
                findings.len() - SHOWN_FINDINGS
            ));
        }
        for finding in findings.iter().take(SHOWN_FINDINGS) {
            let remedy = finding.remedy.as_str();
            // The remedy of a source that could not be started depends on its output.
            if class == Class::Unchecked {
                body.wrap("  help: ", "        ", &shown_line(remedy, MAX_HELP));
            } else if self.known_remedies.insert(remedy) {
                self.remedies.push(remedy);
            }
        }
        // Only the name differs between tools that were added, or that changed in the same way.
        let Some(name) = name else {
            return self.folded.push((class, vec![title], body));
        };
        let name = format!("`{}`", shown_line(name, usize::MAX));
        let neutral = body.as_str().replace(&name, "`…`");
        match self.places.entry((class, neutral)) {
            Entry::Vacant(place) => {
                place.insert(self.folded.len());
                self.folded.push((class, vec![title], body));
            }
            Entry::Occupied(place) => {
                let (_, titles, body) = &mut self.folded[*place.get()];
                titles.push(title);
                if titles.len() == 2 {
                    *body = Text::lines("", &place.key().1);
                }
            }
        }
    }
}

/// Each remedy once. Several that lock again are one, whose command names all of their sources.
fn remedies(report: &Report, all: &[&str]) -> Vec<String> {
    let is_relock = |remedy: &&&str| remedy.contains(RELOCK);
    let (relocks, others): (Vec<_>, Vec<_>) = all.iter().partition(is_relock);
    // A difference that needs no action says so.
    let is_action = |remedy: &&&str| !remedy.is_empty() && !remedy.starts_with("none");
    let others = others.into_iter().filter(is_action);
    let mut out: Vec<String> = others.map(|remedy| (*remedy).to_owned()).collect();
    match relocks.as_slice() {
        [] => {}
        [one] => out.push((**one).to_owned()),
        _ => out.push(relock_all(report)),
    }
    out
}

fn relock_all(report: &Report) -> String {
    let of_tools = report.tools.iter().map(|one| (&one.source, &one.findings));
    let of_sources = report
        .sources
        .iter()
        .map(|one| (&one.source, &one.findings));
    let relocked = of_sources.chain(of_tools).filter(|(_, findings)| {
        let mut findings = findings.iter();
        findings.any(|finding| finding.remedy.contains(RELOCK))
    });
    let sources: BTreeSet<_> = relocked.map(|(source, _)| source.as_str()).collect();
    let sources: String = sources
        .iter()
        .map(|source| format!(" --source {source}"))
        .collect();
    let config = report.config.as_ref();
    let config = config
        .map(|file| format!(" --config {file}"))
        .unwrap_or_default();
    let added = report.shown_tools().any(|tool| tool.class == Class::Added);
    let deny = if added {
        "; deny new tools in `tool_filter` to keep them hidden"
    } else {
        ""
    };
    let last = if report.is_served { SERVE } else { BUILD };
    format!("review the changes, then run {RELOCK}{config}{sources}`, {last}{deny}")
}

fn write_finding(out: &mut Text, finding: &Finding, before: &[Finding], sides: Sides) {
    // Only the message of a source that could not be started or listed has several lines, each already
    // escaped.
    let lines = match finding.class == Class::Unchecked {
        true => finding.message.lines().take(UNCHECKED_LINES).collect(),
        false => vec![finding.message.as_str()],
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
    out.push(Text::lines("    ", &change(finding, sides)));
    if let Some(example) = finding.example() {
        out.wrap("    ", "      ", &example);
    }
}

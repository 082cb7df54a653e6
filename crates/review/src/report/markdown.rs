//! A comment for a pull request: a table of relevant findings, with folded details.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use broker_doctor::change;
use broker_drift::{Class, FailOn, Finding, access_lines};
use broker_model::digest::Digest;
use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::{counted, shown_line};
use serde_json::json;

use super::{Block, BlockKind, ReportView, Sides};

/// The limits of a comment.
#[derive(Clone, Copy, Debug)]
struct CommentLimits {
    /// Maximum number of lines about access.
    access: usize,
    /// Maximum rows of the table.
    rows: usize,
    /// Maximum number of tools with details.
    details: usize,
    /// Maximum number of tools that a row names.
    row_titles: usize,
    /// Maximum number of tools that details name.
    detail_titles: usize,
    /// Maximum findings of one tool.
    findings: usize,
    /// Maximum length in characters, without the remedies at the end.
    chars: usize,
}

/// A comment of GitHub has at most 65 536 characters. The remedies take at most 5 lines of 400 characters, and the
/// escape of a character has at most 6.
const OF_A_COMMENT: CommentLimits = CommentLimits {
    access: 30,
    rows: 30,
    details: 30,
    row_titles: 10,
    detail_titles: 30,
    findings: 8,
    chars: 65_536 - 5 * 400 * 6 - 1_000,
};
const UNLIMITED: CommentLimits = CommentLimits {
    access: usize::MAX,
    rows: usize::MAX,
    details: usize::MAX,
    row_titles: usize::MAX,
    detail_titles: usize::MAX,
    findings: usize::MAX,
    chars: usize::MAX,
};

/// A comment within the limits of GitHub, and whether something is cut. `rest` says where the rest is.
pub(super) fn comment(shown: &ReportView<'_>, fail_on: FailOn, rest: &str) -> (Text, bool) {
    let whole = written(shown, fail_on, OF_A_COMMENT, rest);
    (whole.text, whole.is_cut)
}

/// The whole report.
pub(super) fn whole(shown: &ReportView<'_>, fail_on: FailOn) -> Text {
    written(shown, fail_on, UNLIMITED, "").text
}

/// A report that is being written within limits.
struct Page<'a> {
    text: Text,
    chars: usize,
    limits: CommentLimits,
    is_cut: bool,
    rest: &'a str,
}

impl Page<'_> {
    fn push(&mut self, part: impl Into<Text>) {
        let part = part.into();
        self.chars += part.as_str().chars().count();
        self.text.push(part);
    }

    /// Adds parts while there are at most `most` and they fit; then counts the rest.
    fn push_parts(&mut self, parts: impl ExactSizeIterator<Item = Text>, most: usize) {
        let count = parts.len();
        for (index, part) in parts.enumerate() {
            let chars = self.chars + part.as_str().chars().count();
            if index == most || chars > self.limits.chars {
                self.is_cut = true;
                let more = text!("\nand {} more{}\n", count - index, self.rest);
                return self.push(more);
            }
            self.push(part);
        }
    }
}

fn written<'a>(
    shown: &ReportView<'_>,
    fail_on: FailOn,
    limits: CommentLimits,
    rest: &'a str,
) -> Page<'a> {
    let blocks = shown.blocks();
    let report = shown.report;
    let verdict = if report.has_unchecked() || !shown.problems.findings().is_empty() {
        "not everything could be checked"
    } else if report.fails(fail_on) {
        "the tools drifted from the lock"
    } else if blocks.iter().any(|block| block.fails(fail_on)) {
        "suspicious texts"
    } else {
        "no failures"
    };
    let verdict = match shown.sides {
        Sides::Locks if report.fails(fail_on) => "the lock changes what is served",
        _ => verdict,
    };
    let linted = match shown.linted.len() {
        0 => String::new(),
        count => format!("; the lint points at {}", counted(count, "text")),
    };
    let mut out = Page {
        text: Text::new(),
        chars: 0,
        limits,
        is_cut: false,
        rest,
    };
    out.push(text!(
        "### MCP tools: {}\n\n{}{}\n",
        verdict,
        report.counts(),
        linted
    ));
    if !report.access.is_empty() {
        out.push("\n#### Who gains or loses what\n\n");
        out.is_cut |= report.access.len() > limits.access;
        for line in access_lines(&report.access, limits.access) {
            out.push(text!("- {}\n", inert(&line)));
        }
    }
    if blocks.is_empty() {
        return out;
    }
    out.push("\n| class | what | change | rule |\n|---|---|---|---|\n");
    let rows = Group::join(&blocks);
    out.is_cut |= rows.iter().any(|group| {
        group.titles.len() > limits.row_titles || group.block.findings.len() > limits.findings
    });
    let rows = rows.iter().map(|group| group.row(limits.row_titles));
    out.push_parts(rows, limits.rows);
    let detailed: Vec<_> = blocks
        .iter()
        .filter(|block| ![Class::Added, Class::Same].contains(&block.class))
        .collect();
    let groups = Group::join(detailed.iter().copied());
    if !detailed.is_empty() {
        out.push("\n<details><summary>What changed</summary>\n");
        let parts = groups.iter().map(|group| group.details(shown, limits));
        out.push_parts(parts, limits.details);
        out.push("\n</details>\n");
    }
    let mut remedies: Vec<&str> = detailed
        .iter()
        .flat_map(|block| block.findings.iter().map(|finding| finding.remedy.as_str()))
        .collect();
    remedies.sort_unstable();
    remedies.dedup();
    for remedy in remedies.iter().take(5) {
        out.push(text!("\n- {}\n", inert(&shown_line(remedy, 400))));
    }
    out
}

/// Tools, or one source, with equal findings.
struct Group<'a> {
    titles: Vec<&'a str>,
    /// The first one.
    block: &'a Block<'a>,
}

impl<'a> Group<'a> {
    /// Joins the blocks with equal findings, in the order of the first of each.
    fn join(blocks: impl IntoIterator<Item = &'a Block<'a>>) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        let mut known: HashMap<Digest, usize> = HashMap::new();
        for block in blocks {
            let title = block.title.as_str();
            match known.entry(digest_without_the_name(block)) {
                Entry::Occupied(place) => groups[*place.get()].titles.push(title),
                Entry::Vacant(place) => {
                    place.insert(groups.len());
                    let titles = vec![title];
                    groups.push(Self { titles, block });
                }
            }
        }
        groups
    }

    /// The titles, the first ones by name.
    fn title(&self, most: usize, chars: usize) -> Text {
        let mut out = Text::new();
        for (index, title) in self.titles.iter().take(most).enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            let title = inert(&shown_line(title, chars));
            out.push(text!("{}<code>{}</code>", separator, title));
        }
        if let Some(more @ 1..) = self.titles.len().checked_sub(most) {
            out.push(text!(" and {} more", more));
        }
        out
    }

    /// Returns the message of a finding. It names the tool only if it is the only one.
    fn message(&self, finding: &Finding) -> String {
        match self.titles.as_slice() {
            [_] => finding.message.clone(),
            _ => neutral(self.block, &finding.message),
        }
    }

    fn row(&self, titles: usize) -> Text {
        let class = self.block.class.as_str();
        let class = if self.block.class.withdraws() || self.block.class == Class::Unchecked {
            format!("**{class}**")
        } else {
            class.to_owned()
        };
        let findings = self.block.findings.iter();
        let worst = findings.max_by_key(|finding| (finding.class, finding.severity));
        let (message, rule) = worst.map_or_else(Default::default, |finding| {
            (shown_line(&self.message(finding), 120), finding.rule)
        });
        let more = match self.block.findings.len() {
            0 | 1 => String::new(),
            more => format!(" (and {} more)", more - 1),
        };
        text!(
            "| {} | {} | {}{} | {} |\n",
            class,
            self.title(titles, 120),
            inert(&message),
            more,
            rule
        )
    }

    fn details(&self, shown: &ReportView<'_>, limits: CommentLimits) -> Text {
        let mut out = text!(
            "\n<b>{}</b> {}\n",
            self.block.class.as_str(),
            self.title(limits.detail_titles, 200)
        );
        let findings = self.block.findings;
        for (index, finding) in findings.iter().take(limits.findings).enumerate() {
            let mut before = findings[..index].iter();
            let again = before.any(|other| other.shows_what(finding));
            out.push(detail(shown, finding, &self.message(finding), again));
        }
        if let Some(more @ 1..) = findings.len().checked_sub(limits.findings) {
            out.push(text!("\n- and {} more\n", more));
        }
        out
    }
}

/// Makes the digest of what a block says, without the name of its tool; of a source, with its title. A digest, since the
/// values of a whole lock may be large; of JSON, since no text of a server can then make two blocks look equal.
fn digest_without_the_name(block: &Block<'_>) -> Digest {
    let finding = |finding: &Finding| {
        // The digests of whole tools differ, and no report for people shows them.
        let is_part = !finding.pointer.is_empty();
        json!([
            finding.rule,
            finding.class,
            finding.severity,
            finding.pointer,
            neutral(block, &finding.message),
            is_part.then_some([&finding.old, &finding.new, &finding.witness]),
        ])
    };
    let findings: Vec<_> = block.findings.iter().map(finding).collect();
    let title = block.tool.is_none().then_some(&block.title);
    let is_lint = block.kind == BlockKind::Lint;
    Digest::new(
        "mcp-broker:finding_group:1",
        &json!([block.class, is_lint, title, findings]),
    )
}

/// A message without the name of the tool.
fn neutral(block: &Block<'_>, message: &str) -> String {
    match block.tool {
        Some(name) => message.replace(&format!("`{name}`"), "`…`"),
        None => message.to_owned(),
    }
}

fn detail(shown: &ReportView<'_>, finding: &Finding, message: &str, again: bool) -> Text {
    let mut out = text!("\n- {}: {}", finding.rule, inert(&shown_line(message, 300)));
    if !finding.pointer.is_empty() {
        out.push(text!(
            " at <code>{}</code>",
            inert(&shown_line(&finding.pointer, 200))
        ));
    }
    if let Some(example) = finding.example() {
        out.push(text!(", {}", inert(&example)));
    }
    out.push("\n");
    let change = change(finding, shown.sides.names());
    if !change.is_empty() && !again {
        let fence = "`".repeat(longest_run(&change).max(2) + 1);
        out.push(text!("\n  {}diff\n", fence));
        out.push(Text::lines("  ", &change));
        out.push(text!("  {}\n", fence));
    }
    out
}

/// The longest run of backticks; the fence must be longer.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Text escaped so that Markdown and HTML show it unchanged: no markup, link, mention or cell.
fn inert(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' | '<' | '>' | '|' | '`' | '*' | '_' | '[' | ']' | '~' | '\\' | '@' | '#' | '!'
            | '$' => {
                out.push_str(&format!("&#{};", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_text_of_a_server_has_no_markup() {
        let text = inert("![x](y) <img src=z> @team a|b `c` #1");
        assert!(!text.contains(['<', '`', '@', '|', '[', '!']), "{text}");
        assert_eq!(longest_run("a ``` b ` c"), 3);
    }
}

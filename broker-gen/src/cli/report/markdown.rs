//! A comment for a pull request: a table of relevant findings, with folded details.

use broker_drift::{Class, FailOn, Finding, access_lines};
use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::{counted, shown_line};

use super::{Block, ReportView, Sides};

/// Maximum number of lines about access.
const ACCESS_LINES: usize = 30;

/// The limits of a comment.
#[derive(Clone, Copy, Debug)]
struct CommentLimits {
    /// Maximum rows of the table.
    rows: usize,
    /// Maximum number of tools with details.
    details: usize,
    /// Maximum findings of one tool.
    findings: usize,
    /// Maximum length in characters, without the remedies at the end.
    chars: usize,
}

/// A comment of GitHub has at most 65 536 characters. The remedies take at most 5 lines of 400 characters, each of
/// which is escaped by at most 6.
const OF_A_COMMENT: CommentLimits = CommentLimits {
    rows: 30,
    details: 30,
    findings: 8,
    chars: 65_536 - 5 * 400 * 6 - 1_000,
};
const UNLIMITED: CommentLimits = CommentLimits {
    rows: usize::MAX,
    details: usize::MAX,
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
        for line in access_lines(&report.access, ACCESS_LINES) {
            out.push(text!("- {}\n", inert(&line)));
        }
    }
    if blocks.is_empty() {
        return out;
    }
    out.push("\n| class | what | change | rule |\n|---|---|---|---|\n");
    out.push_parts(blocks.iter().map(row), limits.rows);
    let detailed: Vec<_> = blocks
        .iter()
        .filter(|block| !matches!(block.class, Class::Added | Class::Same))
        .collect();
    if !detailed.is_empty() {
        out.push("\n<details><summary>What changed</summary>\n");
        let parts = detailed.iter();
        let parts = parts.map(|block| details(shown, block, limits.findings));
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

fn row(block: &Block<'_>) -> Text {
    let class = block.class.as_str();
    let class = if block.class.withdraws() || block.class == Class::Unchecked {
        format!("**{class}**")
    } else {
        class.to_owned()
    };
    let worst = block
        .findings
        .iter()
        .max_by_key(|finding| (finding.class, finding.severity));
    let (message, rule) = worst.map_or_else(Default::default, |finding| {
        (shown_line(&finding.message, 120), finding.rule)
    });
    let more = match block.findings.len() {
        0 | 1 => String::new(),
        more => format!(" (and {} more)", more - 1),
    };
    text!(
        "| {} | <code>{}</code> | {}{} | {} |\n",
        class,
        inert(&shown_line(&block.title, 120)),
        inert(&message),
        more,
        rule
    )
}

fn details(shown: &ReportView<'_>, block: &Block<'_>, most: usize) -> Text {
    let mut out = text!(
        "\n<b>{}</b> <code>{}</code>\n",
        block.class.as_str(),
        inert(&shown_line(&block.title, 200))
    );
    for (index, finding) in block.findings.iter().take(most).enumerate() {
        let before = &block.findings[..index];
        let again = before.iter().any(|other| other.shows_what(finding));
        out.push(detail(shown, finding, again));
    }
    if let Some(more @ 1..) = block.findings.len().checked_sub(most) {
        out.push(text!("\n- and {} more\n", more));
    }
    out
}

fn detail(shown: &ReportView<'_>, finding: &Finding, again: bool) -> Text {
    let mut out = text!(
        "\n- {}: {}",
        finding.rule,
        inert(&shown_line(&finding.message, 300))
    );
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
    let change = finding.change(shown.sides.names());
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

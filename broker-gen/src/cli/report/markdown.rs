//! A comment for a pull request: a table of relevant findings, with folded details.

use broker_drift::{Class, FailOn, Finding, access_lines};
use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::{counted, shown_line};

use super::{Block, ReportView, Sides};

/// Maximum rows of the table.
const ROWS: usize = 30;
/// Maximum number of tools with details; a comment has a size limit.
const DETAILS: usize = 30;

/// The comment.
pub(super) fn comment(shown: &ReportView<'_>, fail_on: FailOn) -> Text {
    let blocks = shown.blocks();
    let report = shown.report;
    let verdict = if report.has_unchecked() {
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
    let mut out = text!(
        "### MCP tools: {}\n\n{}{}\n",
        verdict,
        report.counts(),
        linted
    );
    if !report.access.is_empty() {
        out.push("\n#### Who gains or loses what\n\n");
        for line in access_lines(&report.access, ROWS) {
            out.push(text!("- {}\n", inert(&line)));
        }
    }
    if blocks.is_empty() {
        return out;
    }
    out.push("\n| class | what | change | rule |\n|---|---|---|---|\n");
    for block in blocks.iter().take(ROWS) {
        out.push(row(block));
    }
    if blocks.len() > ROWS {
        out.push(text!("\nand {} more\n", blocks.len() - ROWS));
    }
    let detailed: Vec<_> = blocks
        .iter()
        .filter(|block| !matches!(block.class, Class::Added | Class::Same))
        .collect();
    if !detailed.is_empty() {
        out.push("\n<details><summary>What changed</summary>\n");
        for block in detailed.iter().take(DETAILS) {
            out.push(details(shown, block));
        }
        if detailed.len() > DETAILS {
            out.push(text!("\nand {} more\n", detailed.len() - DETAILS));
        }
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

fn details(shown: &ReportView<'_>, block: &Block<'_>) -> Text {
    let mut out = text!(
        "\n<b>{}</b> <code>{}</code>\n",
        block.class.as_str(),
        inert(&shown_line(&block.title, 200))
    );
    for (index, finding) in block.findings.iter().take(8).enumerate() {
        let before = &block.findings[..index];
        let again = before.iter().any(|other| other.shows_what(finding));
        out.push(detail(shown, finding, again));
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

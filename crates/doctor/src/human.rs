//! The diagnosis for a terminal: one block for each source, the worst first, and one summary line.

use std::cmp::Reverse;

use broker_mcp::SourceFailure;
use broker_wire::Era;

use super::finding::Severity;
use super::{Diagnosis, Facts, ToolListing, attention};
use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::shown_line;
use broker_terminal::Layout as _;

/// Returns the complete text.
pub fn human(all: &[Diagnosis]) -> Text {
    let mut blocks: Vec<&Diagnosis> = all.iter().collect();
    // A stable sort: sources of equal severity stay in the order of the tree.
    blocks.sort_by_key(|one| Reverse(one.severity()));
    let mut out = Text::new();
    for one in blocks {
        block(&mut out, one);
        out.push("\n");
    }
    out.push(text!(
        "{} of {} sources need attention\n",
        attention(all),
        all.len()
    ));
    out
}

fn block(out: &mut Text, one: &Diagnosis) {
    let mark = match one.severity() {
        Severity::Note => "ok",
        worse => worse.as_str(),
    };
    let optional = if one.required { "" } else { " (not required)" };
    out.wrap("", "  ", &format!("{mark}: {}{optional}", one.path));
    if let Some(text) = one.facts.as_ref().and_then(facts) {
        out.wrap("  ", "  ", &text);
    }
    for finding in &one.findings {
        let title = format!(
            "{}[{}] {}",
            finding.severity.as_str(),
            finding.code,
            finding.message
        );
        out.wrap("  ", "    ", &title);
        for detail in &finding.details {
            out.wrap("    | ", "    | ", detail);
        }
        // A note needs no advice.
        if finding.severity > Severity::Note {
            out.wrap("    help: ", "          ", &finding.remedy);
        }
    }
}

fn facts(facts: &Facts) -> Option<String> {
    let listed: &Result<ToolListing, SourceFailure> = &facts.listed;
    let listed = listed.as_ref().ok()?;
    let era = match listed.era {
        Era::Modern => "modern",
        Era::Legacy => "legacy",
    };
    let locked = match &facts.locked_revision {
        Some(locked) if *locked == listed.revision => ", as in the lock".to_owned(),
        Some(locked) => format!(", the lock has {}", shown_line(locked, 40)),
        None => String::new(),
    };
    let withdrawn = match listed.withdrawn {
        0 => String::new(),
        count => format!(", {count} of the lock withdrawn"),
    };
    Some(format!(
        "ready after {:.1} s; speaks {} ({era}{locked}); lists {}: {} exposed, {} hidden{withdrawn}",
        facts.took.as_secs_f64(),
        listed.revision,
        broker_model::text::counted(listed.listed, "tool"),
        listed.exposed,
        listed.hidden,
    ))
}

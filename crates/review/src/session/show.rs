//! Renders one item for a terminal of 80 columns: its name, its findings, and the item or its change. All
//! text of a server is escaped.

use broker_doctor::unified;
use broker_drift::Finding;
use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::shown_line;
use broker_terminal::{Layout as _, WIDTH};

use super::describe;
use super::items::Item;
use crate::audits::AuditStatus;

/// Whether to use colour.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    pub colour: bool,
}

impl Style {
    /// Makes the style for a terminal: in colour unless `NO_COLOR` is set or the terminal is dumb.
    pub fn for_terminal() -> Self {
        let is = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            colour: is("NO_COLOR").is_none() && is("TERM").is_none_or(|term| term != "dumb"),
        }
    }

    fn paint(self, code: &'static str, text: &str) -> Text {
        if self.colour && !code.is_empty() {
            text!("\u{1b}[{}m{}\u{1b}[0m", code, text)
        } else {
            Text::line(text)
        }
    }
}

/// The whole block of an item, without the question.
pub(super) fn block(item: &Item<'_>, number: usize, of: usize, style: Style) -> Text {
    let head = format!(
        "[{number}/{of}] {}: {}",
        item.class_name(),
        item.subject.shown()
    );
    let mut out = text!("\n{}\n", style.paint("1", &head));
    let mut say = |line: &str| out.fold(&text!("  {}", line), WIDTH, "    ");
    say(&match &item.status {
        AuditStatus::Audited => "it has an audit".to_owned(),
        AuditStatus::Exempt(until) => format!("it may go without an audit until {until}"),
        AuditStatus::Missing(why) => format!("it has no valid audit: {why}"),
    });
    say(item.subject.digest.as_str());
    for finding in item.findings.iter().chain(&item.linted) {
        for line in lines_of(finding) {
            say(&line);
        }
    }
    match &item.old {
        Some(_) if !item.old_was_audited => {
            say("the old version has no audit either: `d` shows all of it");
        }
        _ => {}
    }
    out.push(match &item.old {
        Some(_) => change(item, style),
        None => whole(item),
    });
    out
}

/// The whole item as text.
pub(super) fn whole(item: &Item<'_>) -> Text {
    let mut out = Text::new();
    for line in describe::lines(&item.subject) {
        folded(&mut out, &format!("  {line}"));
    }
    out
}

/// The whole item as it is in the lock: JSON behind `| `.
pub(super) fn json(item: &Item<'_>) -> Text {
    let json = Text::json_text(&item.subject.review_text());
    let mut out = Text::new();
    for line in json.as_str().lines() {
        folded(&mut out, &format!("  | {line}"));
    }
    out
}

/// Adds a line in parts of at most 80 columns. A further part of a quoted line is behind `|+`, so that the line can be put
/// together again.
fn folded(out: &mut Text, line: &str) {
    out.fold(&Text::line(line), WIDTH, &continuation(line, "    "));
}

/// The beginning of the further parts of a line: its own indent, and `|+` or `other`.
fn continuation(line: &str, other: &str) -> String {
    let blanks = line.len() - line.trim_start_matches(' ').len();
    // Deep nesting leaves room for text.
    let indent = &line[..blanks.min(WIDTH / 2)];
    let mark = if line[blanks..].starts_with("| ") {
        "|+"
    } else {
        other
    };
    format!("{indent}{mark}")
}

/// Returns the lines of the text that changed; if the text is the same, the changed lines of the JSON.
fn change(item: &Item<'_>, style: Style) -> Text {
    let Some(old) = &item.old else {
        return Text::new();
    };
    let joined = |subject| describe::lines(subject).join("\n") + "\n";
    let [mut old_text, mut new_text] = [joined(old), joined(&item.subject)];
    if old_text == new_text {
        [old_text, new_text] = [old.review_text(), item.subject.review_text()];
    }
    let diff = unified(&old_text, &new_text, ["reviewed", "locked"], usize::MAX);
    let paint = |line: &str| {
        let code = match line.as_bytes().first() {
            _ if line.starts_with("--- ") || line.starts_with("+++ ") => "1",
            Some(b'-') => "31",
            Some(b'+') => "32",
            Some(b'@') => "36",
            _ => "",
        };
        // A wrapped line keeps its sign, so that each line shows whether it was added or removed.
        let (sign, rest) = line.split_at_checked(1).unwrap_or((" ", line));
        let indent = format!("{sign}{}", continuation(rest, "     "));
        let mut folded = Text::new();
        folded.fold(&Text::line(line), WIDTH, &indent);
        let lines = folded.as_str().lines();
        lines
            .map(|line| text!("{}\n", style.paint(code, line)))
            .collect::<Text>()
    };
    diff.lines().map(paint).collect()
}

fn lines_of(finding: &Finding) -> Vec<String> {
    let mut lines = vec![format!(
        "{}[{}] {}",
        finding.severity.as_str(),
        finding.rule,
        shown_line(&finding.message, 400)
    )];
    if !finding.pointer.is_empty() {
        lines.push(format!("  at {}", shown_line(&finding.pointer, 200)));
    }
    if let Some(witness) = &finding.witness {
        let what = if finding.rule.starts_with("output") {
            "answer"
        } else {
            "call"
        };
        let witness = shown_line(&witness.to_string(), 160);
        lines.push(format!("  for example the {what} {witness}"));
    }
    lines
}

//! Two texts as a unified diff that fits a terminal and shows invisible characters.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use broker_model::text::shown;
use broker_terminal::fold;

/// Columns of a line, without the sign and the indentation of the report.
const COLUMNS: usize = 74;
/// Time limit of the search for the shortest diff; after it, a longer one is used.
const DIFF_TIMEOUT: Duration = Duration::from_secs(2);
/// Context lines of a change.
const CONTEXT: usize = 2;

/// A unified diff of two prose texts, of at most `most` lines. Each sentence is a line, so that a long
/// paragraph shows the sentence that changed.
pub(crate) fn text_diff(old: &str, new: &str, sides: [&str; 2], most: usize) -> String {
    unified(&sentences(old), &sentences(new), sides, most)
}

/// A unified diff of the lines of two texts, escaped; wide lines are broken.
pub fn unified(old: &str, new: &str, sides: [&str; 2], most: usize) -> String {
    let folded = |text: &str| -> String {
        let lines = shown(text);
        lines.lines().map(|line| fold(line, COLUMNS, "")).collect()
    };
    let (old, new) = (folded(old), folded(new));
    let diff = TextDiff::configure()
        .timeout(DIFF_TIMEOUT)
        .diff_lines(&old, &new);
    let mut lines = vec![
        format!("--- {}", sides[0].trim_end()),
        format!("+++ {}", sides[1].trim_end()),
    ];
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        lines.push(hunk.header().to_string());
        for change in hunk.iter_changes() {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            lines.push(format!("{sign}{}", change.value().trim_end_matches('\n')));
        }
    }
    let more = lines.len().saturating_sub(most);
    lines.truncate(most);
    if more > 0 {
        lines.push(format!("… and {more} more lines"));
    }
    lines.join("\n")
}

/// A line after each sentence.
fn sentences(text: &str) -> String {
    text.replace(". ", ".\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_diff_shows_the_changed_sentence_of_a_paragraph() {
        let old = "Reads a file. Fails where there is none. Says how long it is.";
        let new = "Reads a file. Fails where there is none, \u{200b}quietly. Says how long it is.";
        assert_eq!(
            text_diff(old, new, ["lock", "live"], 30),
            "--- lock\n+++ live\n@@ -1,3 +1,3 @@\n Reads a file.\n-Fails where there is none.\n+Fails where there is none, \\u{200b}quietly.\n Says how long it is."
        );
    }

    #[test]
    fn text_diff_is_limited_in_width_and_length() {
        let old = "word ".repeat(100);
        let new = format!("{old}{}", "x".repeat(300));
        let diff = text_diff(&old, &new, ["old ", "new "], 6);
        assert!(
            diff.lines().all(|line| line.chars().count() <= COLUMNS + 1),
            "{diff}"
        );
        assert!(diff.starts_with("--- old\n+++ new\n@@ "), "{diff}");
        assert!(diff.contains("… and "), "{diff}");
    }
}

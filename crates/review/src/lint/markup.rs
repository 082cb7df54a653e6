//! Text that a rendered page does not show, and markup of prompts.

use super::TextFinding;

/// A run of blanks or line ends that looks like the end of the text.
const WIDE_GAP: usize = 120;
const LONG_GAP: usize = 15;

/// Tags that make their content look like a message of the system or the user.
const VOICES: [&str; 12] = [
    "important",
    "system",
    "systemprompt",
    "system_prompt",
    "system-prompt",
    "system-reminder",
    "system_message",
    "sys",
    "instruction",
    "instructions",
    "critical",
    "assistant",
];
/// Marks of prompts that name the speaker.
const MARKS: [&str; 9] = [
    "[inst]",
    "[/inst]",
    "<<sys>>",
    "<|im_start|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|endoftext|>",
    "<|start_header_id|>",
];

/// At most one finding of each rule.
pub(super) fn check(text: &str) -> Vec<TextFinding> {
    let mut found = Vec::new();
    found.extend(comment(text).or_else(|| gap(text)));
    if text.contains(['<', '[']) {
        found.extend(mark(text).or_else(|| tag(text)));
    }
    found
}

/// A comment of HTML or Markdown that contains words.
fn comment(text: &str) -> Option<TextFinding> {
    let (at, open, close) = [("<!--", "-->"), ("[//]: #", "\n"), ("[comment]: #", "\n")]
        .into_iter()
        .find_map(|(open, close)| Some((text.find(open)?, open, close)))?;
    let inner = &text[at + open.len()..];
    let length = inner.find(close).unwrap_or(inner.len());
    let words = inner[..length].split_whitespace().count();
    (words >= 2).then(|| TextFinding {
        rule: "hidden-markup",
        at,
        to: at + open.len() + length,
        message: "a comment that a rendered page does not show".to_owned(),
    })
}

/// A run of blanks that moves the rest of a text off the screen.
fn gap(text: &str) -> Option<TextFinding> {
    let (mut lines, mut blanks, mut widest) = (0, 0, 0);
    let mut has_begun = false;
    for (at, c) in text.char_indices() {
        if c == '\n' {
            (lines, blanks) = (lines + 1, 0);
        } else if c.is_whitespace() {
            blanks += 1;
            widest = blanks.max(widest);
        } else {
            if has_begun && (lines >= LONG_GAP || widest >= WIDE_GAP) {
                return Some(TextFinding {
                    rule: "hidden-markup",
                    at,
                    to: at,
                    message: format!(
                        "text behind {lines} line ends and up to {widest} blanks in a row"
                    ),
                });
            }
            (lines, blanks, widest, has_begun) = (0, 0, 0, true);
        }
    }
    None
}

fn mark(text: &str) -> Option<TextFinding> {
    let lower = text.to_ascii_lowercase();
    MARKS.iter().find_map(|mark| {
        let at = lower.find(mark)?;
        Some(TextFinding {
            rule: "instruction-markup",
            at,
            to: at + mark.len(),
            message: format!("`{mark}`, a mark of prompts that names the speaker"),
        })
    })
}

/// `<important>`; only if it is closed as well or in capitals, since `<instructions>` alone is often a
/// placeholder.
fn tag(text: &str) -> Option<TextFinding> {
    let lower = text.to_ascii_lowercase();
    let closed: Vec<&str> = VOICES
        .into_iter()
        .filter(|name| lower.contains(&format!("</{name}>")))
        .collect();
    text.match_indices('<').find_map(|(at, _)| {
        let inner = &text[at + 1..];
        let length = inner.bytes().take(40).position(|b| b == b'>')?;
        let name = inner[..length].split_whitespace().next()?;
        let known = name.to_ascii_lowercase();
        let is_loud = name.len() > 3
            && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
            && VOICES.contains(&known.as_str());
        (is_loud || closed.contains(&known.as_str())).then(|| TextFinding {
            rule: "instruction-markup",
            at,
            to: at + length + 2,
            message: format!("a part marked as `<{known}>`"),
        })
    })
}

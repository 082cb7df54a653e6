//! The layout of [`Text`] for a terminal of 80 columns: lines that are broken between words, and names
//! that are shortened in the middle. A wide character takes two columns, a combining one takes none.

#![forbid(unsafe_code)]

use broker_model::terminal::{Text, one_line};
use broker_model::text::shown;
use textwrap::core::{Word, break_words, display_width};
use textwrap::wrap_algorithms::wrap_first_fit;

/// Columns of a line.
pub const WIDTH: usize = 80;

/// Adds lines to a [`Text`].
pub trait Layout {
    /// Adds words in lines of at most [`WIDTH`] columns, the first behind `first`, the others behind
    /// `rest`. A span in backticks stays in one line if it fits, and a command always, since users copy
    /// it; any other word that is wider than a line is broken.
    fn wrap(&mut self, first: impl Into<Text>, rest: &'static str, words: &str);

    /// Adds one line, broken after blanks if it is wider than `width` columns, all but the first part
    /// behind `indent`.
    fn fold(&mut self, line: &Text, width: usize, indent: &str);
}

impl Layout for Text {
    fn wrap(&mut self, first: impl Into<Self>, rest: &'static str, words: &str) {
        let first = first.into();
        let lines = wrap(first.as_str(), rest, &shown(words));
        self.push(Self::lines("", &lines));
    }

    fn fold(&mut self, line: &Text, width: usize, indent: &str) {
        let lines = fold(line.as_str(), width, &one_line(indent));
        self.push(Self::lines("", &lines));
    }
}

/// The columns of a text in one line.
pub fn columns(text: &str) -> usize {
    display_width(text)
}

fn wrap(first: &str, rest: &str, text: &str) -> String {
    let widths = [first, rest].map(|indent| WIDTH.saturating_sub(columns(indent)).max(1));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut words = Vec::new();
    if widths[0] < widths[1] {
        // The first line takes the first word even if that fits only behind `rest`.
        words.push(Word::from(""));
    }
    for word in spans(&text, widths[1]) {
        if is_command(&word) {
            words.push(word);
        } else {
            words.extend(break_words([word], widths[1]));
        }
    }
    let mut out = String::with_capacity(text.len());
    let lines = wrap_first_fit(&words, &widths.map(|width| width as f64));
    for (line, indent) in lines
        .into_iter()
        .zip([first].into_iter().chain(std::iter::repeat(rest)))
    {
        let begin = out.len();
        out.push_str(indent);
        for word in line {
            out.push_str(word.word);
            out.push_str(word.whitespace);
        }
        out.truncate(begin + out[begin..].trim_end().len());
        out.push('\n');
    }
    out
}

/// Whether a word is a command of the broker in backticks.
fn is_command(word: &str) -> bool {
    word.starts_with("`broker-gen ") || word.starts_with("`mcp-broker ")
}

/// The words of a text with single blanks. A span in backticks is one word, unless it is wider than
/// `most` and not a command.
fn spans(text: &str, most: usize) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let (mut begin, mut end, mut is_open) = (0, 0, false);
    for word in text.split_inclusive(' ') {
        end += word.len();
        is_open ^= word.matches('`').count() % 2 == 1;
        if is_open && end < text.len() {
            continue;
        }
        let span = &text[begin..end];
        if columns(span.trim_end()) <= most || is_command(span) {
            words.push(Word::from(span));
        } else {
            words.extend(span.split_inclusive(' ').map(Word::from));
        }
        begin = end;
    }
    words
}

/// One line as lines of at most `width` columns, broken after blanks, all but the first behind `indent`.
/// Unlike [`Layout::wrap`] it keeps every blank; each line ends.
pub fn fold(line: &str, width: usize, indent: &str) -> String {
    let mut out = String::with_capacity(line.len() + 1);
    let (mut lead, mut rest) = ("", line);
    loop {
        let taken = columns(lead);
        let head = prefix(rest, width.saturating_sub(taken));
        if head.len() == rest.len() {
            break;
        }
        let least = (width / 2).max(columns(indent) + 1).saturating_sub(taken);
        let blank = head.rfind(' ').filter(|at| columns(&head[..*at]) > least);
        let (part, tail) = rest.split_at(blank.map_or(head.len(), |at| at + 1));
        out.extend([lead, part, "\n"]);
        (lead, rest) = (indent, tail);
    }
    out.extend([lead, rest, "\n"]);
    out
}

/// `text` with `…` in the middle if it has more than `most` columns.
pub fn middle(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(1);
    let head = prefix(text, kept - kept / 2);
    let tails = text.char_indices().rev().map(|(at, _)| &text[at..]);
    let tail = tails.take_while(|tail| columns(tail) <= kept / 2).last();
    format!("{head}…{}", tail.unwrap_or_default())
}

/// The longest beginning of at most `width` columns; one character at least.
fn prefix(text: &str, width: usize) -> &str {
    let mut taken = 0;
    for (at, c) in text.char_indices() {
        taken += columns(c.encode_utf8(&mut [0; 4]));
        if taken > width && at > 0 {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_line_fits_the_width_and_keeps_every_word() {
        for word in ["x", "ü", "漢", "🦀", "e\u{301}"] {
            let words = format!(
                "a {} b {} c",
                word.repeat(200),
                format!("{word} ").repeat(100)
            );
            let out = wrap("  help: ", "        ", &words);
            assert!(out.lines().all(|line| columns(line) <= WIDTH), "{out}");
            assert!(
                out.starts_with(&format!("  help: a\n        {word}{word}")),
                "{out}"
            );
            let letters = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(letters(&out), format!("help:{}", letters(&words)));
        }
        assert_eq!(wrap("  - ", "    ", ""), "  -\n");
        let wide = "漢字".repeat(10);
        assert_eq!(
            wrap("", "  ", &format!("{wide} {wide} {wide}")),
            format!("{wide}\n  {wide}\n  {wide}\n")
        );
    }

    #[test]
    fn wrapped_command_stays_on_one_line() {
        let text = "review what the server says now, and then run `broker-gen lock --source /a`, and commit";
        assert_eq!(
            wrap("help: ", "      ", text),
            "help: review what the server says now, and then run\n      `broker-gen lock --source /a`, and commit\n"
        );
        let command = format!("`broker-gen lock {}`,", "--source /a ".repeat(8).trim_end());
        assert_eq!(
            wrap("help: ", "      ", &format!("run {command} and commit")),
            format!("help: run\n      {command}\n      and commit\n")
        );
        let out = wrap("", "", &format!("`{}` ` x", "long ".repeat(40)));
        assert!(out.lines().all(|line| line.len() <= WIDTH), "{out}");
    }

    #[test]
    fn wrapped_word_too_wide_for_the_first_line_begins_the_next() {
        let word = "x".repeat(70);
        assert_eq!(
            wrap("  next attempt: ", "    ", &word),
            format!("  next attempt:\n    {word}\n")
        );
    }

    #[test]
    fn folded_line_keeps_every_character() {
        assert_eq!(fold("short", 80, "  "), "short\n");
        let words = "+ ".to_owned() + &"word ".repeat(40);
        let text = fold(&words, WIDTH, "+     ");
        let fits = |line: &str| columns(line) <= WIDTH && line.starts_with('+');
        assert!(text.lines().all(fits), "{text}");
        for wide in ["ü", "漢", "🦀"] {
            let text = fold(&wide.repeat(200), WIDTH, "  ");
            assert!(text.lines().all(|line| columns(line) <= WIDTH), "{text}");
            assert_eq!(text.matches(wide).count(), 200);
        }
    }

    #[test]
    fn folded_line_may_end_with_blanks_and_be_long() {
        let blanks = format!("| x{}", " ".repeat(200));
        let text = fold(&blanks, WIDTH, "| ");
        assert!(text.lines().all(|line| columns(line) <= WIDTH), "{text}");
        assert_eq!(text.matches(' ').count(), 201 + text.lines().count() - 1);
        // The time is linear in the length.
        let text = fold(&"x".repeat(4 << 20), WIDTH, "  ");
        assert_eq!(text.matches('x').count(), 4 << 20);
        // A line has room for one character at least.
        assert_eq!(fold("ab", 1, "    "), "a\n    b\n");
    }

    #[test]
    fn shortened_name_keeps_both_ends() {
        assert_eq!(middle("/a/b/c/d/e", 7), "/a/…d/e");
        assert_eq!(middle("/a", 7), "/a");
        assert_eq!(middle("/漢字/漢字", 7), "/漢…字");
    }

    #[test]
    fn text_wrapped_or_folded_has_no_foreign_line_ends() {
        let hostile = "a\u{1b}[2J\r\nwrote it\u{7}\u{202e}\u{200b}";
        let mut out = Text::new();
        out.wrap("help: ", "  ", hostile);
        out.fold(&broker_model::text!("  {}", hostile), 12, "    ");
        let text = out.as_str();
        assert!(!text.contains(['\u{1b}', '\r', '\u{202e}']), "{text}");
        assert!(
            text.lines()
                .all(|line| line.starts_with("help: ") || line.starts_with("  ")),
            "{text}"
        );
    }
}

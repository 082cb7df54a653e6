//! The first sentence of a description that says something.

/// The maximum length of the part of a line that counts as its first sentence, in characters.
const MAX_SENTENCE_CHARS: usize = 300;

/// Returns the first real sentence of a description and the rest. Headings, list marks and symbols in front of it
/// belong to the rest.
pub(crate) fn first_sentence(description: &str) -> (&str, [&str; 2]) {
    let mut at = 0;
    for line in description.split_inclusive('\n') {
        let text = line.trim_start_matches(|c: char| !c.is_alphanumeric());
        let begin = at + (line.len() - text.len());
        at += line.len();
        let marks = &line[..line.len() - text.len()];
        let is_heading = marks.contains('#') || text.trim_end().ends_with(':');
        if is_heading || text.split_whitespace().nth(1).is_none() {
            continue;
        }
        let end = begin + sentence_end(&description[begin..]);
        return (
            &description[begin..end],
            [&description[..begin], &description[end..]],
        );
    }
    ("", [description, ""])
}

/// Finds the end of the sentence at the beginning of a text: at a full stop before a space and a word that is not in
/// lower case, or at the end of the paragraph.
fn sentence_end(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    for count in 0.. {
        let Some((at, c)) = chars.next() else {
            break;
        };
        if count >= MAX_SENTENCE_CHARS {
            return at;
        }
        let rest = &text[at + c.len_utf8()..];
        let ends = match c {
            '\n' => rest.starts_with(['\n', '-', '*', '#', ' ', '\r']),
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => {
                let mut next = rest.chars();
                next.next().is_none_or(char::is_whitespace)
                    && next.next().is_none_or(|c| !c.is_lowercase())
            }
            _ => false,
        };
        if ends {
            return at + c.len_utf8();
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_and_marks_are_skipped() {
        let check = |text, want: &str| assert_eq!(first_sentence(text).0.trim(), want);
        check("Reads a file. Then more.", "Reads a file.");
        check(
            "## Usage\n\n🔧 - Lists e.g. all tables.\nMore",
            "Lists e.g. all tables.",
        );
        check("Overview:\nMoves a window.", "Moves a window.");
        check("Usage\nRuns a query\n\nLater", "Runs a query");
        check("", "");
        check(
            "Lists rows of\nthe table\n\nLater",
            "Lists rows of\nthe table",
        );
    }

    #[test]
    fn every_character_is_in_one_part() {
        for text in [
            "## Usage\n\nLists all. More.",
            "one",
            "",
            "— é. Überall ist es gut",
        ] {
            let (sentence, [before, after]) = first_sentence(text);
            assert_eq!(before.len() + sentence.len() + after.len(), text.len());
        }
    }
}

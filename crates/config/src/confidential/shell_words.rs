//! The words of a shell script as written: quotes are kept, operators and line ends are words.

use std::ops::Range;

use crate::template::variable;

/// The class of a character outside quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Operator,
    LineEnd,
    Word,
}

fn kind(c: char) -> Kind {
    match c {
        ' ' | '\t' | '\r' => Kind::Space,
        ';' | '|' | '&' | '<' | '>' | '(' | ')' => Kind::Operator,
        '\n' => Kind::LineEnd,
        _ => Kind::Word,
    }
}

/// The ranges of the words in `text`.
pub(crate) fn split(text: &str) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut last = Kind::Space;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let (length, kind) = match c {
            '$' => match variable(&text[at..]) {
                Some((_, length)) => (length, Kind::Word),
                None => (1, Kind::Word),
            },
            '\\' => {
                let escaped = text[at + 1..].chars().next().map_or(0, char::len_utf8);
                (1 + escaped, Kind::Word)
            }
            '\'' | '"' => (quoted(&text[at..], c), Kind::Word),
            c => (c.len_utf8(), kind(c)),
        };
        let joins = kind == last && matches!(kind, Kind::Word | Kind::Operator);
        match words.last_mut() {
            Some(word) if joins => word.end = at + length,
            _ if kind != Kind::Space => words.push(at..at + length),
            _ => {}
        }
        last = kind;
        at += length;
    }
    words
}

/// The length of the quoted text at the start of `text`; one without an end has all of it.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The range of a word without the quotes around it, if a shell reads it.
pub(super) fn unquoted(word: &str, shell: bool) -> Range<usize> {
    let whole = 0..word.len();
    let first = word.chars().next().filter(|c| matches!(c, '\'' | '"'));
    match first {
        Some(quote) if shell && word.len() > 1 && word.ends_with(quote) => 1..word.len() - 1,
        _ => whole,
    }
}

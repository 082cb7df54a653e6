//! WordPiece, the tokenizer of the static table: texts become rows of its vocabulary, as BERT's uncased
//! models split them.

use std::collections::HashMap;

use icu_normalizer::DecomposingNormalizer;
use unicode_general_category::{GeneralCategory, get_general_category};

/// Longer words are unknown, as in the reference implementation.
const MAX_WORD_CHARS: usize = 100;

/// The words and parts of words of a table, each with its row.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    rows: HashMap<&'static str, u32>,
}

/// Returns a text without accents, decomposed.
pub(crate) fn without_accents(text: &str) -> String {
    let decomposed = DecomposingNormalizer::new_nfd().normalize(text);
    decomposed
        .chars()
        .filter(|c| get_general_category(*c) != GeneralCategory::NonspacingMark)
        .collect()
}

impl Vocabulary {
    /// Reads one word a line, in the order of the rows.
    pub(crate) fn new(lines: &'static str) -> Self {
        let lines = lines.lines().zip(0..);
        Self {
            rows: lines.collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the rows of a text; parts that the vocabulary does not have are left out.
    pub(crate) fn rows(&self, text: &str) -> Vec<u32> {
        let text = without_accents(&text.to_lowercase());
        let mut rows = Vec::new();
        let mut word = String::new();
        for c in text.chars() {
            let is_alone = is_punctuation(c) || is_chinese(c);
            if is_alone || c.is_whitespace() || c.is_control() {
                self.push_word(&word, &mut rows);
                word.clear();
            }
            match c {
                _ if is_alone => self.push_word(c.encode_utf8(&mut [0; 4]), &mut rows),
                _ if c.is_whitespace() || c.is_control() || c == '\u{FFFD}' => {}
                _ => word.push(c),
            }
        }
        self.push_word(&word, &mut rows);
        rows
    }

    /// Splits a word into the longest parts that the vocabulary has, from its beginning.
    fn push_word(&self, word: &str, rows: &mut Vec<u32>) {
        if word.is_empty() || word.chars().count() > MAX_WORD_CHARS {
            return;
        }
        let before = rows.len();
        let mut rest = word;
        let mut key = String::with_capacity(word.len() + 2);
        while !rest.is_empty() {
            let prefix = if rest.len() == word.len() { "" } else { "##" };
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8()).rev();
            let part = ends.into_iter().find_map(|end| {
                key.clear();
                key.push_str(prefix);
                key.push_str(&rest[..end]);
                Some((*self.rows.get(key.as_str())?, end))
            });
            let Some((row, end)) = part else {
                // The whole word is unknown.
                rows.truncate(before);
                return;
            };
            rows.push(row);
            rest = &rest[end..];
        }
    }
}

fn is_punctuation(c: char) -> bool {
    use GeneralCategory::{
        ClosePunctuation, ConnectorPunctuation, DashPunctuation, FinalPunctuation,
        InitialPunctuation, OpenPunctuation, OtherPunctuation,
    };
    c.is_ascii_punctuation()
        || matches!(
            get_general_category(c),
            ClosePunctuation
                | ConnectorPunctuation
                | DashPunctuation
                | FinalPunctuation
                | InitialPunctuation
                | OpenPunctuation
                | OtherPunctuation
        )
}

/// Whether the character is in one of the blocks that BERT sets apart.
fn is_chinese(c: char) -> bool {
    matches!(
        c,
        '\u{4E00}'..='\u{9FFF}'
            | '\u{3400}'..='\u{4DBF}'
            | '\u{20000}'..='\u{2A6DF}'
            | '\u{2A700}'..='\u{2CEAF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{2F800}'..='\u{2FA1F}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_from_their_beginning_into_known_parts() {
        let vocabulary = Vocabulary::new("un\n##aff\n##able\n##a\nfile\n,\n文\ncafe");
        assert_eq!(vocabulary.len(), 8);
        assert_eq!(vocabulary.rows("Unaffable, FILE文"), [0, 1, 2, 5, 4, 6]);
        assert_eq!(vocabulary.rows("Café\u{0}unknown\tunzz"), [7]);
        assert_eq!(vocabulary.rows(&"un".repeat(51)), [0u32; 0]);
    }
}

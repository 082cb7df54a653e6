//! Queries in other languages than the texts of the tools: tables of tool words for six languages. They are consulted only if the
//! tools do not know a word of a query, so that an English query costs nothing more.
//!
//! A line of a table has a key, the English words for it, and the words that have this key. The key is the stem of the
//! word without accents, in Chinese and Japanese the word itself. A word without English words is one without a meaning for tools.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use rust_stemmers::{Algorithm, Stemmer};

use crate::stop_words::is_stop_word;
use crate::tokens::fold;

/// Shorter parts of a German compound are endings, not words.
const MIN_PART_CHARS: usize = 4;
/// The letters between the parts of a German compound.
const LINKS: [&str; 5] = ["", "s", "n", "en", "es"];
/// The maximum length of a word that is written without spaces, in characters.
const MAX_UNSPACED_CHARS: usize = 10;

/// A language with spaces between words.
struct Spaced {
    table: &'static str,
    stems: fn() -> Stemmer,
    has_compounds: bool,
}

const SPACED: [Spaced; 4] = [
    Spaced {
        table: include_str!("../words/de.tsv"),
        stems: || Stemmer::create(Algorithm::German),
        has_compounds: true,
    },
    Spaced {
        table: include_str!("../words/fr.tsv"),
        stems: || Stemmer::create(Algorithm::French),
        has_compounds: false,
    },
    Spaced {
        table: include_str!("../words/es.tsv"),
        stems: || Stemmer::create(Algorithm::Spanish),
        has_compounds: false,
    },
    Spaced {
        table: include_str!("../words/pt.tsv"),
        stems: || Stemmer::create(Algorithm::Portuguese),
        has_compounds: false,
    },
];
/// The English words of all tables, by their stems.
const ENGLISH: &str = include_str!("../words/en.tsv");
const CHINESE: &str = include_str!("../words/zh.tsv");
const JAPANESE: &str = include_str!("../words/ja.tsv");

/// A part of a query.
struct Piece {
    text: String,
    is_unspaced: bool,
    /// Whether the tools have it.
    is_known: bool,
    /// Whether it is an English word of the tables: the same letters can be a word of another language.
    is_english: bool,
}

/// Returns a query in English words, if it has words of another language that the tools do not know. `knows` says whether
/// they know a stem.
pub(crate) fn in_english(text: &str, knows: impl Fn(&str) -> bool) -> Option<String> {
    let pieces = pieces(text, knows);
    let unspaced = pieces
        .iter()
        .any(|piece| piece.is_unspaced && !piece.is_known);
    if unspaced {
        return from_unspaced(&pieces);
    }
    let readings = SPACED.iter().filter_map(|language| {
        let words = language.read(&pieces);
        let count = |is: fn(&Reading) -> bool| words.iter().filter(|word| is(word)).count();
        let content = count(|word| matches!(word, Reading::English(_)));
        let own = content + count(|word| matches!(word, Reading::Meaningless));
        // A typo in an English query can look like a word of another language.
        let english = count(|word| matches!(word, Reading::EnglishStopWord));
        (content > 0 && own > english).then_some((own, words))
    });
    // Of equal ones the first.
    let best = readings.reduce(|best, other| if other.0 > best.0 { other } else { best });
    let (_, words) = best?;
    let words = pieces.iter().zip(words);
    let english: Vec<_> = words
        .filter_map(|(piece, word)| match word {
            Reading::English(english) => Some(english),
            Reading::Same => Some(piece.text.clone()),
            Reading::Meaningless | Reading::EnglishStopWord => None,
        })
        .collect();
    Some(english.join(" "))
}

/// What a piece is in a language.
enum Reading {
    /// A word for these English ones.
    English(String),
    /// A word without a meaning for tools.
    Meaningless,
    /// Such a word of English.
    EnglishStopWord,
    /// Another word.
    Same,
}

impl Spaced {
    fn read(&self, pieces: &[Piece]) -> Vec<Reading> {
        let stemmer = (self.stems)();
        let read = |piece: &Piece| {
            let found = find(self.table, &stemmer.stem(&piece.text));
            match found {
                Some("") if !piece.is_english => Reading::Meaningless,
                _ if is_stop_word(&piece.text) => Reading::EnglishStopWord,
                _ if piece.is_known || piece.is_english => Reading::Same,
                Some(english) => Reading::English(english.to_owned()),
                None if self.has_compounds => self.parts(&stemmer, &piece.text),
                None => Reading::Same,
            }
        };
        pieces.iter().map(read).collect()
    }

    /// Reads a compound: its last part, and the part in front of it if that is a word as well.
    fn parts(&self, stemmer: &Stemmer, word: &str) -> Reading {
        let content = |part: &str| {
            let found = find(self.table, &stemmer.stem(part));
            found.filter(|english| !english.is_empty())
        };
        let ends = word.char_indices().map(|(at, _)| at);
        let found = ends.skip(MIN_PART_CHARS).try_for_each(|at| {
            let (first, last) = word.split_at(at);
            if last.chars().count() < MIN_PART_CHARS {
                return ControlFlow::Continue(());
            }
            let Some(last) = content(last) else {
                return ControlFlow::Continue(());
            };
            let first = LINKS
                .iter()
                .filter_map(|link| first.strip_suffix(link))
                .find_map(content);
            ControlFlow::Break(match first {
                Some(first) => format!("{first} {last}"),
                None => last.to_owned(),
            })
        });
        match found {
            ControlFlow::Break(english) => Reading::English(english),
            ControlFlow::Continue(()) => Reading::Same,
        }
    }
}

/// Reads Chinese or Japanese: the longest words of the table, from the left.
fn from_unspaced(pieces: &[Piece]) -> Option<String> {
    let is_japanese = pieces.iter().any(|piece| piece.text.chars().any(is_kana));
    let tables = match is_japanese {
        true => [JAPANESE, CHINESE],
        false => [CHINESE, JAPANESE],
    };
    let mut english = Vec::new();
    let mut is_read = false;
    for piece in pieces {
        if !piece.is_unspaced || piece.is_known {
            english.push(piece.text.as_str());
            continue;
        }
        let mut rest = piece.text.as_str();
        while let Some(first) = rest.chars().next() {
            let ends: Vec<_> = rest
                .char_indices()
                .map(|(at, c)| at + c.len_utf8())
                .take(MAX_UNSPACED_CHARS)
                .collect();
            let found = ends.iter().rev().find_map(|end| {
                let word = &rest[..*end];
                let words = tables.iter().find_map(|table| find(table, word))?;
                Some((*end, words))
            });
            let (end, words) = found.unwrap_or((first.len_utf8(), ""));
            is_read |= !words.is_empty();
            english.push(words);
            rest = &rest[end..];
        }
    }
    english.retain(|words| !words.is_empty());
    is_read.then(|| english.join(" "))
}

/// Returns the parts of a query: runs of letters and digits, Chinese and Japanese apart.
fn pieces(text: &str, knows: impl Fn(&str) -> bool) -> Vec<Piece> {
    let english = Stemmer::create(Algorithm::English);
    let mut pieces: Vec<Piece> = Vec::new();
    let mut is_open = false;
    for c in fold(text).chars().flat_map(char::to_lowercase) {
        if !c.is_alphanumeric() && c != 'ー' {
            is_open = false;
            continue;
        }
        let is_unspaced = is_unspaced(c);
        match pieces.last_mut() {
            Some(last) if is_open && last.is_unspaced == is_unspaced => last.text.push(c),
            _ => pieces.push(Piece {
                text: c.to_string(),
                is_unspaced,
                is_known: false,
                is_english: false,
            }),
        }
        is_open = true;
    }
    for piece in &mut pieces {
        piece.is_known = match piece.is_unspaced {
            false => {
                let stem = english.stem(&piece.text);
                piece.is_english = find(ENGLISH, &stem).is_some();
                knows(&stem)
            }
            true => {
                let chars: Vec<char> = piece.text.chars().collect();
                let mut pairs = chars.windows(2);
                chars.len() > 1 && pairs.all(|pair| knows(&pair.iter().collect::<String>()))
            }
        };
    }
    pieces
}

const fn is_kana(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30FF}')
}

const fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{2E80}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

/// Finds the English words of a key. The lines of a table are sorted by their keys.
fn find(table: &'static str, key: &str) -> Option<&'static str> {
    let (mut low, mut high) = (0, table.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let bytes = table.as_bytes();
        let before = bytes[low..middle].iter().rposition(|byte| *byte == b'\n');
        let begin = before.map_or(low, |at| low + at + 1);
        let end = table[begin..]
            .find('\n')
            .map_or(table.len(), |at| begin + at);
        let mut cells = table[begin..end].split('\t');
        match cells.next().unwrap_or_default().cmp(key) {
            Ordering::Less => low = end + 1,
            Ordering::Greater => high = begin,
            Ordering::Equal => return cells.next(),
        }
    }
    None
}

#[cfg(test)]
#[path = "foreign_tests.rs"]
mod tests;

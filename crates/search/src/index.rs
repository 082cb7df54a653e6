//! The index: for each term the tools that contain it, and the vectors of the tools. A build writes it as bytes that a
//! binary contains; reading it does not allocate.
//!
//! ```text
//! header      MAGIC, version, tools, terms, postings, bytes of terms, dimensions (0 without vectors): u32 each
//! term ends   u32 a term: the end of its text
//! post ends   u32 a term: the end of its postings, by number
//! letters     u32 a term: the set of its letters, for typos
//! terms       UTF-8, sorted by bytes
//! postings    u32 tool, u16 weight in 1/256; sorted by tool
//! vectors     128 bytes a tool, every second one from the first on plus 128, then f32 a tool: 1 / length
//! ```
//! All numbers are little-endian.

use std::collections::BTreeMap;

use crate::TOKENIZER_VERSION;
use crate::deprecated::is_deprecated;
use crate::document::Document;
use crate::vectors::{DIMENSIONS, QueryVector, StaticTable};

/// The term of tools that call themselves deprecated. Texts have no such word.
const DEPRECATED_MARK: &str = "\u{1}";
const MAGIC: u32 = u32::from_le_bytes(*b"MBSI");
const HEADER_NUMBERS: usize = 7;
const POSTING_BYTES: usize = 6;
/// The number of terms whose letters are compared at the same time.
const LETTER_CHUNK: usize = 32;
/// The weight of a posting is stored in parts of 1 divided by this.
const WEIGHT_PARTS: f64 = 256.0;

/// The index of no tools.
pub static EMPTY_INDEX: &[u8] = &{
    let mut bytes = [0; HEADER_NUMBERS * 4];
    let (magic, version) = (MAGIC.to_le_bytes(), TOKENIZER_VERSION.to_le_bytes());
    let mut at = 0;
    while at < 4 {
        bytes[at] = magic[at];
        bytes[4 + at] = version[at];
        at += 1;
    }
    bytes
};

/// Bytes that are not an index of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the search index cannot be read: {0}")]
pub struct IndexError(&'static str);

/// The searched words and vectors of the tools of a catalog. Tools are numbers, in the order of their documents.
#[derive(Clone, Copy, Debug)]
pub struct Index<'a> {
    tools: u32,
    term_ends: &'a [u8],
    post_ends: &'a [u8],
    letters: &'a [u8],
    terms: &'a [u8],
    postings: &'a [u8],
    vectors: Option<Vectors<'a>>,
}

#[derive(Clone, Copy, Debug)]
struct Vectors<'a> {
    components: &'a [u8],
    inverse_lengths: &'a [u8],
}

/// Returns the bytes of an index of documents, with vectors if there is a table.
pub fn index_bytes(documents: &[Document<'_>], table: Option<&StaticTable>) -> Vec<u8> {
    let mut terms: BTreeMap<String, Vec<(u32, u16)>> = BTreeMap::new();
    for (document, tool) in documents.iter().zip(0u32..) {
        for (term, weight) in document.weights() {
            let parts = (weight * WEIGHT_PARTS)
                .round()
                .clamp(1.0, f64::from(u16::MAX));
            terms.entry(term).or_default().push((tool, parts as u16));
        }
        if is_deprecated(document) {
            let mark = terms.entry(DEPRECATED_MARK.to_owned());
            mark.or_default().push((tool, 1));
        }
    }
    let text_bytes: usize = terms.keys().map(String::len).sum();
    let count: usize = terms.values().map(Vec::len).sum();
    let dimensions = table.map_or(0, |_| DIMENSIONS);
    let header = [MAGIC, TOKENIZER_VERSION].into_iter().chain(
        [documents.len(), terms.len(), count, text_bytes, dimensions].map(|number| number as u32),
    );
    let mut out: Vec<u8> = header.flat_map(u32::to_le_bytes).collect();
    let push_ends = |out: &mut Vec<u8>, lengths: &mut dyn Iterator<Item = usize>| {
        let mut end = 0u32;
        for length in lengths {
            end += length as u32;
            out.extend(end.to_le_bytes());
        }
    };
    push_ends(&mut out, &mut terms.keys().map(String::len));
    push_ends(&mut out, &mut terms.values().map(Vec::len));
    out.extend(terms.keys().flat_map(|term| letters(term).to_le_bytes()));
    out.extend(terms.keys().flat_map(|term| term.bytes()));
    for (tool, weight) in terms.values().flatten() {
        out.extend(tool.to_le_bytes());
        out.extend(weight.to_le_bytes());
    }
    let vectors = table.map(|table| {
        let vector = |document: &Document<'_>| {
            let hints = document.embedded_hints();
            table.document(&document.embedded_text(), hints.as_deref())
        };
        documents.iter().map(vector).collect::<Vec<_>>()
    });
    for vector in vectors.iter().flatten() {
        out.extend(vector.bytes());
    }
    for vector in vectors.iter().flatten() {
        out.extend(vector.inverse_length.to_le_bytes());
    }
    out
}

impl<'a> Index<'a> {
    /// Reads the bytes of [`index_bytes`].
    ///
    /// # Errors
    ///
    /// If another version wrote them, or if they are not complete.
    pub fn new(bytes: &'a [u8]) -> Result<Self, IndexError> {
        let mut rest = bytes;
        let mut take = |length: usize| {
            let (taken, others) = rest
                .split_at_checked(length)
                .ok_or(IndexError("it ends too early"))?;
            rest = others;
            Ok(taken)
        };
        let header = take(HEADER_NUMBERS * 4)?;
        let number = |at: usize| number(header, at) as usize;
        if number(0) != MAGIC as usize || number(1) != TOKENIZER_VERSION as usize {
            return Err(IndexError("another version made it"));
        }
        let (tools, terms, count, text_bytes) = (number(2), number(3), number(4), number(5));
        let mut index = Self {
            tools: tools as u32,
            term_ends: take(terms * 4)?,
            post_ends: take(terms * 4)?,
            letters: take(terms * 4)?,
            terms: take(text_bytes)?,
            postings: take(count * POSTING_BYTES)?,
            vectors: None,
        };
        match number(6) {
            0 => {}
            DIMENSIONS => {
                index.vectors = Some(Vectors {
                    components: take(tools * DIMENSIONS)?,
                    inverse_lengths: take(tools * 4)?,
                });
            }
            _ => return Err(IndexError("its vectors have other dimensions")),
        }
        match rest {
            [] => Ok(index),
            _ => Err(IndexError("bytes follow it")),
        }
    }

    /// Returns the number of tools.
    pub const fn tools(&self) -> u32 {
        self.tools
    }

    /// Returns the number of different terms.
    pub(crate) const fn terms(&self) -> u32 {
        (self.term_ends.len() / 4) as u32
    }

    /// Returns the text of a term.
    pub(crate) fn term(&self, at: u32) -> &'a [u8] {
        let (begin, end) = range(self.term_ends, at);
        &self.terms[begin..end]
    }

    /// Returns the set of the letters of a term.
    pub(crate) fn letters(&self, at: u32) -> u32 {
        number(self.letters, at as usize)
    }

    /// Returns the terms whose set of letters differs from this one in at most `MOST`.
    pub(crate) fn terms_with_letters<const MOST: usize>(&self, letters: u32) -> Vec<u32> {
        // The differing letters, without as many of them.
        let rest = |set: &[u8; 4]| {
            let mut differing = u32::from_le_bytes(*set) ^ letters;
            for _ in 0..MOST {
                // Removes the lowest bit.
                differing &= differing.wrapping_sub(1);
            }
            differing
        };
        let (sets, _) = self.letters.as_chunks::<4>();
        let (chunks, others) = sets.as_chunks::<LETTER_CHUNK>();
        let mut found = Vec::new();
        let mut search = |sets: &[[u8; 4]], first: usize| {
            let near = sets.iter().zip(first as u32..);
            let near = near.filter(|(set, _)| rest(set) == 0);
            found.extend(near.map(|(_, at)| at));
        };
        for (chunk, at) in chunks.iter().zip(0..) {
            // Few chunks have a near term. Without a branch for each term, several are compared at the same time.
            let nearest = chunk
                .iter()
                .fold(u32::MAX, |least, set| least.min(rest(set)));
            if nearest == 0 {
                search(chunk, at * LETTER_CHUNK);
            }
        }
        search(others, chunks.len() * LETTER_CHUNK);
        found
    }

    /// Finds the number of a term.
    pub(crate) fn find(&self, term: &str) -> Option<u32> {
        let (mut low, mut high) = (0, self.terms());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.term(middle).cmp(term.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    /// Returns the number of tools that contain a term.
    pub(crate) fn tool_count(&self, term: u32) -> u32 {
        let (begin, end) = range(self.post_ends, term);
        (end - begin) as u32
    }

    /// Returns the tools that contain a term, each with its weight there.
    pub(crate) fn postings(&self, term: u32) -> impl Iterator<Item = (u32, f64)> + use<'a> {
        let (begin, end) = range(self.post_ends, term);
        let (chunks, _) =
            self.postings[begin * POSTING_BYTES..end * POSTING_BYTES].as_chunks::<POSTING_BYTES>();
        chunks.iter().map(|[a, b, c, d, low, high]| {
            let weight = u16::from_le_bytes([*low, *high]);
            (
                u32::from_le_bytes([*a, *b, *c, *d]),
                f64::from(weight) / WEIGHT_PARTS,
            )
        })
    }

    /// Returns the tools that call themselves deprecated.
    pub(crate) fn deprecated(&self) -> Option<impl Iterator<Item = u32> + use<'a>> {
        let mark = self.find(DEPRECATED_MARK)?;
        Some(self.postings(mark).map(|(tool, _)| tool))
    }

    /// Whether the tools have vectors.
    pub const fn has_vectors(&self) -> bool {
        self.vectors.is_some()
    }

    /// Returns the cosine of the angle between the vectors of a query and of each tool; empty without vectors.
    pub(crate) fn cosines(&self, query: &QueryVector) -> impl Iterator<Item = f32> {
        let (components, lengths) = match &self.vectors {
            Some(vectors) => (vectors.components, vectors.inverse_lengths),
            None => (&[][..], &[][..]),
        };
        let (components, _) = components.as_chunks::<DIMENSIONS>();
        let (lengths, _) = lengths.as_chunks::<4>();
        let pairs = components.iter().zip(lengths);
        pairs.map(|(components, length)| query.cosine(components, f32::from_le_bytes(*length)))
    }
}

fn number(numbers: &[u8], at: usize) -> u32 {
    let bytes: [u8; 4] = numbers[at * 4..at * 4 + 4].try_into().expect("four bytes");
    u32::from_le_bytes(bytes)
}

/// Returns the range that an element of a list of ends covers.
fn range(ends: &[u8], at: u32) -> (usize, usize) {
    let at = at as usize;
    let begin = at.checked_sub(1).map_or(0, |before| number(ends, before));
    (begin as usize, number(ends, at) as usize)
}

/// Returns the set of the characters of a word, as bits. One mistake changes at most two of them.
pub(crate) fn letters(word: &str) -> u32 {
    let bit = |c: char| 1 << (u32::from(c) % 32);
    word.chars().fold(0, |set, c| set | bit(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_finds_every_term_with_its_tools() {
        let documents = ["read_file", "write_file"].map(|name| Document {
            name,
            ..Document::default()
        });
        let bytes = index_bytes(&documents, None);
        let index = Index::new(&bytes).unwrap();
        let tools = |term| {
            let term = index.find(term).expect("it is a term");
            index
                .postings(term)
                .map(|(tool, _)| tool)
                .collect::<Vec<_>>()
        };
        assert_eq!(tools("file"), [0, 1]);
        assert_eq!(tools("read"), [0]);
        assert_eq!(tools("writefil"), [1]);
        assert!(index.find("fil").is_none() && index.find("zzz").is_none());
        assert_eq!((index.tools(), index.has_vectors()), (2, false));
    }

    #[test]
    fn empty_index_is_that_of_no_tools() {
        assert_eq!(EMPTY_INDEX, index_bytes(&[], None));
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let document = Document {
            name: "read",
            ..Document::default()
        };
        let bytes = index_bytes(&[document], None);
        for end in 0..bytes.len() {
            assert!(Index::new(&bytes[..end]).is_err(), "cut at {end}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(Index::new(&longer).is_err());
        let mut other = bytes;
        other[4] += 1;
        assert_eq!(
            Index::new(&other).unwrap_err(),
            IndexError("another version made it")
        );
    }
}

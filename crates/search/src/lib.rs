//! Tool search. A build makes an [`Index`] of the words and vectors of all tools; [`search`] ranks the tools that one
//! caller may see by words (BM25F) and by similarity of vectors. Pure: no IO, no async, no clock.
//!
//! Everything that a score depends on is either a property of one tool, a constant of [`TOKENIZER_VERSION`], or counted
//! over the tools of a [`SearchScope`]. So the answer for a scope equals the answer of an index that has only the
//! tools of the scope.

mod aliases;
mod deprecated;
mod document;
mod explain;
mod foreign;
mod index;
mod model_vectors;
mod query;
mod rank;
mod scope;
mod sentence;
mod stop_words;
mod tokens;
mod typos;
mod vectors;
mod wordpiece;

pub use document::{Document, FIELDS, Field, FieldLengths};
pub use explain::{Explanation, WordPart};
pub use index::{EMPTY_INDEX, Index, IndexError, index_bytes};
pub use model_vectors::{Embedding, MAX_DIMENSIONS, ModelVectors, VectorsError, vector_bytes};
pub use query::MatchKind;
pub use rank::{Hit, Hits, Ranking, Similarity, search};
pub use scope::SearchScope;
pub use stop_words::is_stop_word;
pub use vectors::{StaticTable, TableError, TableFiles};

/// The version of the tokenizer, the fields and the constants. An index of another version is refused.
pub const TOKENIZER_VERSION: u32 = 1;

/// The maximum length of a query, in characters.
pub const MAX_QUERY_CHARS: usize = 400;
/// The maximum number of hits of one search.
pub const MAX_HITS: usize = 50;
/// The number of hits unless the caller sets one.
pub const DEFAULT_HITS: usize = 5;

/// Whether a text can be a query: 1 to [`MAX_QUERY_CHARS`] characters, at least one of them a letter or digit.
pub fn is_query(text: &str) -> bool {
    text.chars().nth(MAX_QUERY_CHARS).is_none() && text.chars().any(char::is_alphanumeric)
}

/// The static table of the default: 128 dimensions, made of all-MiniLM-L6-v2. A binary contains it only if it is used.
pub static TABLE: TableFiles = TableFiles {
    vectors: include_bytes!("../table/static128.safetensors"),
    vocabulary: include_str!("../table/vocab.txt"),
};

#[cfg(test)]
mod test_table;
#[cfg(test)]
mod tests;

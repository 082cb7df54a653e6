//! Counts tokens with the vocabulary `o200k_base`, which the package `tiktoken-rs` contains.

use tiktoken_rs::{CoreBPE, o200k_base_singleton};

/// The name of the tokenizer in the report.
pub(crate) const TOKENIZER: &str = "o200k_base (package tiktoken-rs)";

/// The number of tokens of a text.
pub(crate) fn tokens(text: &str) -> usize {
    let tokenizer: &CoreBPE = o200k_base_singleton();
    tokenizer.encode_ordinary(text).len()
}

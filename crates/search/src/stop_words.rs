//! English words without a meaning for tools.

/// Sorted, so that a binary search finds them.
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been",
    "being", "both", "but", "by", "can", "could", "did", "do", "does", "each", "either", "for",
    "from", "had", "has", "have", "he", "her", "here", "him", "his", "how", "i", "if", "in",
    "into", "is", "it", "its", "just", "let", "may", "me", "might", "more", "most", "must", "my",
    "no", "not", "of", "on", "one", "only", "or", "other", "our", "out", "over", "please", "shall",
    "she", "should", "so", "some", "such", "than", "that", "the", "their", "them", "then", "there",
    "these", "they", "this", "those", "to", "too", "up", "us", "use", "used", "using", "very",
    "want", "was", "we", "were", "what", "when", "where", "which", "while", "who", "whose", "why",
    "will", "with", "would", "you", "your",
];

/// Whether a word in lower case is a stop word.
pub fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_sorted_and_found() {
        assert!(STOP_WORDS.is_sorted());
        assert!(is_stop_word("the") && !is_stop_word("file"));
    }
}

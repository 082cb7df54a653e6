//! The entry point for the fuzz target of cutting.

use super::Cut;

/// Returns a result, cut so that a reply with `around` further characters has at most `limit`, or `None` if it needs no
/// cut.
pub fn cut(result: &[u8], around: usize, limit: usize) -> Option<(Vec<u8>, Cut)> {
    super::cut(result, around, 0, limit)
}

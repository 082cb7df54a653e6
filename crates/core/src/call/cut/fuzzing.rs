//! A seam for the fuzz target of cutting.

use super::Cut;

/// A result within `limit` characters of a reply that has `around` others, or nothing if it needs no cut.
pub fn cut(result: &[u8], around: usize, limit: usize) -> Option<(Vec<u8>, Cut)> {
    super::cut(result, around, limit)
}

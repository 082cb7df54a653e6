//! A seam for the fuzz target of cutting.

/// A reply within `limit` characters, or nothing where it needs no cut.
pub fn cut(path: &str, result: &[u8], beside: &str, limit: usize) -> Option<Vec<u8>> {
    super::cut(path, result, beside, limit)
}

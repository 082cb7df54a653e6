//! What rules read of a tool.

use super::hints::Hints;

/// A tool, as far as rules read it.
#[derive(Clone, Debug)]
pub struct ToolFacts<'t> {
    /// Its path.
    pub path: &'t str,
    /// Its path without the digits of an alias that was derived from its name, by
    /// [`readable_path`](crate::alias::readable_path): a deny is also about that one.
    pub readable: Option<String>,
    /// Its reviewed hints.
    pub hints: Hints,
}

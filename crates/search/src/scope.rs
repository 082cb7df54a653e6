//! The tools that one class of callers may see, and what is counted over them.

use crate::index::Index;

/// A set of tools of an index, with the number of tools for each term. Made once for a class of callers.
#[derive(Clone, Debug)]
pub struct SearchScope {
    count: u32,
    /// `None` if all tools are visible.
    visible: Option<Visible>,
}

#[derive(Clone, Debug)]
struct Visible {
    /// A bit a tool.
    bits: Box<[u64]>,
    /// By term: the number of visible tools that contain it.
    tool_counts: Box<[u32]>,
}

impl SearchScope {
    /// Makes the scope of the tools that `sees` accepts.
    pub fn new(index: &Index<'_>, sees: impl Fn(u32) -> bool) -> Self {
        let mut bits = vec![0u64; index.tools().div_ceil(64) as usize].into_boxed_slice();
        for tool in (0..index.tools()).filter(|tool| sees(*tool)) {
            bits[tool as usize / 64] |= 1 << (tool % 64);
        }
        let count = bits.iter().map(|word| word.count_ones()).sum();
        if count == index.tools() {
            return Self {
                count,
                visible: None,
            };
        }
        let is_visible = |tool: u32| bits[tool as usize / 64] >> (tool % 64) & 1 == 1;
        let tool_counts = (0..index.terms()).map(|term| {
            let tools = index.postings(term).filter(|(tool, _)| is_visible(*tool));
            tools.count() as u32
        });
        let tool_counts = tool_counts.collect();
        Self {
            count,
            visible: Some(Visible { bits, tool_counts }),
        }
    }

    /// Returns the number of its tools.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Whether it has all tools of the index.
    pub(crate) const fn has_all_tools(&self) -> bool {
        self.visible.is_none()
    }

    /// Whether it has a tool.
    pub fn contains(&self, tool: u32) -> bool {
        let visible = self.visible.as_ref();
        visible.is_none_or(|visible| visible.bits[tool as usize / 64] >> (tool % 64) & 1 == 1)
    }

    /// Returns the number of its tools that contain a term.
    pub(crate) fn tool_count(&self, index: &Index<'_>, term: u32) -> u32 {
        match &self.visible {
            None => index.tool_count(term),
            Some(visible) => visible.tool_counts[term as usize],
        }
    }

    /// Finds a term, if any of its tools contains it.
    pub(crate) fn find(&self, index: &Index<'_>, term: &str) -> Option<u32> {
        let found = index.find(term)?;
        (self.tool_count(index, found) > 0).then_some(found)
    }
}

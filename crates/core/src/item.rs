//! An item as lists, look-ups and filters of a program show it.

use broker_model::item::ItemKind;

use crate::catalog::Catalog;

/// A tool, prompt, template or resource, as lists and look-ups show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolItem {
    /// Its path.
    pub path: &'static str,
    /// Its kind.
    pub kind: ItemKind,
    /// Its name for MCP clients that see every tool directly; empty for everything but tools.
    pub flat_name: &'static str,
    /// The path of its source.
    pub source: &'static str,
    /// Whether it is withdrawn, so that calls are refused.
    pub withdrawn: bool,
}

impl ToolItem {
    /// Returns an item by its index.
    pub(crate) fn new(catalog: &Catalog, at: u32, withdrawn: bool) -> Self {
        let item = catalog.item(at);
        Self {
            kind: item.kind,
            path: catalog.entry(item.entry).path,
            flat_name: item.flat_name,
            source: catalog.sources[item.source as usize].path,
            withdrawn,
        }
    }
}

//! What a layer above can record of a call and only the call path knows.

use std::sync::OnceLock;

use broker_model::item::ItemKind;

/// The facts that the call path fills in along the way.
#[derive(Debug, Default)]
pub struct CallRecord {
    item: OnceLock<RecordedItem>,
}

/// The item of a call, under the version that was reviewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedItem {
    /// Its path.
    pub path: &'static str,
    /// Its kind.
    pub kind: ItemKind,
    /// The path of its source.
    pub source: &'static str,
    /// The digest that was reviewed.
    pub digest: &'static str,
}

impl CallRecord {
    /// Returns the item, if the path of the call names one that exists for the caller.
    pub fn item(&self) -> Option<&RecordedItem> {
        self.item.get()
    }

    /// Records the item. A call has one, so a second one is ignored.
    pub(super) fn resolved(&self, item: RecordedItem) {
        self.item.get_or_init(|| item);
    }
}

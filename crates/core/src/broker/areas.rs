//! The entries directly below the topmost one that a caller sees, for texts that introduce the tree.

use super::Broker;
use crate::identity::Identity;
use crate::listing::entry::{EntryType, ListedEntry};
use crate::listing::look_up::Name;

/// Returns the entries directly below the root of the caller, in the order of a listing. If the caller is restricted to
/// an item, returns this item.
pub fn areas(broker: &impl Broker, identity: &Identity) -> Vec<ListedEntry> {
    let root = identity.root();
    if let Ok(listing) = broker.list(identity, root, 1) {
        return listing.tree().children.unwrap_or_default();
    }
    let found = broker.look_up(identity, Name::Path(root));
    let item = found.map(|found| ListedEntry {
        path: found.item.path,
        kind: EntryType::Item(found.item.kind),
        summary: found.summary(),
        withdrawn: None,
        children: None,
    });
    item.into_iter().collect()
}

//! Who may see and call what. The same decision filters listings and refuses calls, and it can only
//! take away from the catalog.

use super::identity::Identity;
use super::view::View;
use crate::catalog::{Entry, Kind};

/// Whether an entry is there for this caller. Nodes always are; a tool is unless the config's filter
/// leaves it out. A caller that passed a surface's own check may use all the rest.
pub(super) fn admits(identity: &Identity, view: &View, entry: &Entry) -> bool {
    match identity {
        Identity::Anonymous | Identity::Secret | Identity::Local => match entry.kind {
            Kind::Node { .. } => true,
            Kind::Tool(tool) => !view.is_hidden(tool),
        },
    }
}

//! Changes of items and sources that a program outside learns of, such as an audit log.

use std::fmt;

use broker_drift::Class;
use broker_model::SourceCause;

/// Learns of each change once, in the order in which changes take effect. It must not block.
pub trait ChangeObserver: Send + Sync {
    /// Takes a change.
    fn observe(&self, change: &Change<'_>);
}

impl fmt::Debug for dyn ChangeObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChangeObserver")
    }
}

/// A change of an item or of a source.
#[derive(Clone, Debug)]
pub enum Change<'a> {
    /// An item is not served any more.
    Withdrawn {
        /// The item.
        item: ChangedItem,
        /// The class of the difference.
        class: Class,
        /// The first rule that found it.
        rule: &'static str,
        /// The digest of the item that the source lists now.
        found: Option<&'a str>,
    },
    /// A withdrawn item is served again.
    Restored {
        /// The item.
        item: ChangedItem,
    },
    /// A source differs from the lock, without a withdrawal by this difference.
    Differs {
        /// The path of the source.
        source: &'a str,
        /// The path of the item, or of the source.
        path: &'a str,
        /// The class of the difference.
        class: Class,
        /// The rule that found it.
        rule: &'static str,
    },
    /// A process or session of a source was lost while it was in use.
    SourceDown {
        /// The path of the source.
        source: &'a str,
        /// The cause.
        cause: SourceCause,
    },
    /// A process or session of a source that was lost has a successor.
    SourceUp {
        /// The path of the source.
        source: &'a str,
    },
}

/// An item of the catalog.
#[derive(Clone, Copy, Debug)]
pub struct ChangedItem {
    /// Its path.
    pub path: &'static str,
    /// The path of its source.
    pub source: &'static str,
    /// The server's identifier for it.
    pub id: &'static str,
    /// The digest that was reviewed.
    pub digest: &'static str,
}

//! The protocol era that a start asks for first, and the one that the source is known to have.

use broker_wire::Era;

/// The knowledge about a source's protocol era before its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EraHint {
    /// The era that is asked for first.
    pub(crate) first: Era,
    /// The era of the source's earlier answers. After a failure that may pass, like a crash, the start does not ask for
    /// another one.
    pub(crate) known: Option<Era>,
    /// Whether the known era may be asked for in vain, since the server may have another one since. Then a start that
    /// fails twice in the known era asks for the other one, once.
    pub(crate) may_have_changed: bool,
}

impl EraHint {
    /// Asks for this era first; the source is known to have it.
    pub const fn known(era: Era) -> Self {
        Self {
            first: era,
            known: Some(era),
            may_have_changed: false,
        }
    }

    /// Asks for the locked era first, for a source that is known to have another one now, or the same.
    pub const fn changed(locked: Era, known: Era) -> Self {
        Self {
            first: locked,
            known: Some(known),
            may_have_changed: false,
        }
    }

    /// Asks for this era first, for a source that may have been changed since it had it.
    pub const fn likely(era: Era) -> Self {
        Self {
            first: era,
            known: None,
            may_have_changed: false,
        }
    }

    /// Asks for the newest era first, and falls back to the one that the source is known to have; for a lock, because
    /// it records the server as it is now.
    pub const fn newest(known: Option<Era>) -> Self {
        Self {
            first: Era::Modern,
            known,
            may_have_changed: true,
        }
    }
}

impl Default for EraHint {
    /// Without a known era, the newest era comes first.
    fn default() -> Self {
        Self::newest(None)
    }
}

impl From<Option<Era>> for EraHint {
    fn from(known: Option<Era>) -> Self {
        known.map_or_else(Self::default, Self::known)
    }
}

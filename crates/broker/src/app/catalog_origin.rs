//! Where the catalog of a start comes from.

/// The origin of a catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CatalogOrigin {
    /// The build compiled it in.
    Compiled,
    /// It was made of a lock at the start, so that only this machine may use it.
    Lock,
}

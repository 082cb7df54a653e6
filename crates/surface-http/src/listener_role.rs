//! The role of a listener.

/// The routes that a listener has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenerRole {
    /// All of them.
    Broker,
    /// The metrics.
    Metrics,
}

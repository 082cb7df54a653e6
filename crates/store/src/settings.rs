//! The settings of a store.

use std::path::PathBuf;

use crate::bounds::Bounds;
use crate::clock::Clock;

/// The settings of a store.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// The file. Without one the jobs are in memory.
    pub path: Option<PathBuf>,
    /// The bounds.
    pub bounds: Bounds,
    /// The clock.
    pub clock: Clock,
}

impl StoreSettings {
    /// Returns the settings of a store in memory, with the usual bounds and the clock of the system.
    pub fn in_memory() -> Self {
        Self {
            path: None,
            bounds: Bounds::default(),
            clock: Clock::system(),
        }
    }
}

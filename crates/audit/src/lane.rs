//! The number of a caller's lane in the queue: a hash of the caller with a random key, computed once for a caller.

use std::hash::Hasher;
use std::sync::OnceLock;

/// The lane of a caller, once it is known. Lines do not have it.
#[derive(Clone, Debug, Default)]
pub struct Lane(OnceLock<u64>);

impl Lane {
    /// Returns the number, or computes it.
    pub(crate) fn number(&self, compute: impl FnOnce() -> u64) -> u64 {
        *self.0.get_or_init(compute)
    }
}

impl PartialEq for Lane {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Lane {}

/// Takes the number of a lane as its hash, since it is one.
#[derive(Debug, Default)]
pub(crate) struct LaneHasher(u64);

impl Hasher for LaneHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, lane: u64) {
        self.0 = lane;
    }
}

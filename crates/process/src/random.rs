//! Random numbers from the system.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

/// Sixty-four unpredictable bits: the standard library seeds its hashers from the system.
pub fn random_u64() -> u64 {
    RandomState::new().build_hasher().finish()
}

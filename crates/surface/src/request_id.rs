//! Ids of requests, unique within a process and, by a random prefix, between processes. A caller's
//! `X-Request-Id` is not used: it would put foreign text into the log.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use broker_core::RequestId;

/// Generates request ids.
#[derive(Debug)]
pub struct RequestIds {
    /// Eight hexadecimal digits and a hyphen.
    prefix: String,
    next: AtomicU64,
}

impl RequestIds {
    /// Makes ids with a random prefix for this process.
    pub fn random() -> Self {
        // The standard library seeds its hasher from the system's randomness; 32 bits are enough to
        // distinguish processes in a log, and an id is not a secret.
        let prefix = RandomState::new().build_hasher().finish() as u32;
        Self {
            prefix: format!("{prefix:08x}-"),
            next: AtomicU64::new(1),
        }
    }

    /// Returns the next id: visible ASCII, fit for a header.
    #[inline]
    pub fn next(&self) -> RequestId {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        // Formatting with `format!` took 2 % of the instructions of a call.
        let mut digits = itoa::Buffer::new();
        RequestId::new(&[&self.prefix, digits.format(count)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_differ_and_are_valid_header_values() {
        let ids = RequestIds::random();
        let (a, b) = (ids.next(), ids.next());
        assert_ne!(a, b);
        assert!(axum::http::HeaderValue::from_str(a.as_str()).is_ok());
    }
}

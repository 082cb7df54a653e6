//! The clock of the run, which is the real one.

use std::time::Instant;

#[expect(
    clippy::disallowed_methods,
    reason = "a soak measures real time and pauses none"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

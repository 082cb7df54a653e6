//! Figures that tests measure: printed, and stored beside the binaries for `docs/internals/faults.md`.

use std::fs;
use std::time::{Duration, Instant};

use crate::access;
use crate::binaries::binary_folder;
use crate::program::now;

/// The folder of figures, beside the binaries.
const FOLDER: &str = "fault-figures";

/// Reports the figure of a row: `row` as in `F-06`, `text` as the page shows it.
#[expect(
    clippy::print_stdout,
    reason = "the test runner shows what a test prints beside its outcome"
)]
pub fn figure(row: &str, text: &str) {
    println!("figure {row}: {text}");
    // The page has the figures without rules.
    if access::is_on() {
        return;
    }
    let folder = binary_folder().join(FOLDER);
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join(row), format!("{text}\n")))
        .expect("the folder of the binaries can be written to");
}

/// A stopwatch.
#[derive(Clone, Copy, Debug)]
pub struct Watch(Instant);

impl Watch {
    /// Starts it.
    pub fn start() -> Self {
        Self(now())
    }

    /// The elapsed time.
    pub fn passed(self) -> Duration {
        self.0.elapsed()
    }
}

/// A time for people: `7 ms`, `1.2 s`.
pub fn shown(time: Duration) -> String {
    if time < Duration::from_millis(10) {
        format!("{:.1} ms", time.as_secs_f64() * 1e3)
    } else if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

/// The median and the 99th percentile of some times.
pub fn quantiles(times: &mut [Duration]) -> (Duration, Duration) {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    (at(50), at(99))
}

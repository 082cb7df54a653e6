//! The rate of the last minutes, and the time until the disk is full at that rate.

use std::collections::VecDeque;
use std::time::Duration;

/// The time between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(10);
/// The number of samples: five minutes.
const SAMPLES: usize = 30;

/// Counts bytes over time.
#[derive(Debug, Default)]
pub(super) struct Rate {
    total: u64,
    samples: VecDeque<(Duration, u64)>,
    space_left_s: Option<u64>,
}

impl Rate {
    /// Counts written bytes.
    pub(super) const fn count(&mut self, bytes: u64) {
        self.total += bytes;
    }

    /// Returns the seconds until the free bytes are used up, as of the last sample.
    pub(super) fn space_left(
        &mut self,
        now: Duration,
        free_bytes: impl FnOnce() -> Option<u64>,
    ) -> Option<u64> {
        let last = self.samples.back().map(|(at, _)| *at);
        if last.is_some_and(|last| now < last + SAMPLE_INTERVAL) {
            return self.space_left_s;
        }
        self.samples.push_back((now, self.total));
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
        let (begun, before) = *self.samples.front()?;
        let bytes = u128::from(self.total - before);
        let millis = (now - begun).as_millis();
        self.space_left_s = free_bytes().and_then(|free| {
            let left = u128::from(free) * millis / 1000;
            let seconds = left.checked_div(bytes)?;
            Some(seconds.try_into().unwrap_or(u64::MAX))
        });
        self.space_left_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_left_is_the_free_space_over_the_rate() {
        let mut rate = Rate::default();
        let at = Duration::from_secs;
        assert_eq!(rate.space_left(at(0), || Some(1000)), None);
        rate.count(500);
        assert_eq!(rate.space_left(at(5), || unreachable!()), None);
        // 50 bytes a second.
        assert_eq!(rate.space_left(at(10), || Some(1000)), Some(20));
        // The rate falls when nothing is written.
        assert_eq!(rate.space_left(at(100), || Some(1000)), Some(200));
        assert_eq!(rate.space_left(at(110), || None), None);
    }
}

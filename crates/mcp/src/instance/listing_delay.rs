//! The delay of listings after announced changes: the delay between two listings doubles while
//! announcements continue. Pure: the time is a parameter.

use std::time::Duration;

use tokio::time::Instant;

use crate::spec::Timing;

/// The delay after the last announced listing.
#[derive(Debug)]
pub(super) struct ListingDelay {
    least: Duration,
    most: Duration,
    now: Duration,
    listed: Option<Instant>,
}

impl ListingDelay {
    pub(super) fn new(timing: Timing) -> Self {
        Self {
            least: timing.recheck_gap,
            most: timing.recheck_gap_cap,
            now: timing.recheck_gap,
            listed: None,
        }
    }

    /// Returns the earliest time of the listing after an announcement at `now`.
    pub(super) fn announced(&mut self, now: Instant) -> Instant {
        let Some(listed) = self.listed else {
            return now;
        };
        let earliest = listed + self.now;
        let continues = now.saturating_duration_since(listed) < self.most;
        self.now = match continues {
            true => self.now.saturating_mul(2).min(self.most),
            false => self.least,
        };
        earliest.max(now)
    }

    /// Records that the listing has arrived.
    pub(super) fn listed(&mut self, now: Instant) {
        self.listed = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the listings within `time` for a server that announces each `period`.
    fn listings(period: Duration, time: Duration) -> Vec<u64> {
        let mut gap = ListingDelay::new(Timing::default());
        let start = Instant::now();
        let mut announced = start;
        let mut found = Vec::new();
        loop {
            let at = gap.announced(announced);
            if at - start > time {
                return found;
            }
            found.push((at - start).as_secs());
            gap.listed(at);
            // The first announcement after the listing.
            while announced <= at {
                announced += period;
            }
        }
    }

    #[test]
    fn listing_delay_under_constant_announcements_grows_to_a_minute() {
        let day = Duration::from_secs(86_400);
        let found = listings(Duration::from_millis(10), day);
        assert_eq!(found[..8], [0, 1, 3, 7, 15, 31, 63, 123]);
        assert!(found.len() <= 1447, "{}", found.len());
        for seconds in [1, 5, 30, 59] {
            let found = listings(Duration::from_secs(seconds), day);
            assert!(found.len() <= 1460, "each {seconds} s: {}", found.len());
        }
    }

    #[test]
    fn listing_delay_after_a_quiet_minute_starts_at_zero() {
        let mut gap = ListingDelay::new(Timing::default());
        let mut now = Instant::now();
        for _ in 0..9 {
            now = gap.announced(now);
            gap.listed(now);
        }
        now += Duration::from_secs(60);
        assert_eq!(gap.announced(now), now);
        gap.listed(now);
        assert_eq!(gap.announced(now) - now, Duration::from_secs(1));
    }
}

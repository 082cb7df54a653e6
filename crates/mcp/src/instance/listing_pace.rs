//! The pace of listings after announced changes: a bucket of tokens. A server that changes its tools a few times is compared
//! at once each time; one that announces all the time costs few listings. Pure: the time is a parameter.

use std::time::Duration;

use tokio::time::Instant;

use crate::spec::Timing;

/// The number of listings that follow announcements at once.
const BURST: u32 = 10;
/// The time for which announcements find no token until the server is in a storm.
const STORM_TIME: Duration = Duration::from_secs(600);

/// The tokens of one session for announced listings. A listing takes one; an announcement without a token waits for it.
#[derive(Debug)]
pub(super) struct ListingPace {
    /// The time in which a token is added.
    interval: Duration,
    /// The time between two listings in a storm, and the time without an announcement that ends it.
    storm_interval: Duration,
    /// When the bucket is full again. A listing may be early by at most nine intervals.
    full_at: Option<Instant>,
    /// Since when announcements find no token. In a storm the bucket fills, but only a pause ends the storm.
    waits_since: Option<Instant>,
    /// The last listing.
    listed: Option<Instant>,
}

impl ListingPace {
    pub(super) fn new(timing: Timing) -> Self {
        Self {
            interval: timing.listing_interval,
            storm_interval: timing.storm_interval,
            full_at: None,
            waits_since: None,
            listed: None,
        }
    }

    /// Returns the earliest time of the listing after an announcement at `now`, which takes a token.
    pub(super) fn announced(&mut self, now: Instant) -> Instant {
        let is_after_pause =
            (self.listed).is_none_or(|listed| now.duration_since(listed) >= self.storm_interval);
        if is_after_pause {
            self.waits_since = None;
        }
        let full_at = self.full_at.map_or(now, |at| at.max(now));
        let early = self.interval * (BURST - 1);
        let mut at = full_at.checked_sub(early).map_or(now, |at| at.max(now));
        let is_storm = (self.waits_since).is_some_and(|since| at - since >= STORM_TIME);
        match self.listed {
            Some(listed) if is_storm => at = at.max(listed + self.storm_interval),
            _ if at == now => self.waits_since = None,
            _ => self.waits_since = self.waits_since.or(Some(now)),
        }
        self.full_at = Some(full_at.max(at) + self.interval);
        at
    }

    /// Records that the listing has arrived.
    pub(super) fn listed(&mut self, now: Instant) {
        self.listed = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the seconds of the listings within `time` for a server that announces each `period`.
    fn listings(period: Duration, time: Duration) -> Vec<u64> {
        let mut pace = ListingPace::new(Timing::default());
        let start = Instant::now();
        let mut announced = start;
        let mut found = Vec::new();
        loop {
            let at = pace.announced(announced);
            if at - start > time {
                return found;
            }
            found.push((at - start).as_secs());
            pace.listed(at);
            // The first announcement after the listing.
            while announced <= at {
                announced += period;
            }
        }
    }

    #[test]
    fn five_changes_in_a_minute_are_listed_at_once() {
        let found = listings(12 * SECOND, 48 * SECOND);
        assert_eq!(found, [0, 12, 24, 36, 48]);
        let all_at_once = listings(SECOND, 4 * SECOND);
        assert_eq!(all_at_once, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn ten_listings_are_at_once_then_one_in_six_seconds() {
        let found = listings(Duration::from_millis(10), 599 * SECOND);
        assert_eq!(found[..10], [0; 10]);
        let rest: Vec<_> = found[10..].windows(2).map(|two| two[1] - two[0]).collect();
        assert!(rest.iter().all(|gap| (5..=7).contains(gap)), "{rest:?}");
        assert!((100..=110).contains(&found.len()), "{}", found.len());
    }

    #[test]
    fn storm_of_ten_minutes_falls_to_a_listing_a_minute() {
        let day = Duration::from_secs(86_400);
        for period in [Duration::from_millis(10), SECOND, 5 * SECOND] {
            let found = listings(period, day);
            // Announcements each 5 s use up the tokens in five minutes.
            let late: Vec<_> = found.iter().filter(|at| **at >= 1000).collect();
            let fewest = late.windows(2).map(|two| two[1] - two[0]).min();
            assert!(fewest >= Some(59), "each {period:?}: {fewest:?}");
            assert!(
                found.len() <= 180 + 1440,
                "each {period:?}: {}",
                found.len()
            );
        }
    }

    #[test]
    fn steady_changes_within_the_tokens_are_listed_at_once_for_ever() {
        let found = listings(12 * SECOND, 3600 * SECOND);
        assert_eq!(found, (0..=300).map(|at| at * 12).collect::<Vec<_>>());
    }

    #[test]
    fn quiet_minute_ends_a_storm_and_fills_the_bucket() {
        let mut pace = ListingPace::new(Timing::default());
        let mut now = Instant::now();
        let end = now + 2 * STORM_TIME;
        while now < end {
            now = pace.announced(now);
            pace.listed(now);
        }
        now += 60 * SECOND;
        for _ in 0..BURST {
            assert_eq!(pace.announced(now), now);
            pace.listed(now);
        }
        assert_eq!(pace.announced(now) - now, 6 * SECOND);
    }
}

//! Histograms of durations: atomic counters that a call adds to, and what a scrape reads of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of durations of operations, as the conventions of OpenTelemetry for MCP name them.
pub(crate) const OPERATION_BOUNDS: [Duration; 14] = millis([
    10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 120_000, 300_000,
]);

/// Returns durations of these milliseconds.
const fn millis<const N: usize>(millis: [u64; N]) -> [Duration; N] {
    let (mut bounds, mut at) = ([Duration::ZERO; N], 0);
    while at < N {
        bounds[at] = Duration::from_millis(millis[at]);
        at += 1;
    }
    bounds
}

/// The durations of operations.
pub(crate) type Durations = Histogram<{ OPERATION_BOUNDS.len() }>;

/// A histogram with `N` bounds. An observation is two additions.
#[derive(Debug)]
pub(crate) struct Histogram<const N: usize> {
    /// The number of observations up to each bound and above the bound before it.
    buckets: [AtomicU64; N],
    /// The number of observations above the last bound.
    beyond: AtomicU64,
    /// The sum, in nanoseconds.
    sum: AtomicU64,
}

impl<const N: usize> Default for Histogram<N> {
    fn default() -> Self {
        Self {
            buckets: [const { AtomicU64::new(0) }; N],
            beyond: AtomicU64::new(0),
            sum: AtomicU64::new(0),
        }
    }
}

impl<const N: usize> Histogram<N> {
    /// Adds a duration. `bounds` are the upper bounds of the buckets.
    pub(crate) fn add(&self, bounds: &[Duration; N], duration: Duration) {
        let at = bounds.partition_point(|bound| *bound < duration);
        let bucket = self.buckets.get(at).unwrap_or(&self.beyond);
        bucket.fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.sum.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Reads it; `None` before the first observation.
    pub(crate) fn read(&self, bounds: &[Duration; N]) -> Option<Reading> {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let finite = bounds.iter().zip(&self.buckets);
        let finite = finite.map(|(bound, bucket)| (bound.as_secs_f64(), load(bucket)));
        let buckets: Vec<(f64, u64)> = finite
            .chain([(f64::INFINITY, load(&self.beyond))])
            .collect();
        // The count is the sum of the buckets that were read, so that the two agree while calls end.
        let count = buckets.iter().map(|(_, count)| count).sum();
        (count > 0).then(|| Reading {
            sum: Duration::from_nanos(load(&self.sum)).as_secs_f64(),
            count,
            buckets,
        })
    }
}

impl<const N: usize> Histogram<N> {
    /// Adds the buckets to the counts of a sum over several histograms; the last count is beyond all bounds.
    pub(crate) fn add_to(&self, counts: &mut [u64]) {
        let buckets = self.buckets.iter().chain([&self.beyond]);
        for (count, bucket) in counts.iter_mut().zip(buckets) {
            *count += bucket.load(Ordering::Relaxed);
        }
    }
}

/// Returns the duration below which this part of the observations is, estimated as Prometheus does: evenly within a
/// bucket, and the last bound for those beyond it. `None` without observations.
pub(crate) fn quantile(bounds: &[Duration], counts: &[u64], part: f64) -> Option<Duration> {
    let total: u64 = counts.iter().sum();
    let rank = part * total as f64;
    let (mut below, mut lower) = (0.0, Duration::ZERO);
    for (bound, count) in bounds.iter().zip(counts) {
        let count = *count as f64;
        if count > 0.0 && below + count >= rank {
            let share = ((rank - below) / count).clamp(0.0, 1.0);
            return Some(lower + (*bound - lower).mul_f64(share));
        }
        (below, lower) = (below + count, *bound);
    }
    (total > 0).then_some(lower)
}

/// The values of a histogram at one moment.
#[derive(Debug, PartialEq)]
pub struct Reading {
    /// The sum, in seconds.
    pub sum: f64,
    /// The number of observations.
    pub count: u64,
    /// Each upper bound, with the observations of its bucket alone.
    pub buckets: Vec<(f64, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_counts_in_the_bucket_whose_bound_it_does_not_exceed() {
        let bounds = millis([10, 100, 1000, 10_000, 60_000]);
        let histogram = Histogram::default();
        assert_eq!(histogram.read(&bounds), None);
        for millis in [0, 10, 11, 60_000, 60_001] {
            histogram.add(&bounds, Duration::from_millis(millis));
        }
        let reading = histogram.read(&bounds).expect("five observations");
        let counts: Vec<u64> = reading.buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 1, 0, 0, 1, 1]);
        assert_eq!((reading.count, reading.sum), (5, 120.022));
        assert_eq!(reading.buckets[5].0, f64::INFINITY);
    }

    #[test]
    fn quantile_is_within_the_bucket_of_its_rank() {
        let bounds = millis([10, 100, 1000]);
        assert_eq!(quantile(&bounds, &[0; 4], 0.5), None);
        let half = quantile(&bounds, &[0, 100, 0, 0], 0.5);
        assert_eq!(half, Some(Duration::from_millis(55)));
        let slow = quantile(&bounds, &[98, 0, 2, 0], 0.99);
        assert_eq!(slow, Some(Duration::from_millis(550)));
        let beyond = quantile(&bounds, &[0, 0, 0, 7], 0.5);
        assert_eq!(beyond, Some(Duration::from_secs(1)), "the last bound");
    }

    #[test]
    fn duration_of_centuries_does_not_panic() {
        let histogram = Durations::default();
        histogram.add(&OPERATION_BOUNDS, Duration::MAX);
        assert_eq!(histogram.read(&OPERATION_BOUNDS).expect("one").count, 1);
    }
}

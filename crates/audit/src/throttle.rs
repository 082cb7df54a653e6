//! Rates for events that a caller can cause at will: some lines in a window, and the count of the rest.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// Counts events by key. A key has `burst` lines in a window; further events are counted, and the count is reported when
/// the window has ended.
#[derive(Debug)]
pub(crate) struct Throttle<K, V> {
    window: Duration,
    burst: u32,
    max_keys: usize,
    keys: HashMap<K, Entry<V>>,
    /// The events of keys that have no place in the table.
    rest: u64,
    /// The time of the last sweep.
    swept: Duration,
}

#[derive(Debug)]
struct Entry<V> {
    begun: Duration,
    lines: u32,
    counted: u64,
    value: V,
}

impl<K: Eq + Hash, V> Throttle<K, V> {
    pub(crate) fn new(window: Duration, burst: u32, max_keys: usize) -> Self {
        Self {
            window,
            burst,
            max_keys,
            keys: HashMap::new(),
            rest: 0,
            swept: Duration::ZERO,
        }
    }

    /// Whether an event has a line. Otherwise it is counted.
    pub(crate) fn take(&mut self, key: K, now: Duration, value: impl FnOnce() -> V) -> bool {
        if let Some(entry) = self.keys.get_mut(&key) {
            if entry.lines < self.burst {
                entry.lines += 1;
                return true;
            }
            entry.counted += 1;
            return false;
        }
        if self.keys.len() >= self.max_keys {
            self.rest += 1;
            return false;
        }
        let entry = Entry {
            begun: now,
            lines: 1,
            counted: 0,
            value: value(),
        };
        self.keys.insert(key, entry);
        true
    }

    /// Returns the counts of the windows that have ended, and the count of events without a place. A key that had
    /// counted events keeps its window full, so that it has one line in each further window.
    pub(crate) fn sweep(&mut self, now: Duration, mut report: impl FnMut(&V, u64)) -> u64 {
        let (window, burst) = (self.window, self.burst);
        self.keys.retain(|_, entry| {
            if now < entry.begun + window {
                return true;
            }
            if entry.counted == 0 {
                return false;
            }
            report(&entry.value, entry.counted);
            entry.begun = now;
            entry.counted = 0;
            entry.lines = burst;
            true
        });
        if now < self.swept + window {
            return 0;
        }
        self.swept = now;
        std::mem::take(&mut self.rest)
    }

    /// Whether there is anything to sweep later.
    pub(crate) fn is_idle(&self) -> bool {
        self.keys.is_empty() && self.rest == 0
    }

    /// Counts an event whose line was dropped.
    pub(crate) fn count_rest(&mut self) {
        self.rest += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn events_beyond_the_burst_are_counted_once_a_window() {
        let mut throttle = Throttle::new(SECOND, 2, 10);
        let taken = (0..5).filter(|_| throttle.take("a", Duration::ZERO, || "a"));
        assert_eq!(taken.count(), 2);
        let mut counts = Vec::new();
        throttle.sweep(SECOND / 2, |key, count| counts.push((*key, count)));
        assert!(counts.is_empty());
        throttle.sweep(SECOND, |key, count| counts.push((*key, count)));
        // The flood goes on: no burst again, only the count of each window.
        assert!(!throttle.take("a", SECOND, || "a"));
        throttle.sweep(SECOND * 2, |key, count| counts.push((*key, count)));
        assert_eq!(counts, [("a", 3), ("a", 1)]);
        throttle.sweep(SECOND * 3, |_, _| unreachable!());
        assert!(throttle.is_idle() && throttle.take("a", SECOND * 3, || "a"));
    }

    #[test]
    fn keys_beyond_the_table_are_counted_together() {
        let mut throttle = Throttle::new(SECOND, 1, 4);
        let taken = (0..100).filter(|key| throttle.take(*key, Duration::ZERO, || ()));
        assert_eq!(taken.count(), 4);
        assert_eq!(throttle.sweep(SECOND, |(), _| unreachable!()), 96);
        assert!(throttle.is_idle());
    }
}

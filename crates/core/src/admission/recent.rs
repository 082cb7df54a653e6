//! The values that were used last, by key.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum number of values that are kept.
const MAX_KEPT: usize = 64;

/// At most [`MAX_KEPT`] values; the one that was used longest ago is forgotten first.
#[derive(Debug)]
pub(super) struct Recent<K, V>(Mutex<Vec<(K, Arc<V>)>>);

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: PartialEq, V> Recent<K, V> {
    /// Returns the value of a key, made by `make` if it is not known. The lock is not held meanwhile.
    pub(super) fn get(&self, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        match self.find(&key) {
            Some(known) => known,
            None => self.keep(key, make()),
        }
    }

    /// Keeps the value of a key. If another value was made meanwhile, returns the other value.
    pub(super) fn keep(&self, key: K, value: V) -> Arc<V> {
        let mut kept = self.kept();
        if let Some((_, known)) = kept.iter().find(|(known, _)| *known == key) {
            return Arc::clone(known);
        }
        let value = Arc::new(value);
        kept.truncate(MAX_KEPT - 1);
        kept.insert(0, (key, Arc::clone(&value)));
        value
    }

    /// Returns the value of a key and moves it to the end of the eviction order.
    pub(super) fn find(&self, key: &K) -> Option<Arc<V>> {
        let mut kept = self.kept();
        let at = kept.iter().position(|(known, _)| known == key)?;
        kept[..=at].rotate_right(1);
        Some(Arc::clone(&kept[0].1))
    }

    fn kept(&self) -> MutexGuard<'_, Vec<(K, Arc<V>)>> {
        // Every change leaves a valid list.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_that_was_used_longest_ago_is_forgotten_first() {
        let recent = Recent::default();
        for n in 0..MAX_KEPT {
            assert_eq!(*recent.get(n, || n), n);
        }
        assert_eq!(*recent.get(0, || unreachable!()), 0);
        assert_eq!(*recent.get(MAX_KEPT, || MAX_KEPT), MAX_KEPT);
        assert_eq!(*recent.get(0, || unreachable!()), 0);
        assert_eq!(*recent.get(1, || 1000), 1000, "it was forgotten");
    }
}

//! Bounds the calls that wait for their sources to start, and the part of them that one caller may have.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::identity::Subject;

/// The maximum number of calls that wait for one source.
pub(crate) const MAX_STARTING_CALLS: usize = 256;

/// The waiting calls of all sources.
#[derive(Debug)]
pub(crate) struct WaitingCalls(Box<[Mutex<Places>]>);

/// The places of one source that are taken.
#[derive(Debug, Default)]
struct Places {
    taken: usize,
    by_subject: HashMap<Subject, usize>,
}

/// The place of one waiting call; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place<'a> {
    places: &'a Mutex<Places>,
    subject: &'a Subject,
}

impl WaitingCalls {
    pub(crate) fn new(sources: usize) -> Self {
        Self((0..sources).map(|_| Mutex::default()).collect())
    }

    /// Takes a place for a call of `subject`, who may have at most as many as are free; `None` if it has.
    pub(super) fn enter<'a>(&'a self, source: usize, subject: &'a Subject) -> Option<Place<'a>> {
        let places = &self.0[source];
        let mut known = lock(places);
        let free = MAX_STARTING_CALLS - known.taken;
        let own = known.by_subject.get(subject).copied().unwrap_or_default();
        if own >= free {
            return None;
        }
        known.taken += 1;
        known.by_subject.insert(subject.clone(), own + 1);
        Some(Place { places, subject })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut known = lock(self.places);
        known.taken -= 1;
        match known.by_subject.get_mut(self.subject) {
            Some(own) if *own > 1 => *own -= 1,
            _ => {
                known.by_subject.remove(self.subject);
            }
        }
    }
}

fn lock(places: &Mutex<Places>) -> MutexGuard<'_, Places> {
    places.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Subject {
        Subject::Key { name: name.into() }
    }

    #[test]
    fn waiting_calls_of_one_caller_leave_places_for_others() {
        let calls = WaitingCalls::new(2);
        let (busy, late) = (key("busy"), key("late"));
        let mut places: Vec<_> = (0..MAX_STARTING_CALLS)
            .map_while(|_| calls.enter(0, &busy))
            .collect();
        assert_eq!(places.len(), MAX_STARTING_CALLS / 2);
        let others: Vec<_> = (0..MAX_STARTING_CALLS)
            .map_while(|_| calls.enter(0, &late))
            .collect();
        assert_eq!(others.len(), MAX_STARTING_CALLS / 4);
        assert!(calls.enter(0, &busy).is_none());
        assert!(
            calls.enter(1, &busy).is_some(),
            "each source has its places"
        );
        places.clear();
        assert!(calls.enter(0, &busy).is_some());
        drop(others);
        let places = lock(&calls.0[0]);
        assert_eq!((places.taken, places.by_subject.len()), (0, 0));
    }

    #[test]
    fn waiting_calls_of_many_callers_are_bounded() {
        let calls = WaitingCalls::new(1);
        let subjects: Vec<_> = (0..1000).map(|number| key(&number.to_string())).collect();
        let places: Vec<_> = subjects
            .iter()
            .filter_map(|subject| calls.enter(0, subject))
            .collect();
        assert_eq!(places.len(), MAX_STARTING_CALLS);
    }
}

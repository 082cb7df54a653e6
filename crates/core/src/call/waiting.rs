//! Bounds the calls that wait for their sources to start, and the part of them that one caller may have.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use broker_memory::Owner;

/// The maximum number of calls that wait for one source.
pub(crate) const MAX_STARTING_CALLS: usize = 256;
/// Maximum number of them for one caller: alone, and if other callers wait too.
const MAX_OWN: usize = MAX_STARTING_CALLS - MAX_STARTING_CALLS / 8;
const MAX_OWN_BESIDE_OTHERS: usize = MAX_STARTING_CALLS / 2;

/// The waiting calls of all sources.
#[derive(Debug)]
pub(crate) struct WaitingCalls(Box<[Mutex<Places>]>);

/// The places of one source that are taken.
#[derive(Debug, Default)]
struct Places {
    taken: usize,
    by_owner: HashMap<Owner, usize>,
}

/// The place of one waiting call; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place<'a> {
    places: &'a Mutex<Places>,
    owner: Owner,
}

impl WaitingCalls {
    pub(crate) fn new(sources: usize) -> Self {
        Self((0..sources).map(|_| Mutex::default()).collect())
    }

    /// Takes a place for a call of this caller; `None` if it has its part of them, or all are taken.
    pub(super) fn enter(&self, source: usize, owner: Owner) -> Option<Place<'_>> {
        let places = &self.0[source];
        let mut known = lock(places);
        let own = known.by_owner.get(&owner).copied().unwrap_or_default();
        let most = match known.taken > own {
            true => MAX_OWN_BESIDE_OTHERS,
            false => MAX_OWN,
        };
        if own >= most || known.taken >= MAX_STARTING_CALLS {
            return None;
        }
        known.taken += 1;
        known.by_owner.insert(owner, own + 1);
        Some(Place { places, owner })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut known = lock(self.places);
        known.taken -= 1;
        match known.by_owner.get_mut(&self.owner) {
            Some(own) if *own > 1 => *own -= 1,
            _ => {
                known.by_owner.remove(&self.owner);
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
    use broker_memory::MemoryBudget;

    #[test]
    fn waiting_calls_of_one_caller_leave_places_for_others() {
        let calls = WaitingCalls::new(2);
        let budget = MemoryBudget::new(1 << 20);
        let (first, second) = (budget.account(), budget.account());
        let (busy, late) = (first.owner(), second.owner());
        let mut places: Vec<_> = (0..MAX_STARTING_CALLS)
            .map_while(|_| calls.enter(0, busy))
            .collect();
        assert_eq!(places.len(), MAX_OWN);
        let others: Vec<_> = (0..MAX_STARTING_CALLS)
            .map_while(|_| calls.enter(0, late))
            .collect();
        assert_eq!(others.len(), MAX_STARTING_CALLS - MAX_OWN);
        assert!(calls.enter(0, busy).is_none());
        assert!(calls.enter(1, busy).is_some(), "each source has its places");
        places.truncate(MAX_OWN_BESIDE_OTHERS);
        assert!(calls.enter(0, busy).is_none(), "others wait");
        places.clear();
        assert!(calls.enter(0, busy).is_some());
        drop(others);
        let places = lock(&calls.0[0]);
        assert_eq!((places.taken, places.by_owner.len()), (0, 0));
    }

    #[test]
    fn waiting_calls_of_many_callers_are_bounded() {
        let calls = WaitingCalls::new(1);
        let budget = MemoryBudget::new(1 << 20);
        let accounts: Vec<_> = (0..1000).map(|_| budget.account()).collect();
        let places: Vec<_> = accounts
            .iter()
            .filter_map(|account| calls.enter(0, account.owner()))
            .collect();
        assert_eq!(places.len(), MAX_STARTING_CALLS);
    }
}

//! The connections of each caller. When few places are left, a caller with few connections gets one of them, and idle
//! streams of the caller with the most are closed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Semaphore;

use super::connection_limits::Phase;
use broker_core::Owner;

/// This part of the places is for callers with fewer than `FEW` connections.
const RESERVED_PART: usize = 8;
/// The number of connections of a caller that excludes it from these places.
const FEW: usize = 8;
/// The part of the places that idle streams of a caller keep when another caller needs a place.
const KEPT_PART: usize = 4;

/// The connections by caller.
#[derive(Debug)]
pub(crate) struct ConnectionShares {
    places: usize,
    free: Arc<Semaphore>,
    callers: Mutex<Callers>,
}

#[derive(Debug, Default)]
struct Callers {
    connections: HashMap<Owner, HashMap<u64, Weak<Phase>>>,
    /// How many belong to callers without a credential.
    anonymous: usize,
}

impl ConnectionShares {
    /// Shares of as many places as `free` has permits.
    pub(crate) fn new(free: Arc<Semaphore>) -> Arc<Self> {
        Arc::new(Self {
            places: free.available_permits(),
            free,
            callers: Mutex::default(),
        })
    }

    /// Counts a connection for the caller of its latest request. Returns whether the caller may have it.
    pub(crate) fn claim(&self, phase: &Arc<Phase>, owner: Owner) -> bool {
        let before = phase.owner();
        if before == Some(owner) {
            return true;
        }
        let mut callers = self.lock();
        if let Some(before) = before {
            callers.remove(before, phase.number());
        }
        callers.add(owner, phase);
        phase.set_owner(Some(owner));
        let is_scarce = self.free.available_permits() < self.places / RESERVED_PART;
        if !is_scarce {
            return true;
        }
        let has_few = callers.has_few(owner, self.places);
        let closed = callers.close_idle_streams(Some(owner), self.places);
        let may_have = has_few || closed > 0;
        if !may_have {
            callers.remove(owner, phase.number());
            phase.set_owner(None);
        }
        may_have
    }

    /// Closes idle streams of the caller with the most. Returns whether there was one.
    pub(crate) fn close_idle_streams(&self) -> bool {
        self.lock().close_idle_streams(None, self.places) > 0
    }

    /// Forgets a connection that has ended.
    pub(crate) fn forget(&self, owner: Owner, number: u64) {
        self.lock().remove(owner, number);
    }

    fn lock(&self) -> MutexGuard<'_, Callers> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Callers {
    fn add(&mut self, owner: Owner, phase: &Arc<Phase>) {
        let own = self.connections.entry(owner).or_default();
        own.insert(phase.number(), Arc::downgrade(phase));
        self.anonymous += usize::from(owner.is_anonymous());
    }

    fn remove(&mut self, owner: Owner, number: u64) {
        let Some(own) = self.connections.get_mut(&owner) else {
            return;
        };
        if own.remove(&number).is_some() {
            self.anonymous -= usize::from(owner.is_anonymous());
        }
        if own.is_empty() {
            self.connections.remove(&owner);
        }
    }

    fn count(&self, owner: Owner) -> usize {
        self.connections.get(&owner).map_or(0, HashMap::len)
    }

    /// Whether a caller may have one of the reserved places. Callers without a credential have half a part together.
    fn has_few(&self, owner: Owner, places: usize) -> bool {
        let are_too_many = owner.is_anonymous() && self.anonymous > places / KEPT_PART / 2;
        self.count(owner) <= FEW && !are_too_many
    }

    /// Closes the streams that were idle longest, until their callers keep their part of the places. These are the
    /// streams of callers without a credential, who share half a part, else the streams of the caller with the most
    /// connections.
    fn close_idle_streams(&self, asking: Option<Owner>, places: usize) -> usize {
        let kept = (places / KEPT_PART).max(1);
        let asks_with_credential = asking.is_none_or(|owner| !owner.is_anonymous());
        if asks_with_credential && self.anonymous > kept / 2 {
            let anonymous = self
                .connections
                .iter()
                .filter(|(owner, _)| owner.is_anonymous());
            let closed = close_oldest(anonymous.map(|(_, own)| own), self.anonymous - kept / 2);
            if closed > 0 {
                return closed;
            }
        }
        let others = self
            .connections
            .iter()
            .filter(|(owner, _)| Some(**owner) != asking);
        match others.map(|(_, own)| own).max_by_key(|own| own.len()) {
            Some(largest) if largest.len() > kept => {
                close_oldest(std::iter::once(largest), largest.len() - kept)
            }
            _ => 0,
        }
    }
}

/// Closes at most `most` of the idle streams among these connections, and returns how many it closed.
fn close_oldest<'a>(
    connections: impl Iterator<Item = &'a HashMap<u64, Weak<Phase>>>,
    most: usize,
) -> usize {
    let mut idle: Vec<_> = connections
        .flat_map(HashMap::values)
        .filter_map(Weak::upgrade)
        .filter_map(|phase| Some((phase.idle_stream_since()?, phase)))
        .collect();
    idle.sort_by_key(|(since, phase)| (*since, phase.number()));
    let closed = idle
        .iter()
        .take(most)
        .filter(|(_, phase)| phase.close_stream());
    closed.count()
}

//! The requests that wait for a key set: few, and few of one address, so that an issuer that does not answer holds
//! neither connections nor memory of others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use broker_model::address::caller_network;

/// The maximum number of requests that wait for one key set.
const MAX_WAITS: usize = 32;
/// Maximum number of them from one address, or one network of IPv6. On loopback, where every connection is another
/// caller, only the maximum of all counts.
const MAX_ADDRESS_WAITS: usize = 4;

/// The waiting requests of one key set.
#[derive(Debug, Default)]
pub(super) struct KeyWaits(Mutex<Waits>);

#[derive(Debug, Default)]
struct Waits {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// A waiting request; it waits no longer when this is dropped.
#[derive(Debug)]
pub(super) struct KeyWait<'a> {
    waits: &'a KeyWaits,
    address: IpAddr,
}

impl KeyWaits {
    /// Counts a request from this address; `None` if too many wait.
    pub(super) fn enter(&self, address: IpAddr) -> Option<KeyWait<'_>> {
        let is_loopback = address.to_canonical().is_loopback();
        let address = caller_network(address);
        let mut waits = self.lock();
        let own = waits.by_address.get(&address).copied().unwrap_or_default();
        if waits.all >= MAX_WAITS || (own >= MAX_ADDRESS_WAITS && !is_loopback) {
            return None;
        }
        waits.all += 1;
        waits.by_address.insert(address, own + 1);
        Some(KeyWait {
            waits: self,
            address,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Waits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for KeyWait<'_> {
    fn drop(&mut self) {
        let mut waits = self.waits.lock();
        waits.all -= 1;
        match waits.by_address.get_mut(&self.address) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(waits.by_address.remove(&self.address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn few_requests_of_one_address_wait_for_a_key_set() {
        let waits = KeyWaits::default();
        let enter = |text: &str| waits.enter(address(text));
        let mut held: Vec<_> = (0..MAX_ADDRESS_WAITS)
            .map(|_| enter("192.0.2.1").unwrap())
            .collect();
        assert!(enter("192.0.2.1").is_none() && enter("::ffff:192.0.2.1").is_none());
        held.extend((0..MAX_ADDRESS_WAITS).map(|_| enter("2001:db8::1").unwrap()));
        assert!(enter("2001:db8::2").is_none(), "one network");
        held.pop();
        assert!(enter("2001:db8::2").is_some());
        let more: Vec<_> = (0..).map_while(|_| enter("127.0.0.1")).collect();
        assert_eq!(held.len() + more.len(), MAX_WAITS);
        assert!(enter("192.0.2.9").is_none());
        drop((held, more));
        let left = waits.lock();
        assert_eq!((left.by_address.len(), left.all), (0, 0));
    }
}

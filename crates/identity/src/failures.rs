//! Counts invalid credentials by address. A limit only changes the answer to invalid ones: a valid credential is
//! accepted from every address, since several callers may share one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use broker_model::address::caller_network;
use tokio::time::Instant;

/// Invalid credentials of one address within [`WINDOW`] that are answered as such.
const MAX_WRONG: u32 = 100;
/// The period of counted invalid credentials.
const WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of addresses that are known.
const MAX_ADDRESSES: usize = 4096;

/// The addresses that sent invalid credentials within the last minute.
#[derive(Debug, Default)]
pub struct FailureCounts(Mutex<HashMap<IpAddr, Failures>>);

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    since: Instant,
}

impl FailureCounts {
    /// Counts an invalid credential from this address. Returns the time until the next one is counted again if there
    /// were too many of them.
    pub fn record(&self, address: IpAddr) -> Option<Duration> {
        let now = Instant::now();
        // Every change leaves a valid map.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let address = caller_network(address);
        if known.len() >= MAX_ADDRESSES && !known.contains_key(&address) {
            make_room(&mut known, now);
        }
        let begun = Failures {
            count: 0,
            since: now,
        };
        let failures = known.entry(address).or_insert(begun);
        if now.duration_since(failures.since) >= WINDOW {
            *failures = begun;
        }
        failures.count = failures.count.saturating_add(1);
        let left = WINDOW.saturating_sub(now.duration_since(failures.since));
        (failures.count > MAX_WRONG).then_some(left)
    }
}

/// Forgets the addresses whose time is over; without such addresses, any address.
fn make_room(known: &mut HashMap<IpAddr, Failures>, now: Instant) {
    known.retain(|_, failures| now.duration_since(failures.since) < WINDOW);
    if known.len() >= MAX_ADDRESSES
        && let Some(any) = known.keys().next().copied()
    {
        known.remove(&any);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn address_with_too_many_wrong_credentials_is_limited_for_a_minute() {
        let counts = FailureCounts::default();
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        for _ in 0..MAX_WRONG {
            assert_eq!(counts.record(one), None);
        }
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(counts.record(one), Some(Duration::from_secs(40)));
        assert_eq!(counts.record(other), None);
        tokio::time::advance(Duration::from_secs(40)).await;
        assert_eq!(counts.record(one), None);
    }

    #[tokio::test(start_paused = true)]
    async fn number_of_known_addresses_is_limited() {
        let counts = FailureCounts::default();
        for n in 0..2 * MAX_ADDRESSES as u32 {
            counts.record(IpAddr::V4(n.into()));
        }
        assert!(counts.0.lock().unwrap().len() <= MAX_ADDRESSES);
    }
}

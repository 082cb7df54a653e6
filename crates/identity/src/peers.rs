//! Limits verifications by address, so that wrong signatures from one do not take the pool from the others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use broker_model::address::caller_network;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::error::AuthError;

/// Verifications at a time for an address whose last one failed.
const MAX_FAILING: usize = 2;
/// Verifications at a time for other addresses.
const MAX_OTHERS: usize = 16;
/// Maximum time that a verification waits for others of its address.
const WAIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of addresses that are known.
const MAX_PEERS: usize = 4096;

/// The addresses of callers whose tokens are being verified, or failed.
#[derive(Debug, Default)]
pub(crate) struct Peers(Mutex<HashMap<IpAddr, Peer>>);

#[derive(Debug)]
struct Peer {
    is_failing: bool,
    limit: Arc<Semaphore>,
}

impl Peers {
    /// Waits until a token from this address may be verified. The permit is held meanwhile.
    pub(crate) async fn admit(&self, peer: IpAddr) -> Result<OwnedSemaphorePermit, AuthError> {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            let (limit, is_failing) = self.limit(peer);
            match timeout_at(deadline, limit.acquire_owned()).await {
                Ok(Ok(permit)) => return Ok(permit),
                // Closed: another limit applies now.
                Ok(Err(_)) => {}
                Err(_) if is_failing => return Err(AuthError::TooManyFailures),
                Err(_) => return Err(AuthError::Overloaded),
            }
        }
    }

    /// Records the outcome of a verification.
    pub(crate) fn record(&self, peer: IpAddr, is_valid: bool) {
        let mut peers = self.peers();
        let known = peers.entry(caller_network(peer));
        let known = known.or_insert_with(|| Peer::new(false));
        if known.is_failing == is_valid {
            let before = std::mem::replace(known, Peer::new(!is_valid));
            before.limit.close();
        }
    }

    fn limit(&self, peer: IpAddr) -> (Arc<Semaphore>, bool) {
        let peer = caller_network(peer);
        let mut peers = self.peers();
        if peers.len() >= MAX_PEERS && !peers.contains_key(&peer) {
            make_room(&mut peers);
        }
        let known = peers.entry(peer).or_insert_with(|| Peer::new(false));
        (known.limit.clone(), known.is_failing)
    }

    fn peers(&self) -> MutexGuard<'_, HashMap<IpAddr, Peer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peer {
    fn new(is_failing: bool) -> Self {
        let permits = match is_failing {
            true => MAX_FAILING,
            false => MAX_OTHERS,
        };
        Self {
            is_failing,
            limit: Arc::new(Semaphore::new(permits)),
        }
    }
}

/// Forgets the addresses that neither fail nor wait; without such addresses, any address.
fn make_room(peers: &mut HashMap<IpAddr, Peer>) {
    peers.retain(|_, peer| peer.is_failing || Arc::strong_count(&peer.limit) > 1);
    if peers.len() >= MAX_PEERS
        && let Some(any) = peers.keys().next().copied()
    {
        peers.remove(&any);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn address_that_fails_has_two_verifications_at_a_time() {
        let peers = Peers::default();
        let (failing, other) = (address("192.0.2.1"), address("192.0.2.2"));
        peers.record(failing, false);
        let held = (
            peers.admit(failing).await.unwrap(),
            peers.admit(failing).await.unwrap(),
        );
        let begin = Instant::now();
        let refused = peers.admit(failing).await;
        assert_eq!(refused.unwrap_err(), AuthError::TooManyFailures);
        assert_eq!(begin.elapsed(), WAIT_TIMEOUT);
        assert!(peers.admit(other).await.is_ok());
        drop(held);
        assert!(peers.admit(failing).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn address_that_waits_gets_the_limit_of_the_last_outcome() {
        let peers = Arc::new(Peers::default());
        let peer = address("::ffff:192.0.2.1");
        let mut held = Vec::new();
        for _ in 0..MAX_OTHERS {
            held.push(peers.admit(peer).await.unwrap());
        }
        let waiting = tokio::spawn({
            let peers = peers.clone();
            async move { peers.admit(peer).await }
        });
        tokio::task::yield_now().await;
        peers.record(address("192.0.2.1"), false);
        assert!(waiting.await.unwrap().is_ok());
        peers.record(peer, true);
        assert!(peers.admit(peer).await.is_ok());
        drop(held);
    }

    #[test]
    fn addresses_are_counted_by_network_and_forgotten() {
        let peers = Peers::default();
        for n in 0..2 * MAX_PEERS as u32 {
            peers.record(IpAddr::V4(n.into()), false);
            peers.limit(IpAddr::V4((n + (1 << 24)).into()));
        }
        assert!(peers.peers().len() <= 2 * MAX_PEERS);
    }
}

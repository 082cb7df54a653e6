//! The peers of connections: a peer is one address, or one network of IPv6, with its connections that have not sent a complete
//! head. On loopback every connection is a separate peer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use broker_model::address::caller_network;

use broker_core::{Account, MemoryBudget};

/// The maximum number of connections of one address that have not sent a complete head. Does not apply
/// to loopback addresses, since all callers of a proxy come from there.
pub(crate) const MAX_HALF_OPEN: usize = 64;
/// The minimum number of addresses for a removal of the addresses without a connection.
const MIN_SWEEP: usize = 1024;

/// One address, or one connection on loopback.
#[derive(Debug)]
pub(crate) struct Peer {
    half_open: AtomicUsize,
    account: Account,
    anonymous_account: Account,
}

impl Peer {
    /// A peer with this account. Where other callers have credentials, callers without one share a part of the memory.
    fn new(memory: &MemoryBudget, account: Account, has_credentials: bool) -> Arc<Self> {
        Arc::new(Self {
            half_open: AtomicUsize::new(0),
            anonymous_account: match has_credentials {
                true => memory.anonymous_account(),
                false => account.clone(),
            },
            account,
        })
    }

    /// The memory account of the peer with the broker's secret.
    pub(crate) const fn account(&self) -> &Account {
        &self.account
    }

    /// The memory account of the peer without a credential.
    pub(crate) const fn anonymous_account(&self) -> &Account {
        &self.anonymous_account
    }
}

/// A connection that has not sent a complete head. Dropped when it has, or when it ends.
#[derive(Debug)]
pub(crate) struct HalfOpen(Arc<Peer>);

/// The addresses that have connections. Its owner accepts the connections.
#[derive(Debug)]
pub(crate) struct Peers {
    known: HashMap<IpAddr, Weak<Peer>>,
    sweep_at: usize,
    memory: MemoryBudget,
    has_credentials: bool,
}

impl Peers {
    /// Peers that share `memory`. `has_credentials` says whether callers may have credentials.
    pub(crate) fn new(memory: MemoryBudget, has_credentials: bool) -> Self {
        Self {
            memory,
            has_credentials,
            known: HashMap::new(),
            sweep_at: MIN_SWEEP,
        }
    }

    /// Returns the peer of a new connection. The connection holds it while it is open. `None` if too many connections
    /// of the address have not sent a head.
    pub(crate) fn connect(&mut self, address: IpAddr) -> Option<(Arc<Peer>, HalfOpen)> {
        let peer = if address.to_canonical().is_loopback() {
            Peer::new(
                &self.memory,
                self.memory.local_account(),
                self.has_credentials,
            )
        } else {
            self.shared(caller_network(address))
        };
        if peer.half_open.fetch_add(1, Ordering::Relaxed) >= MAX_HALF_OPEN {
            peer.half_open.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some((Arc::clone(&peer), HalfOpen(peer)))
    }

    fn shared(&mut self, address: IpAddr) -> Arc<Peer> {
        if let Some(peer) = self.known.get(&address).and_then(Weak::upgrade) {
            return peer;
        }
        if self.known.len() >= self.sweep_at {
            self.known.retain(|_, peer| peer.strong_count() > 0);
            self.sweep_at = MIN_SWEEP.max(2 * self.known.len());
        }
        let peer = Peer::new(&self.memory, self.memory.account(), self.has_credentials);
        self.known.insert(address, Arc::downgrade(&peer));
        peer
    }
}

impl Drop for HalfOpen {
    fn drop(&mut self) {
        self.0.half_open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers() -> Peers {
        Peers::new(MemoryBudget::new(1 << 20), true)
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn peer_with_64_half_open_connections_gets_no_more() {
        let mut peers = peers();
        let one = address("192.0.2.1");
        let mut open: Vec<_> = (0..MAX_HALF_OPEN)
            .map(|_| peers.connect(one).unwrap())
            .collect();
        assert!(peers.connect(one).is_none());
        assert!(peers.connect(address("::ffff:192.0.2.1")).is_none());
        assert!(peers.connect(address("192.0.2.2")).is_some());
        // A complete head, or the end of the connection, makes room.
        drop(open.remove(0).1);
        assert!(peers.connect(one).is_some());
        drop(open);
        assert!(peers.connect(one).is_some());
    }

    #[test]
    fn peers_on_loopback_share_no_limit() {
        let mut peers = peers();
        for text in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "127.9.9.9"] {
            let open: Vec<_> = (0..=MAX_HALF_OPEN)
                .map(|_| peers.connect(address(text)).unwrap())
                .collect();
            assert!(!Arc::ptr_eq(&open[0].0, &open[1].0), "{text}");
        }
        assert!(peers.known.is_empty());
    }

    #[test]
    fn peers_without_a_connection_are_forgotten() {
        let mut peers = peers();
        let kept = peers.connect(address("203.0.113.1")).unwrap();
        for n in 0..10 * MIN_SWEEP as u32 {
            let one = IpAddr::V4(std::net::Ipv4Addr::from_bits(0x0a00_0000 + n));
            drop(peers.connect(one).unwrap());
            assert!(peers.known.len() <= 2 * MIN_SWEEP);
        }
        let again = peers.connect(address("203.0.113.1")).unwrap();
        assert!(Arc::ptr_eq(&kept.0, &again.0));
    }

    #[test]
    fn peer_connections_share_a_quarter_of_the_memory_except_loopback() {
        let mut peers = peers();
        let quarter = 256 << 10;
        for (text, shared) in [("192.0.2.1", true), ("127.0.0.1", false)] {
            let [one, other] = [(); 2].map(|()| peers.connect(address(text)).unwrap().0);
            let _held = one
                .account()
                .charge(quarter, broker_core::Size::Large)
                .unwrap();
            let more = other.account().charge(1, broker_core::Size::Small);
            assert_eq!(more.is_err(), shared, "{text}");
        }
    }
}

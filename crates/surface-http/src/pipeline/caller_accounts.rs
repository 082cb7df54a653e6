//! The memory accounts of callers, one for each identity: its requests use one share of the memory, of the queues of
//! sources and of the pool, over however many connections they come.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use broker_model::address::caller_network;

use crate::listener::Caller;
use broker_core::{Account, Identity, MemoryBudget, Subject};

/// The minimum number of accounts for a removal of the accounts without a request.
const MIN_SWEEP: usize = 1024;

/// The accounts of identities, apart from the accounts of connections and of peers.
#[derive(Debug)]
pub(crate) struct CallerAccounts {
    memory: MemoryBudget,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    accounts: HashMap<CallerKey, Account>,
    sweep_at: usize,
}

/// What identifies a caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CallerKey {
    /// The subject of a key or of a token.
    Subject(Subject),
    /// The address of a caller with the broker's secret, behind a trusted proxy.
    Secret(IpAddr),
    /// The address of a caller without a credential, behind a trusted proxy.
    Anonymous(IpAddr),
}

impl CallerAccounts {
    pub(crate) fn new(memory: MemoryBudget) -> Self {
        Self {
            memory,
            known: Mutex::new(Known {
                accounts: HashMap::new(),
                sweep_at: MIN_SWEEP,
            }),
        }
    }

    /// Returns the account of a caller at `address`; a trusted proxy may have named the address.
    pub(crate) fn find_or_add(
        &self,
        identity: &Identity,
        caller: &Caller,
        address: IpAddr,
    ) -> Account {
        let is_own_address = address == caller.address.to_canonical();
        match identity.subject() {
            subject @ (Subject::Key { .. } | Subject::Token { .. }) => {
                self.shared(CallerKey::Subject(subject.clone()))
            }
            Subject::Secret | Subject::Local if is_own_address => caller.peer.account().clone(),
            Subject::Anonymous if is_own_address => caller.peer.anonymous_account().clone(),
            Subject::Secret | Subject::Local => {
                self.shared(CallerKey::Secret(caller_network(address)))
            }
            Subject::Anonymous => self.shared(CallerKey::Anonymous(caller_network(address))),
        }
    }

    fn shared(&self, key: CallerKey) -> Account {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = known.accounts.get(&key) {
            return account.clone();
        }
        if known.accounts.len() >= known.sweep_at {
            known.accounts.retain(|_, account| !account.is_unused());
            known.sweep_at = MIN_SWEEP.max(2 * known.accounts.len());
        }
        let account = match key {
            CallerKey::Subject(_) | CallerKey::Secret(_) => self.memory.account(),
            CallerKey::Anonymous(_) => self.memory.anonymous_account(),
        };
        known.accounts.insert(key, account.clone());
        account
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener::Peers;
    use crate::listener_role::ListenerRole;

    fn caller(peers: &mut Peers, address: &str) -> Caller {
        let address = address.parse().unwrap();
        let (peer, _) = peers.connect(address).unwrap();
        Caller::new(peer, address, ListenerRole::Broker)
    }

    #[test]
    fn account_follows_the_identity_of_the_caller() {
        let memory = MemoryBudget::new(1 << 20);
        let mut peers = Peers::new(memory.clone(), true);
        let accounts = CallerAccounts::new(memory);
        let (one, other) = (
            caller(&mut peers, "127.0.0.1"),
            caller(&mut peers, "127.0.0.1"),
        );
        let of = |identity: &Identity, caller: &Caller, address: &str| {
            let address = address.parse().unwrap();
            accounts.find_or_add(identity, caller, address).owner()
        };
        let here = "127.0.0.1";
        let key = Identity::key("ci", []);
        assert_eq!(of(&key, &one, here), of(&key, &other, "192.0.2.1"));
        assert_ne!(
            of(&key, &one, here),
            of(&Identity::key("cd", []), &one, here)
        );
        for identity in [Identity::anonymous(), Identity::secret()] {
            let of = |caller, address| of(&identity, caller, address);
            assert_eq!(of(&one, here), of(&one, here));
            assert_ne!(
                of(&one, here),
                of(&other, here),
                "of connections on loopback"
            );
            assert_eq!(
                of(&one, "192.0.2.1"),
                of(&other, "192.0.2.1"),
                "behind a proxy"
            );
            assert_eq!(
                of(&one, "2001:db8::1"),
                of(&one, "2001:db8::2"),
                "one customer"
            );
            assert_ne!(of(&one, "2001:db8::1"), of(&one, "2001:db8:0:1::1"));
        }
        let (remote, again) = (
            caller(&mut peers, "192.0.2.9"),
            caller(&mut peers, "192.0.2.9"),
        );
        let anonymous = Identity::anonymous();
        assert_eq!(
            of(&anonymous, &remote, "192.0.2.9"),
            of(&anonymous, &again, "192.0.2.9")
        );
    }

    #[test]
    fn accounts_without_requests_are_removed() {
        let accounts = CallerAccounts::new(MemoryBudget::new(1 << 20));
        let key =
            |n: usize| CallerKey::Subject(Identity::key(&n.to_string(), []).subject().clone());
        let held = accounts.shared(key(0));
        for n in 1..=2 * MIN_SWEEP {
            drop(accounts.shared(key(n)));
            assert!(accounts.known.lock().unwrap().accounts.len() <= MIN_SWEEP + 1);
        }
        assert_eq!(accounts.shared(key(0)).owner(), held.owner());
    }
}

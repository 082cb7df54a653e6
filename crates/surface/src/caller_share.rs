//! The share of a table that a caller's sessions and streams are counted in.

use std::net::IpAddr;

use broker_core::{Identity, Subject};
use broker_model::address::caller_network;

/// The share of a table that a session or a stream belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CallerShare {
    /// Callers with a key or a token of this subject.
    Subject(Subject),
    /// Callers with the broker's secret, or without a credential, at one address or network of IPv6.
    Address(IpAddr),
    /// The same, at all loopback addresses, where every caller of a proxy that is not trusted comes from.
    Loopback,
}

impl CallerShare {
    /// Returns the share of this caller at `address`; a trusted proxy may have named the address.
    pub fn new(identity: &Identity, address: IpAddr) -> Self {
        match identity.subject() {
            subject @ (Subject::Key { .. } | Subject::Token { .. }) => {
                Self::Subject(subject.clone())
            }
            Subject::Secret | Subject::Local | Subject::Anonymous => {
                match address.to_canonical().is_loopback() {
                    true => Self::Loopback,
                    false => Self::Address(caller_network(address)),
                }
            }
        }
    }
}

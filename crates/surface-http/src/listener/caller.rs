//! The caller of a request, as its connection shows it.

use std::net::IpAddr;
use std::sync::Arc;

use broker_surface::StreamState;
use tokio_util::task::TaskTracker;

use super::connection_limits::Phase;
use super::peers::Peer;
use crate::listener_role::ListenerRole;

/// The caller of a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The connection on loopback, otherwise the peer's address.
    pub(crate) peer: Arc<Peer>,
    /// The phase of the connection.
    pub(crate) phase: Option<Arc<Phase>>,
    /// The address of the peer.
    pub(crate) address: IpAddr,
    /// The port of the peer; `None` for a stream in the process.
    pub(crate) port: Option<u16>,
    /// The listener of the connection.
    pub(crate) role: ListenerRole,
    /// The task that serves the connection once it is upgraded to another protocol.
    pub(crate) upgrades: TaskTracker,
}

impl Caller {
    /// A caller on a connection that is not over the limit.
    pub(crate) fn new(peer: Arc<Peer>, address: IpAddr, role: ListenerRole) -> Self {
        Self {
            peer,
            phase: None,
            address,
            port: None,
            role,
            upgrades: TaskTracker::new(),
        }
    }

    /// Whether the connection is over a limit, so that it is closed behind the reply.
    #[inline]
    pub(crate) fn is_refused(&self) -> bool {
        self.phase.as_ref().is_some_and(|phase| phase.is_refused())
    }

    /// The state of the stream that the connection may become.
    pub(crate) fn stream(&self) -> Option<Arc<StreamState>> {
        Some(Arc::clone(self.phase.as_ref()?.stream()))
    }
}

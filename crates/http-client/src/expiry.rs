//! When the certificates of an origin expire.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::certificate::{Certificate, not_after};

/// The value of a time that is not known.
const UNKNOWN: u64 = u64::MAX;

/// When certificates of an origin expire: those of the file, the one that the server presented last, and those of the
/// client. Cheap to clone; all clones have the same times.
#[derive(Clone, Debug)]
pub struct CertificateExpiry(Arc<Times>);

#[derive(Debug)]
struct Times {
    file: u64,
    peer: AtomicU64,
    client: AtomicU64,
}

impl CertificateExpiry {
    pub(crate) fn new(file: &[Certificate]) -> Self {
        let times = file.iter().filter_map(|certificate| not_after(certificate));
        Self(Arc::new(Times {
            file: times.min().unwrap_or(UNKNOWN),
            peer: AtomicU64::new(UNKNOWN),
            client: AtomicU64::new(UNKNOWN),
        }))
    }

    /// Notes the certificate of a server that was verified.
    pub(crate) fn note_peer(&self, der: &[u8]) {
        if let Some(time) = not_after(der) {
            self.0.peer.store(time, Ordering::Relaxed);
        }
    }

    /// Notes the chain of certificates that the client presents from now on.
    pub(crate) fn note_client(&self, chain: &[Certificate]) {
        let times = chain
            .iter()
            .filter_map(|certificate| not_after(certificate));
        let soonest = times.min().unwrap_or(UNKNOWN);
        self.0.client.store(soonest, Ordering::Relaxed);
    }

    /// Returns the second in Unix time after which the first of the certificates is not valid; `None` while none is
    /// known.
    pub fn soonest(&self) -> Option<u64> {
        let noted = [&self.0.peer, &self.0.client].map(|time| time.load(Ordering::Relaxed));
        let soonest = noted.into_iter().fold(self.0.file, u64::min);
        (soonest != UNKNOWN).then_some(soonest)
    }
}

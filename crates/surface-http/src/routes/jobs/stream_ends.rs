//! The end of a stream of a job besides the end of the job.

use broker_core::{Identity, Services};

use super::open_streams::OpenStream;

/// What ends a stream besides its job. The stream is counted for its caller until this is dropped.
pub(super) struct StreamEnds {
    services: Services,
    _open: OpenStream,
}

impl StreamEnds {
    pub(super) const fn new(services: Services, open: OpenStream) -> Self {
        Self {
            services,
            _open: open,
        }
    }

    /// Waits for the end of the caller's right, or for the drain.
    pub(super) async fn wait(&self, identity: &Identity) {
        let draining = self.services.drain().draining();
        tokio::select! {
            () = self.services.right_ended(identity) => {}
            () = draining.cancelled() => {}
        }
    }
}

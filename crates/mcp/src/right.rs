//! The right of a caller to make a call. It may end before the call is sent.

use std::fmt;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The right to make one call. A call that waits to be sent is given up when the right ends; one that was sent is not.
#[derive(Clone, Copy)]
pub struct CallRight<'a> {
    /// Cancelled when the caller loses the right to make any call.
    pub revoked: Option<&'a CancellationToken>,
    /// Changes when `may_send` may give another answer.
    pub changes: &'a watch::Receiver<u64>,
    /// Whether the call may be sent now. Asked often, so it must answer at once.
    pub may_send: &'a (dyn Fn() -> bool + Send + Sync),
}

impl CallRight<'_> {
    /// Whether the call must not be sent.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.revoked.is_some_and(CancellationToken::is_cancelled) || !(self.may_send)()
    }

    /// Returns when the call must not be sent any longer.
    #[inline]
    pub(crate) async fn ended(&self) {
        let mut changes = self.changes.clone();
        loop {
            // A change after this is noticed below.
            changes.mark_unchanged();
            if self.has_ended() {
                return;
            }
            let changed = async {
                if changes.changed().await.is_err() {
                    // The state does not change any more.
                    std::future::pending().await
                }
            };
            match self.revoked {
                None => changed.await,
                Some(revoked) => tokio::select! {
                    () = revoked.cancelled() => {}
                    () = changed => {}
                },
            }
        }
    }
}

impl fmt::Debug for CallRight<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRight")
            .field("has_ended", &self.has_ended())
            .finish()
    }
}

//! Long work of requests on the pools, off the runtime's threads.

use broker_memory::{Account, Owner};

use super::arguments::overloaded;
use crate::Core;
use crate::errors::error::CoreError;

impl Core {
    /// Runs a long job of a request whose tool is not known yet, off the runtime's own threads. Callers take turns, by
    /// account.
    pub async fn read_long<T: Send + 'static>(
        &self,
        account: &Account,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Box<CoreError>> {
        let inner = self.inner();
        inner.read_long(account, read).await
    }

    /// Verifies a signature on threads for signatures only, so that it never waits for arguments of other callers.
    pub async fn verify_long<T: Send + 'static>(
        &self,
        verify: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Box<CoreError>> {
        let inner = self.inner();
        let verified = inner.verifying.run(Owner::BROKER, |_| verify());
        verified.await.map_err(|busy| Box::new(overloaded(busy)))
    }

    /// Runs a long job on a result, off the runtime's own threads; waits for a thread without a limit.
    pub async fn shape_long<T: Send + 'static>(
        &self,
        account: &Account,
        shape: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let inner = self.inner();
        inner.shaping.run_bounded(account.owner(), shape).await
    }
}

//! What layers take right before a call is sent: a line in the audit log, a place in a limit, an approval.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use super::Call;
use super::deadline::Deadline;
use super::record::CallRecord;
use crate::errors::error::CoreError;
use crate::errors::failure;
use broker_mcp::CallFailure;

/// A future of [`SendGate::reserve`].
pub type Reserving<'a> = Pin<Box<dyn Future<Output = Result<(), Box<CoreError>>> + Send + 'a>>;

/// Takes what a layer needs before one call is sent. The layer adds it to the context of the call.
pub trait SendGate: fmt::Debug + Send + Sync {
    /// Takes it. Asked once, after all checks of the call; core checks the rights of the caller again after it. The call
    /// is not sent if this fails, nor if it takes longer than the time of the call. `args` is the JSON text of the arguments
    /// that are sent.
    ///
    /// # Errors
    ///
    /// The error of the call.
    fn reserve<'a>(&'a self, call: &'a CallRecord, args: &'a [u8]) -> Reserving<'a>;
}

/// The gates of a call: a list, since nearly every call has none or one, and the future of every call holds it. Cheap to
/// clone.
#[derive(Clone, Debug, Default)]
pub struct SendGates(Option<Arc<InnermostGate>>);

#[derive(Debug)]
struct InnermostGate {
    gate: Arc<dyn SendGate>,
    outer: SendGates,
}

impl SendGates {
    /// Returns the gates of a call without a layer.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Adds the gate of a layer. The layer is inside of those that have added one.
    pub fn push(&mut self, gate: Arc<dyn SendGate>) {
        let outer = std::mem::take(self);
        self.0 = Some(Arc::new(InnermostGate { gate, outer }));
    }

    /// Whether there is none.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the gates, the one of the innermost layer first.
    fn iter(&self) -> impl Iterator<Item = &Arc<dyn SendGate>> {
        let nodes = std::iter::successors(self.0.as_deref(), |node| node.outer.0.as_deref());
        nodes.map(|node| &node.gate)
    }
}

impl Call<'_> {
    /// Passes the gates of the layers, the innermost layer first: the outermost one sees what the others refused.
    pub(super) async fn reserve(
        &self,
        args: &[u8],
        deadline: &Deadline,
    ) -> Result<(), Box<CoreError>> {
        let nothing = CallRecord::default();
        let record = self.context.record.as_deref().unwrap_or(&nothing);
        for gate in self.context.gates.iter() {
            let reserved = tokio::time::timeout(deadline.left(), gate.reserve(record, args)).await;
            reserved.unwrap_or_else(|_elapsed| {
                let timeout = CallFailure::Timeout {
                    after: deadline.passed(),
                    extended: false,
                    maybe_executed: false,
                };
                let (path, source) = (self.target.path, self.target.source);
                Err(failure::from_call(timeout, path, source))
            })?;
        }
        Ok(())
    }
}

//! What layers take right before a call is sent: a line in the audit log, a place in a limit, an approval.

use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use broker_model::RequestId;

use super::Call;
use super::deadline::Deadline;
use super::record::CallRecord;
use crate::errors::error::CoreError;
use crate::errors::failure;
use crate::identity::Identity;
use broker_mcp::CallFailure;

/// The answer of [`SendGate::reserve`].
pub enum Reserving<'a> {
    /// It is known.
    Done(Result<(), Box<CoreError>>),
    /// The call waits for it.
    Waiting(Pin<Box<dyn Future<Output = Result<(), Box<CoreError>>> + Send + 'a>>),
}

impl fmt::Debug for Reserving<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(outcome) => f.debug_tuple("Done").field(outcome).finish(),
            Self::Waiting(_) => f.write_str("Waiting"),
        }
    }
}

/// A call that passed all checks and was not sent.
#[derive(Clone, Copy, Debug)]
pub struct UnsentCall<'a> {
    /// The caller.
    pub identity: &'a Identity,
    /// The number of the request in the log.
    pub request_id: RequestId,
    /// The path of the item.
    pub path: &'static str,
    /// The record that a layer keeps of the call.
    pub record: Option<&'a CallRecord>,
    /// The JSON text of the arguments that are sent.
    pub args: &'a [u8],
}

/// Takes what a layer needs before one call is sent. The layer adds it to the context of the call.
pub trait SendGate: fmt::Debug + Send + Sync {
    /// Takes it. Asked once, after all checks of the call; core checks the rights of the caller again after it. The call
    /// is not sent if this fails, nor if it takes longer than the time of the call.
    ///
    /// # Errors
    ///
    /// The error of the call.
    fn reserve<'a>(&'a self, call: UnsentCall<'a>) -> Reserving<'a>;
}

impl<G: SendGate> SendGate for Arc<G> {
    fn reserve<'a>(&'a self, call: UnsentCall<'a>) -> Reserving<'a> {
        (**self).reserve(call)
    }
}

/// The gates of a call: a list, since nearly every call has none or one, and the future of every call holds it. Cheap to
/// clone.
#[derive(Clone, Debug, Default)]
pub struct SendGates(Option<Arc<AddedGate<dyn SendGate>>>);

/// A gate in the list of a call, with the gates outside of it: one allocation.
#[derive(Debug)]
pub struct AddedGate<G: ?Sized> {
    outer: SendGates,
    gate: G,
}

impl<G> Deref for AddedGate<G> {
    type Target = G;

    fn deref(&self) -> &G {
        &self.gate
    }
}

impl SendGates {
    /// Returns the gates of a call without a layer.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Adds the gate of a layer, and returns it. The layer is inside of those that have added one.
    pub fn push<G: SendGate + 'static>(&mut self, gate: G) -> Arc<AddedGate<G>> {
        let outer = std::mem::take(self);
        let added = Arc::new(AddedGate { outer, gate });
        self.0 = Some(added.clone());
        added
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether no call holds these gates, so that a later call may have them.
    pub fn are_free(&mut self) -> bool {
        self.0.as_mut().is_some_and(|it| Arc::get_mut(it).is_some())
    }

    /// Returns the gates, the one of the innermost layer first.
    fn iter(&self) -> impl Iterator<Item = &dyn SendGate> {
        let added = std::iter::successors(self.0.as_deref(), |added| added.outer.0.as_deref());
        added.map(|added| &added.gate)
    }
}

impl Call<'_> {
    /// Passes the gates of the layers, the innermost layer first: the outermost one sees what the others refused.
    pub(super) fn reserve<'a>(&'a self, args: &'a [u8], deadline: &'a Deadline) -> Reserving<'a> {
        let mut gates = self.context.gates.iter();
        let call = UnsentCall {
            identity: self.identity,
            request_id: self.context.request_id,
            path: self.target.path,
            record: self.context.record.as_deref(),
            args,
        };
        while let Some(gate) = gates.next() {
            match gate.reserve(call) {
                Reserving::Done(Ok(())) => {}
                Reserving::Done(Err(error)) => return Reserving::Done(Err(error)),
                // Boxed, so that calls without gates do not carry its size.
                Reserving::Waiting(first) => {
                    return Reserving::Waiting(Box::pin(async move {
                        self.within(first, deadline).await?;
                        for gate in gates {
                            match gate.reserve(call) {
                                Reserving::Done(outcome) => outcome?,
                                Reserving::Waiting(next) => self.within(next, deadline).await?,
                            }
                        }
                        Ok(())
                    }));
                }
            }
        }
        Reserving::Done(Ok(()))
    }

    /// Waits for a gate within the time of the call.
    async fn within(
        &self,
        reserving: Pin<Box<dyn Future<Output = Result<(), Box<CoreError>>> + Send + '_>>,
        deadline: &Deadline,
    ) -> Result<(), Box<CoreError>> {
        let reserved = tokio::time::timeout(deadline.left(), reserving).await;
        reserved.unwrap_or_else(|_elapsed| {
            let timeout = CallFailure::Timeout {
                after: deadline.passed(),
                extended: false,
                maybe_executed: false,
            };
            let (path, source) = (self.target.path, self.target.source);
            Err(failure::from_call(timeout, path, source))
        })
    }
}

//! One call, as a list of steps. Each step has its file: `drain`, `resolve`, `operation`, `deadline`, `gate`,
//! `validate`, `send_gate`, `dispatch`, `shape`, `record`; the steps use the other files. The broker sends the call only after all
//! checks have passed, and a result is not parsed beyond its form. A call takes what is in force when it begins, and
//! again right before it is sent, in `recheck`.

pub(crate) mod arguments;
mod baggage;
mod coerce;
pub(crate) mod context;
pub(crate) mod cut;
mod deadline;
mod dispatch;
mod drain;
mod follow;
mod gate;
mod hidden_chars;
mod operation;
mod recheck;
pub(crate) mod record;
mod render_mode;
mod resolve;
mod reviewed_ui;
mod revoked;
pub(crate) mod send_gate;
mod shape;
mod validate;
pub(crate) mod validator;
pub(crate) mod waiting;
pub(crate) mod work;

use std::pin::pin;
use std::sync::Arc;

use context::{CallContext, Operation, Outcome};
use deadline::Deadline;
use operation::UncheckedOperation;
use resolve::Target;
use revoked::while_allowed;
use send_gate::Reserving;

use crate::CallPath;
use crate::errors::error::CoreError;
use crate::identity::Identity;
use crate::snapshot::Snapshot;

/// A call whose item is known.
struct Call<'a> {
    core: &'a Arc<CallPath>,
    identity: &'a Identity,
    context: &'a CallContext,
    target: &'a Target,
}

impl CallPath {
    /// Makes a call. Dropping the future cancels it.
    #[inline]
    pub(super) async fn call(
        self: &Arc<Self>,
        identity: &Identity,
        context: &CallContext,
        path: &str,
        operation: Operation,
    ) -> Result<Outcome, Box<CoreError>> {
        let _in_flight = drain::enter(&self.fleet.shared.drain)?;
        let begun = Snapshot::take(self.clone(), identity);
        let target = resolve::target(&begun, path, context.record.as_deref())?;
        let call = Call {
            core: self,
            identity,
            context,
            target: &target,
        };
        // A source that is not ready or a withdrawn item is reported first.
        let unchecked = call.unchecked(operation);
        let args = unchecked
            .as_ref()
            .map_or(&b"{}"[..], UncheckedOperation::text);
        let mut deadline = Deadline::new(&begun.terms, &target, context.received, context.deadline);
        let slot = call.pass_gate(&begun.view, args, &mut deadline).await?;
        let checked = call.check(&begun, unchecked?, &deadline).await?;
        drop(begun);
        if let Some(record) = &context.record {
            record.check(checked.text());
        }
        if !context.gates.is_empty() {
            match call.reserve(checked.text(), &deadline) {
                Reserving::Done(outcome) => outcome?,
                Reserving::Waiting(reserving) => reserving.await?,
            }
        }
        let answer = {
            // Pinned here, since an `async fn` would hold it twice; in a block, so that its room is used again.
            let sending = pin!(call.dispatch(slot, &checked, &deadline));
            while_allowed(identity, sending).await?
        };
        let warning = checked.into_warning();
        let outcome = call.shape(answer, warning, &deadline.settings).await?;
        // Shaping a long result waits for a thread.
        match identity.is_revoked() {
            true => Err(revoked::error(true)),
            false => Ok(outcome),
        }
    }
}

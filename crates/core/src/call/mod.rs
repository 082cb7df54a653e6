//! One call, as a list of steps. Each step has its file: `drain`, `resolve`, `limit`, `gate`,
//! `validate`, `dispatch`, `shape`, `record`; the other files are what the steps use. Nothing is sent before
//! all checks have passed, and a result is not parsed beyond its form.

pub(crate) mod arguments;
mod baggage;
mod coerce;
pub(crate) mod context;
pub(crate) mod cut;
mod dispatch;
mod drain;
mod gate;
mod hidden_chars;
mod limit;
mod long_work;
mod record;
mod render_mode;
mod resolve;
mod reviewed_ui;
mod revoked;
mod right;
mod shape;
mod validate;
pub(crate) mod validator;
pub(crate) mod waiting;
pub(crate) mod work;

use std::pin::pin;

use context::{CallContext, Operation, Outcome, ToolRequest};
use record::Record;
use revoked::while_allowed;

use crate::Inner;
use crate::errors::error::CoreError;
use crate::identity::Identity;

impl Inner {
    /// Runs an operation on the entry at `path`. Dropping the future cancels it.
    pub(super) async fn call(
        &self,
        identity: &Identity,
        context: &CallContext<'_>,
        path: &str,
        operation: Operation<'_>,
    ) -> Result<Outcome, Box<CoreError>> {
        let mut record = Record::new(context, path);
        let outcome = self
            .steps(identity, context, path, operation, &mut record)
            .await;
        record.end(&outcome);
        outcome
    }

    async fn steps(
        &self,
        identity: &Identity,
        context: &CallContext<'_>,
        path: &str,
        operation: Operation<'_>,
        record: &mut Record<'_>,
    ) -> Result<Outcome, Box<CoreError>> {
        let Operation::CallTool(ToolRequest {
            args,
            subject,
            account,
            received,
            form,
        }) = operation;
        let text = args.text();
        let _in_flight = self.enter()?;
        let target = self.resolve(identity, path, record)?;
        let mut limits = self.limits(&target, received, context.deadline);
        let slot = self
            .pass_gate(identity, &target, (text, account), &mut limits, context)
            .await?;
        let coerced = match subject {
            None => self.validate(&target, args, account, &limits).await?,
            Some(_) => None,
        };
        let text = coerced.as_ref().map_or(text, |coerced| &coerced.text);
        let own_subject = self.subject_of((identity, &target), text, subject)?;
        let subject = own_subject.as_deref().or(subject);
        let answer = {
            // Pinned here, since an `async fn` would hold it twice; in a block, so that its room is used again.
            let sending = pin!(self.dispatch(
                &target,
                slot,
                (text, subject, account),
                (identity, context),
                &limits
            ));
            while_allowed(identity, sending).await?
        };
        let warning = coerced.map(|coerced| coerced.warning);
        let outcome = self
            .shape(
                (&target, warning),
                answer,
                (form, account),
                &limits.settings,
            )
            .await?;
        // Shaping a long result waits for a thread.
        match identity.is_revoked() {
            true => Err(revoked::error(true)),
            false => Ok(outcome),
        }
    }
}

//! A request to the thread of a store, which can run again if its group was taken back.

use tokio::sync::oneshot;

use crate::clock::Now;
use crate::engine::Engine;
use crate::error::{Failure, StoreError};
use crate::id::JobId;

/// The change that a request makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It changes nothing.
    Read,
    /// It adds this number of events, which need not be durable when it is answered.
    Events(u64),
    /// It adds a job. It may not use the room that is reserved for ends.
    Create,
    /// It changes a job that exists.
    Change,
}

/// A request.
pub(super) trait Request: Send {
    /// Returns the change that it makes.
    fn effect(&self) -> Effect;

    /// Returns the job that it changes.
    fn job(&self) -> Option<&JobId>;

    /// Does what is asked and keeps the answer.
    fn run(&mut self, engine: &mut Engine, now: Now) -> Result<(), Failure>;

    /// Answers, with an error if the changes do not hold. Later calls do nothing.
    fn answer(&mut self, held: Result<(), StoreError>);
}

/// A request as a function.
pub(super) struct Asked<T, F> {
    effect: Effect,
    job: Option<JobId>,
    run: F,
    output: Option<Result<T, StoreError>>,
    reply: Option<oneshot::Sender<Result<T, StoreError>>>,
}

impl<T, F> Asked<T, F>
where
    F: FnMut(&mut Engine, Now) -> Result<Result<T, StoreError>, Failure>,
{
    pub(super) const fn new(
        effect: Effect,
        job: Option<JobId>,
        run: F,
        reply: oneshot::Sender<Result<T, StoreError>>,
    ) -> Self {
        Self {
            effect,
            job,
            run,
            output: None,
            reply: Some(reply),
        }
    }
}

impl<T, F> Request for Asked<T, F>
where
    T: Send,
    F: FnMut(&mut Engine, Now) -> Result<Result<T, StoreError>, Failure> + Send,
{
    fn effect(&self) -> Effect {
        self.effect
    }

    fn job(&self) -> Option<&JobId> {
        self.job.as_ref()
    }

    fn run(&mut self, engine: &mut Engine, now: Now) -> Result<(), Failure> {
        self.output = Some((self.run)(engine, now)?);
        Ok(())
    }

    fn answer(&mut self, held: Result<(), StoreError>) {
        let (Some(reply), output) = (self.reply.take(), self.output.take()) else {
            return;
        };
        let answer = match (held, output) {
            (Err(error), _) => Err(error),
            (Ok(()), Some(output)) => output,
            // A request that did not run leaves its caller without an answer, who then asks for the reason.
            (Ok(()), None) => return,
        };
        // The caller may have left.
        let _left = reply.send(answer);
    }
}

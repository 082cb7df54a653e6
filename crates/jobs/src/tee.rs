//! The events of a call that may become a job: its caller gets those that it wants until it has the job, and the job
//! keeps them.

use std::pin::pin;

use broker_core::{CallEvent, CallEvents, LogLevel, WantedEvents};
use tokio::sync::mpsc::Receiver;

use crate::run;

/// The maximum number of events that wait to be passed on.
const MAX_WAITING_EVENTS: usize = 64;

/// The events of one call, for its caller and for its job.
pub(crate) struct Tee {
    received: Receiver<CallEvent>,
    caller: CallEvents,
    job: CallEvents,
}

impl Tee {
    /// Returns what takes the events of the call, what passes them on, and the receiver of the job.
    pub(crate) fn new(caller: CallEvents) -> (CallEvents, Self, Receiver<CallEvent>) {
        let (job, kept) = run::wanted_events();
        let wanted = WantedEvents {
            progress: true,
            log: least(caller.wants().log, job.wants().log),
        };
        let (events, received) = CallEvents::new(MAX_WAITING_EVENTS, wanted);
        let tee = Self {
            received,
            caller,
            job,
        };
        (events, tee, kept)
    }

    /// Runs a call, and passes its events on.
    pub(crate) async fn run<T>(mut self, call: impl Future<Output = T>) -> T {
        let mut call = pin!(call);
        let outcome = loop {
            tokio::select! {
                biased;
                Some(event) = self.received.recv() => self.pass(event),
                outcome = &mut call => break outcome,
            }
        };
        while let Ok(event) = self.received.try_recv() {
            self.pass(event);
        }
        outcome
    }

    fn pass(&self, event: CallEvent) {
        self.caller.repeat(event.clone());
        self.job.repeat(event);
    }
}

/// Returns the least severe of two levels.
fn least(one: Option<LogLevel>, other: Option<LogLevel>) -> Option<LogLevel> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

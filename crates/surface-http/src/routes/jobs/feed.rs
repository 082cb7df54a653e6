//! The events of a job as one stream reads them: from a number on, of the kinds that it wants, and charged to its caller.

use std::sync::Arc;

use broker_core::{
    Account, Charge, CoreError, Identity, JobDesk, JobEvent, JobEventKind, memory_error_for_result,
};
use broker_model::CallCode;
use bytes::Bytes;

use super::query::Query;
use crate::pipeline::Refusal;

/// The number of events that are read at once.
const EVENTS_AT_ONCE: usize = 100;

/// The kinds of events that a stream has. The state of the job and gaps are in each stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kinds {
    progress: bool,
    stdout: bool,
    stderr: bool,
}

impl Kinds {
    /// Reads `stream`, names with commas between them; without it every kind is wanted.
    pub(super) fn read(query: &Query) -> Result<Self, Refusal> {
        let Some(names) = query.text("stream") else {
            return Ok(Self {
                progress: true,
                stdout: true,
                stderr: true,
            });
        };
        let mut kinds = Self {
            progress: false,
            stdout: false,
            stderr: false,
        };
        for name in names.split(',') {
            match name.trim() {
                "progress" => kinds.progress = true,
                "stdout" => kinds.stdout = true,
                "stderr" => kinds.stderr = true,
                _ => {
                    let message = "`stream` has names of `stdout`, `stderr` and `progress`, with commas between them";
                    return Err(Refusal::new(CallCode::FieldInvalid, message));
                }
            }
        }
        Ok(kinds)
    }

    const fn has(self, kind: JobEventKind) -> bool {
        match kind {
            JobEventKind::Progress => self.progress,
            JobEventKind::Stdout => self.stdout,
            JobEventKind::Stderr => self.stderr,
            JobEventKind::Status | JobEventKind::Gap => true,
        }
    }
}

/// The events of a job behind a number.
pub(super) struct Feed {
    pub(super) desk: Arc<dyn JobDesk>,
    pub(super) identity: Identity,
    pub(super) account: Account,
    pub(super) id: String,
    /// The number of the last event that was read.
    pub(super) after: u64,
    pub(super) kinds: Kinds,
}

/// Events that were read together.
pub(super) struct Batch {
    pub(super) events: Vec<JobEvent>,
    /// Whether they are the last ones.
    pub(super) is_end: bool,
    _charge: Charge,
}

impl Feed {
    /// Returns the next events of the wanted kinds; waits until there is one, or until the job has ended. A feed that
    /// was dropped here has read none of them.
    pub(super) async fn next(&mut self) -> Result<Batch, Box<CoreError>> {
        loop {
            let reading = self
                .desk
                .events(&self.identity, &self.id, self.after, EVENTS_AT_ONCE);
            let read = reading.await?;
            let mut charge = Charge::default();
            let bytes = read.events.iter().map(|event| event.body.len()).sum();
            charge
                .cover(&self.account, bytes)
                .map_err(|full| Box::new(memory_error_for_result(full)))?;
            if let Some(last) = read.events.last() {
                self.after = last.number;
            }
            let mut events = read.events;
            events.retain(|event| self.kinds.has(event.kind));
            if read.is_end || !events.is_empty() {
                return Ok(Batch {
                    events,
                    is_end: read.is_end,
                    _charge: charge,
                });
            }
        }
    }

    /// Returns a text for the caller, charged until it was sent.
    pub(super) fn charged(&self, text: String) -> Result<Bytes, Box<CoreError>> {
        let mut charge = Charge::default();
        charge
            .cover(&self.account, text.len())
            .map_err(|full| Box::new(memory_error_for_result(full)))?;
        Ok(charge.hold(text.into_bytes()))
    }
}

//! The open streams of jobs: their number for each caller.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use broker_model::CallCode;
use broker_surface::CallerShare;

use crate::pipeline::Refusal;

/// The maximum number of open streams of the jobs of one caller.
const MAX_STREAMS: usize = 100;

/// The number of each caller's streams, without an entry for zero.
#[derive(Debug, Default)]
pub(crate) struct OpenStreams(Mutex<HashMap<CallerShare, usize>>);

/// An open stream of a caller; it has ended when this is dropped.
#[derive(Debug)]
pub(crate) struct OpenStream {
    streams: Arc<OpenStreams>,
    caller: CallerShare,
}

impl OpenStreams {
    /// Counts a stream of a caller, unless it has as many as it may have.
    pub(super) fn open(self: &Arc<Self>, caller: CallerShare) -> Result<OpenStream, Refusal> {
        let mut streams = self.lock();
        let count = streams.entry(caller.clone()).or_default();
        if *count >= MAX_STREAMS {
            let message = format!("this caller has {MAX_STREAMS} open streams of jobs");
            return Err(Refusal::new(CallCode::Overloaded, message).retryable());
        }
        *count += 1;
        drop(streams);
        Ok(OpenStream {
            streams: Arc::clone(self),
            caller,
        })
    }

    /// Returns the number of open streams.
    pub(crate) fn count(&self) -> usize {
        self.lock().values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallerShare, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut streams = self.streams.lock();
        if let Some(count) = streams.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                streams.remove(&self.caller);
            }
        }
    }
}

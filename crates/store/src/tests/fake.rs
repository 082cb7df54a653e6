//! A clock that a test sets, and jobs.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use crate::{Clock, EventKind, JobEnd, JobId, JobStart, JobState, NewEvent, NewJob, Now};

/// The time for which jobs of tests are kept.
pub(super) const TTL: Duration = Duration::from_secs(3_600);

/// The id of the boot of the machine.
const BOOT: &str = "9a2f0c52-0000-4000-8000-000000000001";

/// A clock that stays until it is moved.
#[derive(Clone, Debug)]
pub(super) struct FakeClock(Arc<Mutex<Now>>);

impl FakeClock {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Now {
            wall: UNIX_EPOCH + Duration::from_secs(1_800_000_000),
            since: Duration::ZERO,
        })))
    }

    pub(super) fn clock(&self) -> Clock {
        let its = self.clone();
        Clock::with_boot(BOOT, move || its.now())
    }

    /// Returns the clock after another start of the machine.
    pub(super) fn after_boot(&self) -> Clock {
        let its = self.clone();
        Clock::with_boot("another boot", move || its.now())
    }

    pub(super) fn now(&self) -> Now {
        *self.0.lock().unwrap()
    }

    /// Lets time pass on both clocks.
    pub(super) fn pass(&self, time: Duration) {
        let mut now = self.0.lock().unwrap();
        now.wall += time;
        now.since += time;
    }

    /// Sets the wall clock.
    pub(super) fn jump(&self, wall: SystemTime) {
        self.0.lock().unwrap().wall = wall;
    }
}

/// Returns a queued job of an owner.
pub(super) fn new_job(owner: Option<&str>) -> NewJob {
    let args = Bytes::from_static(br#"{"secret":"argument-text"}"#);
    NewJob {
        id: JobId::random().unwrap(),
        owner: owner.map(str::to_owned),
        path: "/a/tool".to_owned(),
        tool_digest: "sha256/1:tool".to_owned(),
        catalog_digest: "sha256/1:catalog".to_owned(),
        args_sha256: Sha256::digest(&args).into(),
        args,
        meta: None,
        key: None,
        caller: r#"{"kind":"key"}"#.to_owned(),
        trace: None,
        ttl: TTL,
        start: JobStart::Queued,
    }
}

/// Returns an end with a result.
pub(super) fn succeeded(result: impl Into<Bytes>) -> JobEnd {
    JobEnd {
        state: JobState::Succeeded,
        result: Some(result.into()),
        is_error: false,
        error: None,
    }
}

/// Returns an event of progress.
pub(super) fn progress(body: impl Into<Bytes>) -> NewEvent {
    NewEvent {
        kind: EventKind::Progress,
        body: body.into(),
    }
}

/// Returns an end with an error.
pub(super) fn failed(error: &str) -> JobEnd {
    JobEnd {
        state: JobState::Failed,
        result: None,
        is_error: false,
        error: Some(error.to_owned()),
    }
}

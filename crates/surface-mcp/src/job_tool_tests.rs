//! Tests of the time for which the tool `job` waits.

use std::future::pending;
use std::time::SystemTime;

use broker_core::{DeskAnswer, JobEvents, JobPage, JobQuery, JobsTrouble};

use super::*;

/// A desk with one job that runs, reports an event each 20 seconds and does not end.
#[derive(Debug)]
struct Endless;

fn refused<'a, T>() -> DeskAnswer<'a, T> {
    Box::pin(async { Err(Box::new(CoreError::new(CallCode::JobNotFound, "not here"))) })
}

impl JobDesk for Endless {
    fn is_durable(&self) -> bool {
        true
    }

    fn trouble(&self) -> Option<JobsTrouble> {
        None
    }

    fn promote_after(&self) -> Option<Duration> {
        None
    }

    fn mcp_mode(&self) -> CallMode {
        CallMode::Sync
    }

    fn show<'a>(&'a self, _: &'a Identity, id: &'a str) -> DeskAnswer<'a, JobView> {
        let job = JobView {
            id: id.into(),
            path: "/a/t".into(),
            state: JobState::Running,
            is_durable: true,
            created: SystemTime::UNIX_EPOCH,
            started: None,
            ended: None,
            updated: SystemTime::UNIX_EPOCH,
            expires: SystemTime::UNIX_EPOCH,
            progress: None,
            last_event: 1,
            is_error: None,
            result_bytes: None,
            error: None,
            maybe_executed: None,
        };
        Box::pin(async { Ok(job) })
    }

    fn own<'a>(&'a self, caller: &'a Identity, id: &'a str) -> DeskAnswer<'a, JobView> {
        self.show(caller, id)
    }

    fn ended<'a>(&'a self, _: &'a Identity, _: &'a str) -> DeskAnswer<'a, JobView> {
        Box::pin(pending())
    }

    fn list<'a>(&'a self, _: &'a Identity, _: JobQuery) -> DeskAnswer<'a, JobPage> {
        refused()
    }

    fn cancel<'a>(&'a self, _: &'a Identity, _: &'a str) -> DeskAnswer<'a, JobView> {
        refused()
    }

    fn result<'a>(&'a self, _: &'a Identity, _: &'a str) -> DeskAnswer<'a, JobResult> {
        refused()
    }

    fn keep_result(&self, _: &Identity, _: &str, _: &[u8]) -> Option<Box<str>> {
        None
    }

    fn read<'a>(&'a self, _: &'a Identity, _: &'a str) -> DeskAnswer<'a, JobResult> {
        refused()
    }

    fn events_may_be_read<'a>(&'a self, _: &'a Identity, _: &'a str) -> DeskAnswer<'a, ()> {
        refused()
    }

    fn events<'a>(
        &'a self,
        _: &'a Identity,
        _: &'a str,
        _: u64,
        _: usize,
    ) -> DeskAnswer<'a, JobEvents> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            Ok(JobEvents {
                events: Vec::new(),
                is_end: false,
            })
        })
    }
}

#[tokio::test(start_paused = true)]
async fn job_that_does_not_end_is_waited_for_at_most_50_seconds() {
    let begun = Instant::now();
    let identity = Identity::anonymous();
    let job = wait(&Endless, (&identity, "j_1"), &CancellationToken::new()).await;
    let job = job.expect("its state");
    assert_eq!(job.state, JobState::Running);
    let waited = begun.elapsed();
    let most = Duration::from_secs(50);
    assert!(waited <= most + Duration::from_millis(5), "{waited:?}");
    assert!(waited >= most, "{waited:?}");
    assert!(unfinished_text(&job).contains("again to wait for its result"));
}

#[tokio::test(start_paused = true)]
async fn drain_ends_the_wait_for_a_job() {
    let begun = Instant::now();
    let draining = CancellationToken::new();
    draining.cancel();
    let identity = Identity::anonymous();
    let job = wait(&Endless, (&identity, "j_1"), &draining).await;
    assert_eq!(job.expect("its state").state, JobState::Running);
    assert!(begun.elapsed() < Duration::from_secs(1));
}

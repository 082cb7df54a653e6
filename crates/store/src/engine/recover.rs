//! The jobs of a run of the broker that ended without their end.

use crate::clock::Now;
use crate::error::Failure;
use crate::expiry::left;
use crate::job::{JobState, Recovered};

use super::Engine;

/// The error of a job that is lost.
const LOST: &str = r#"{"code":"job_lost","message":"the broker ended while the call of the job was under way","hint":"Check what the call did before you repeat it.","retryable":false,"maybe_executed":true}"#;
/// Numbers of events that are left out behind those of the last run, besides one for each possible event.
const SEQ_MARGIN: u64 = 1_000;

impl Engine {
    /// Queues claimed jobs that were not sent again, and ends those that were sent as lost. Comes before other operations,
    /// and ends with a commit.
    pub fn recover(&mut self, now: Now) -> Result<Recovered, Failure> {
        let mut found = Recovered::default();
        for mut job in self.store.claimed()? {
            // Readers may have seen events that the last run had not made durable: their numbers are not given again.
            job.last_seq += self.bounds.events + SEQ_MARGIN;
            job.fence += 1;
            let id = job.id.clone();
            if !job.sent && job.cancel_asked {
                self.end(&mut job, JobState::Canceled, None, now)?;
                found.canceled.push(id);
            } else if !job.sent {
                job.state = JobState::Queued;
                self.store_state(&mut job, now)?;
                found.requeued.push(id);
            } else if job.upstream.is_some() && job.upstream_survives {
                self.store.update(&job)?;
                self.adoptable.insert(id.clone(), job.fence);
                found.adoptable.push(id);
            } else {
                self.end(&mut job, JobState::Lost, Some(LOST.to_owned()), now)?;
                found.lost.push(id);
            }
        }
        self.rebase(now)?;
        found.queued = self.store.total()?.queued;
        self.store.commit()?;
        Ok(found)
    }

    /// Watches for the expiry of the ended jobs. The expiry of a job that has more than its time left is corrected: the
    /// clock has jumped back.
    fn rebase(&mut self, now: Now) -> Result<(), Failure> {
        let mut ahead = Vec::new();
        let expiry = &mut self.expiry;
        self.store.each_ended(&mut |job| {
            expiry.add(&job, now);
            if left(&job, now) > job.ttl {
                ahead.push(job.id);
            }
        })?;
        for id in ahead {
            let Some(mut job) = self.store.load(&id)? else {
                continue;
            };
            job.expires = crate::clock::whole_millis(now.wall).checked_add(job.ttl);
            self.store.update(&job)?;
            self.watch_expiry(&job, now);
        }
        Ok(())
    }
}

//! The jobs of calls on the connection of a simple client: their progress and their end follow on the same connection as
//! `notifications/progress` with `job_id`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use broker_core::{Account, Broker, Charge, CoreError, JobDesk, JobEvent, JobEventKind};
use broker_surface::job_json;
use broker_wire::write::{self, AnswerReader, Outgoing, Receipt};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::Client;
use crate::notifications::PROGRESS;

/// The maximum number of jobs of a connection that are followed at a time. A further job is followed once one has ended.
const MAX_FOLLOWED: usize = 32;
/// The maximum number of jobs of a connection that wait to be followed: as many as a broker has that have not ended.
const MAX_WAITING_JOBS: usize = 1_000;
/// The number of notifications that wait for a slow reader. The events stay in the store meanwhile.
const MAX_WAITING: usize = 8;
/// The number of events of a job that are read at once.
const EVENTS_AT_ONCE: usize = 20;
/// The time after which events are read again if there was no memory for them.
const MEMORY_DELAY: Duration = Duration::from_secs(1);

/// Takes the jobs of a connection whose answers are on their way.
#[derive(Clone, Debug)]
pub(crate) struct JobFollowing(mpsc::Sender<Box<str>>);

impl JobFollowing {
    /// Returns the receipt of the answer that names a job. Once the answer is written the job is followed.
    pub(crate) fn receipt(&self, id: &str) -> Receipt {
        Receipt::new(Announced {
            id: Some(id.into()),
            following: self.clone(),
        })
    }
}

/// A job whose answer is on its way.
struct Announced {
    id: Option<Box<str>>,
    following: JobFollowing,
}

impl fmt::Debug for Announced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Announced")
    }
}

impl AnswerReader for Announced {
    fn replaced(mut self: Box<Self>) {
        // The client does not learn the id.
        self.id = None;
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        if let Some(id) = self.id.take()
            && self.following.0.try_send(id).is_err()
        {
            tracing::debug!("a job is not followed: its connection has ended, or too many wait");
        }
    }
}

/// The followed jobs of a connection.
pub(crate) struct JobFollowers {
    ids: mpsc::Receiver<Box<str>>,
    tasks: JoinSet<()>,
    output: mpsc::Sender<Outgoing>,
    messages: mpsc::Receiver<Outgoing>,
}

impl fmt::Debug for JobFollowers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobFollowers")
            .field("followed", &self.tasks.len())
            .finish_non_exhaustive()
    }
}

impl JobFollowers {
    /// Makes followers without a job, and what tells them of jobs.
    pub(crate) fn new() -> (Self, JobFollowing) {
        let (following, ids) = mpsc::channel(MAX_WAITING_JOBS);
        let (output, messages) = mpsc::channel(MAX_WAITING);
        let followers = Self {
            ids,
            tasks: JoinSet::new(),
            output,
            messages,
        };
        (followers, JobFollowing(following))
    }

    /// Returns the next notification; waits for one, and with `has_room` false until it is dropped. Cancel-safe.
    pub(super) async fn next<B: Broker>(
        &mut self,
        client: &Arc<Client<B>>,
        account: &Account,
        has_room: bool,
    ) -> Outgoing {
        loop {
            tokio::select! {
                Some(id) = self.ids.recv(), if self.tasks.len() < MAX_FOLLOWED => {
                    let job = FollowedJob {
                        id,
                        account: account.clone(),
                        output: self.output.clone(),
                    };
                    self.tasks.spawn(job.follow(Arc::clone(client)));
                }
                Some(_) = self.tasks.join_next(), if !self.tasks.is_empty() => {}
                Some(message) = self.messages.recv(), if has_room => return message,
                else => std::future::pending().await,
            }
        }
    }
}

/// A job that is followed.
struct FollowedJob {
    id: Box<str>,
    account: Account,
    output: mpsc::Sender<Outgoing>,
}

impl FollowedJob {
    async fn follow<B: Broker>(self, client: Arc<Client<B>>) {
        let Some(desk) = client.broker.jobs() else {
            return;
        };
        if let Err(error) = self.send_all(&client, &**desk).await {
            tracing::debug!(job = &*self.id, %error, "a job is no longer followed");
        }
    }

    /// Sends the events of the job, and its end. Returns early if the connection has ended.
    async fn send_all(
        &self,
        client: &Client<impl Broker>,
        desk: &dyn JobDesk,
    ) -> Result<(), Box<CoreError>> {
        let mut after = 0;
        if !self.send(r#""progress":0.0"#).await {
            return Ok(());
        }
        loop {
            let reading = desk.events(&client.identity, &self.id, after, EVENTS_AT_ONCE);
            let read = reading.await?;
            let mut charge = Charge::default();
            let bytes = read.events.iter().map(|event| event.body.len()).sum();
            if charge.cover(&self.account, bytes).is_err() {
                drop(read);
                sleep(MEMORY_DELAY).await;
                continue;
            }
            for event in &read.events {
                after = event.number;
                if let Some(members) = members_of(event)
                    && !self.send(&members).await
                {
                    return Ok(());
                }
            }
            if read.is_end {
                break;
            }
        }
        let job = desk.show(&client.identity, &self.id).await?;
        let state = job_json::simple_state(&job).to_string();
        let message = write::notification(PROGRESS, Some(&state));
        // The client may have left.
        drop(self.output.send(message).await);
        Ok(())
    }

    /// Sends a notification with these members. Returns `false` if the connection has ended.
    async fn send(&self, members: &str) -> bool {
        let params = format!(r#"{{"job_id":"{}",{members}}}"#, self.id);
        let message = write::notification(PROGRESS, Some(&params));
        self.output.send(message).await.is_ok()
    }
}

/// Returns the members of the notification for an event, if it has one: the states of a job follow from its end.
fn members_of(event: &JobEvent) -> Option<String> {
    let inner = |body: &str| {
        let members = body.trim().strip_prefix('{')?.strip_suffix('}')?;
        Some(members.to_owned())
    };
    match event.kind {
        JobEventKind::Progress => inner(&event.body),
        JobEventKind::Stdout | JobEventKind::Stderr => {
            let body: Value = serde_json::from_str(&event.body).ok()?;
            let text = match body.get("data")? {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Some(format!("\"{}\":{}", event.kind.as_str(), Value::from(text)))
        }
        JobEventKind::Status | JobEventKind::Gap => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn event_has_the_member_of_its_kind() {
        let members = |kind, body: &str| {
            members_of(&JobEvent {
                number: 1,
                at: SystemTime::UNIX_EPOCH,
                kind,
                body: body.to_owned(),
            })
        };
        for (kind, body, expected) in [
            (
                JobEventKind::Progress,
                r#"{"progress":1,"total":3}"#,
                Some(r#""progress":1,"total":3"#),
            ),
            (
                JobEventKind::Stdout,
                r#"{"level":"info","data":"a\"b"}"#,
                Some(r#""stdout":"a\"b""#),
            ),
            (
                JobEventKind::Stderr,
                r#"{"data":{"n":1}}"#,
                Some(r#""stderr":"{\"n\":1}""#),
            ),
            (JobEventKind::Status, r#"{"status":"running"}"#, None),
        ] {
            assert_eq!(members(kind, body).as_deref(), expected, "{body}");
        }
    }
}

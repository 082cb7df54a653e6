//! The notifications of tasks of a legacy session: progress, log messages and changes of their status. Each task of the
//! session is followed from its answer to its end, while the session has a stream for messages that belong to no request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use broker_core::{
    AcceptedJob, Account, Broker, Charge, CoreError, Identity, JobDesk, JobEvent, JobEventKind,
    JobEvents,
};
use broker_wire::LogLevel;
use broker_wire::write::{self, AnswerReader, Outgoing, Receipt};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use tokio::time::sleep;

use super::legacy;
use crate::Client;
use crate::notifications::{MESSAGE, PROGRESS};

/// The notification that the status of a task has changed.
const STATUS: &str = "notifications/tasks/status";
/// The maximum number of tasks of a session that are followed at a time. A further task is followed once one has ended.
const MAX_FOLLOWED: usize = 32;
/// The maximum number of tasks of a session that wait to be followed, for example while it has no stream.
const MAX_WAITING_TASKS: usize = 128;
/// The number of events of a task that are read at once.
const EVENTS_AT_ONCE: usize = 20;
/// The time after which events are read again if there was no memory for them.
const MEMORY_DELAY: Duration = Duration::from_secs(1);

/// The tasks of a session.
#[derive(Debug)]
pub(crate) struct TaskFeed {
    added: mpsc::Sender<FollowedTask>,
    /// The stream that reports holds it.
    state: Mutex<FeedState>,
}

#[derive(Debug)]
struct FeedState {
    added: mpsc::Receiver<FollowedTask>,
    followed: Vec<FollowedTask>,
    /// Counts the tasks that were followed.
    count: u64,
}

/// A task, and how far the client knows it.
#[derive(Debug)]
struct FollowedTask {
    /// Distinguishes tasks of one session: a repeated call may have the task of an earlier one.
    number: u64,
    id: Box<str>,
    /// The progress token of the request that made the task. It is valid until the end of the task.
    token: Option<Box<str>>,
    identity: Identity,
    /// The number of the last event that the client has.
    after: u64,
    status: &'static str,
}

/// The events of a task, with the number of the task.
type Read = (u64, Result<JobEvents, Box<CoreError>>);

impl TaskFeed {
    /// Makes a feed without a task.
    pub(crate) fn new() -> Self {
        let (added, receiver) = mpsc::channel(MAX_WAITING_TASKS);
        let state = Mutex::new(FeedState {
            added: receiver,
            followed: Vec::new(),
            count: 0,
        });
        Self { added, state }
    }

    /// Returns the receipt of the answer that names a task. Once the answer is written the task is followed.
    pub(crate) fn receipt(
        &self,
        accepted: &AcceptedJob,
        token: Option<&str>,
        identity: &Identity,
    ) -> Receipt {
        Receipt::new(AnnouncedTask {
            task: Some(FollowedTask {
                number: 0,
                id: accepted.job.id.clone(),
                token: token.map(Box::from),
                identity: identity.clone(),
                after: 0,
                status: legacy::status(&accepted.job),
            }),
            added: self.added.clone(),
        })
    }

    /// Sends the notifications of the tasks to `messages` until it is dropped. Another stream of the session goes on where
    /// this one ended.
    pub(crate) async fn report(
        &self,
        client: &Client<impl Broker>,
        account: &Account,
        messages: &mpsc::Sender<Outgoing>,
    ) {
        let Some(desk) = client.tasks() else {
            return;
        };
        let mut state = self.state.lock().await;
        let FeedState {
            added,
            followed,
            count,
        } = &mut *state;
        let mut changes: FuturesUnordered<_> =
            followed.iter().map(|task| task.next(desk)).collect();
        loop {
            tokio::select! {
                () = messages.closed() => return,
                Some(mut task) = added.recv(), if followed.len() < MAX_FOLLOWED => {
                    *count += 1;
                    task.number = *count;
                    changes.push(task.next(desk));
                    followed.push(task);
                }
                Some((number, read)) = changes.next() => {
                    let Some(at) = followed.iter().position(|task| task.number == number) else {
                        continue;
                    };
                    let task = &mut followed[at];
                    let stream = Stream { account, messages, level: client.log_level.get() };
                    match task.send(&**desk, read, &stream).await {
                        true => changes.push(task.next(desk)),
                        false => drop(followed.swap_remove(at)),
                    }
                }
            }
        }
    }
}

/// The stream that reports.
struct Stream<'a> {
    account: &'a Account,
    messages: &'a mpsc::Sender<Outgoing>,
    /// The least severe log message that the client gets; it gets none before it has set a level.
    level: Option<LogLevel>,
}

impl FollowedTask {
    /// Waits for the next events of the task.
    fn next(&self, desk: &Arc<dyn JobDesk>) -> BoxFuture<'static, Read> {
        let (desk, identity, id) = (Arc::clone(desk), self.identity.clone(), self.id.clone());
        let (number, after) = (self.number, self.after);
        Box::pin(async move {
            let read = desk.events(&identity, &id, after, EVENTS_AT_ONCE).await;
            (number, read)
        })
    }

    /// Sends events, and the status if it has changed. Returns whether the task goes on.
    async fn send(
        &mut self,
        desk: &dyn JobDesk,
        read: Result<JobEvents, Box<CoreError>>,
        stream: &Stream<'_>,
    ) -> bool {
        // A job that was deleted has no further events.
        let Ok(read) = read else {
            return false;
        };
        if self.identity.is_revoked() {
            return false;
        }
        let mut charge = Charge::default();
        let bytes = read.events.iter().map(|event| event.body.len()).sum();
        if charge.cover(stream.account, bytes).is_err() {
            drop(read);
            sleep(MEMORY_DELAY).await;
            return true;
        }
        for event in &read.events {
            if let Some(message) = self.message_of(event, stream.level)
                && stream.messages.send(message).await.is_err()
            {
                return true;
            }
            self.after = event.number;
        }
        let Ok(job) = desk.own(&self.identity, &self.id).await else {
            return false;
        };
        // The events of a job that has ended come before its end.
        let status = legacy::status(&job);
        if status != self.status && (read.is_end || !job.state.is_finished()) {
            let message = write::notification(STATUS, Some(&legacy::task(&job)));
            if stream.messages.send(message).await.is_err() {
                return true;
            }
            self.status = status;
        }
        !read.is_end
    }

    /// Returns the notification for an event, if the client gets one.
    fn message_of(&self, event: &JobEvent, level: Option<LogLevel>) -> Option<Outgoing> {
        let mut params: Value = serde_json::from_str(&event.body).ok()?;
        let method = match event.kind {
            JobEventKind::Progress => {
                params["progressToken"] = serde_json::from_str(self.token.as_deref()?).ok()?;
                PROGRESS
            }
            JobEventKind::Stdout => {
                let known = LogLevel::parse(params.get("level")?.as_str()?)?;
                if known < level? {
                    return None;
                }
                MESSAGE
            }
            JobEventKind::Stderr | JobEventKind::Status | JobEventKind::Gap => return None,
        };
        params["_meta"] = json!({ legacy::META_RELATED_TASK: { "taskId": &*self.id } });
        Some(write::notification(method, Some(&params.to_string())))
    }
}

/// A task whose answer is on its way.
struct AnnouncedTask {
    task: Option<FollowedTask>,
    added: mpsc::Sender<FollowedTask>,
}

impl fmt::Debug for AnnouncedTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnnouncedTask")
    }
}

impl AnswerReader for AnnouncedTask {
    fn replaced(mut self: Box<Self>) {
        // The client does not learn the id.
        self.task = None;
    }
}

impl Drop for AnnouncedTask {
    fn drop(&mut self) {
        if let Some(task) = self.task.take()
            && self.added.try_send(task).is_err()
        {
            tracing::debug!("a task is not followed: its session has ended, or too many wait");
        }
    }
}

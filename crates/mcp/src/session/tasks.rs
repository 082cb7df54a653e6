//! Follows the task that a server made of a call, until it has a result.

use std::time::Duration;

use broker_wire::Era;
use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until};

use super::Session;
use super::result::{check_result, protocol};
use crate::connection::RawResult;
use crate::events::CallEvents;
use crate::failure::{CallFailure, RequestError};
use crate::link::Carrier;
use crate::server_call::{CallTime, ServerCall, ServerOperation};
use crate::tasks::{
    RemoteTask, TaskState, TaskStatus, made_legacy, made_modern, without_related_task,
};
use crate::{request, rpc_error};

/// The maximum time of one answer about the state of a task.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum time between two questions of which the first has no answer.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

/// Why a task is no longer followed.
enum TaskStop {
    /// It has ended with this failure, or the server no longer has it.
    Ended(CallFailure),
    /// The broker does not wait for its end, so that it is cancelled.
    GivenUp(CallFailure),
    /// The session has ended. Another one may follow it.
    Interrupted,
}

/// The time of a call whose task is followed.
struct TaskTime {
    began: Instant,
    end: Instant,
    last_end: Instant,
    after_answer: Duration,
    is_extended: bool,
}

impl TaskTime {
    fn new(time: CallTime) -> Self {
        let began = Instant::now();
        Self {
            began,
            end: began + time.first().min(time.total()),
            last_end: began + time.total(),
            after_answer: time.after_progress(),
            is_extended: false,
        }
    }

    /// Returns the remaining time.
    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Notes that the server works on the task, as progress of a call does.
    fn extend(&mut self) {
        let end = Instant::now() + self.after_answer;
        if end > self.end {
            self.end = end.min(self.last_end);
            self.is_extended = true;
        }
    }

    fn failure(&self) -> CallFailure {
        CallFailure::Timeout {
            after: self.began.elapsed(),
            extended: self.is_extended,
            maybe_executed: true,
        }
    }
}

/// Cancels a task at its server when it is dropped, unless the task has ended or its server goes on with it.
struct CancelOnDrop<'a> {
    session: &'a Session,
    task: &'a RemoteTask,
    events: Option<&'a CallEvents>,
    has_ended: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let is_left = self
            .events
            .is_some_and(|events| events.task_slot().is_left());
        if !self.has_ended && !is_left {
            let (session, id) = (self.session, self.task.id());
            let method = request::CANCEL_TASK;
            let line = |number| request::about_task(number, method, id, &session.meta);
            session.link.cancel_task(id, line);
        }
    }
}

impl Session {
    /// Reads the answer to a call of a session with the extension. A task is returned as an error, so that the caller of
    /// the session follows it.
    pub(super) fn read_answer(
        &self,
        call: &ServerCall<'_>,
        answer: RawResult,
        asked_for_task: bool,
    ) -> Result<RawResult, CallFailure> {
        let is_tool = match call.operation {
            ServerOperation::CallTool { .. } => true,
            ServerOperation::GetPrompt { .. }
            | ServerOperation::ReadResource { .. }
            | ServerOperation::Complete { .. } => false,
        };
        let made = match self.era() {
            Era::Modern if is_tool => made_modern(&answer.result),
            Era::Legacy if asked_for_task => made_legacy(&answer.result),
            Era::Modern | Era::Legacy => None,
        };
        match made {
            None => finished(answer),
            Some(Ok(task)) => Err(CallFailure::Task(Box::new(task))),
            Some(Err(problem)) => Err(protocol(problem)),
        }
    }

    /// Waits for the result of a task of this server. Each answer about the task extends the time like progress, if
    /// `events` wants progress. Dropping the future cancels the task at the server. Fails with [`CallFailure::Task`] if the
    /// session has ended and another one may go on.
    pub(crate) async fn follow(
        &self,
        task: &RemoteTask,
        events: Option<&CallEvents>,
        time: CallTime,
    ) -> Result<RawResult, CallFailure> {
        let _followed = self.tasks.as_ref().map(|tasks| tasks.follow());
        if self.tasks.is_none() || task.era() != self.era() {
            return Err(protocol(
                "the server no longer has the tasks of this revision",
            ));
        }
        if let Some(events) = events {
            events.task_slot().note(task, self.tasks_survive());
        }
        let mut cancel = CancelOnDrop {
            session: self,
            task,
            events,
            has_ended: false,
        };
        let outcome = self.poll(task, events, time).await;
        match outcome {
            Ok(result) => {
                cancel.has_ended = true;
                Ok(result)
            }
            Err(TaskStop::Ended(failure)) => {
                cancel.has_ended = true;
                Err(failure)
            }
            Err(TaskStop::Interrupted) => {
                cancel.has_ended = true;
                Err(CallFailure::Task(Box::new(task.clone())))
            }
            Err(TaskStop::GivenUp(failure)) => Err(failure),
        }
    }

    /// Whether a task of the server outlives the broker: a process ends with it.
    fn tasks_survive(&self) -> bool {
        match self.carrier() {
            Carrier::StreamableHttp => true,
            Carrier::Stdio | Carrier::HttpSse => false,
        }
    }

    async fn poll(
        &self,
        task: &RemoteTask,
        events: Option<&CallEvents>,
        time: CallTime,
    ) -> Result<RawResult, TaskStop> {
        let extends = events.is_some_and(|events| events.wants().progress);
        let mut time = TaskTime::new(time);
        let mut wait = task.wait();
        let (mut shown, mut number) = (None, 0);
        loop {
            self.rest(wait, &time).await?;
            let asked = self.ask_task(request::GET_TASK, task, time.left().min(ANSWER_TIMEOUT));
            let answer = match asked.await {
                Ok(answer) => answer,
                Err(error) => {
                    self.check_passing(error)?;
                    wait = (wait * 2).clamp(ANSWER_TIMEOUT / 10, MAX_RETRY_DELAY);
                    continue;
                }
            };
            let given_up = |problem: &str| TaskStop::GivenUp(protocol(problem));
            let state = TaskState::read(&answer.result, task).map_err(given_up)?;
            if extends {
                time.extend();
            }
            if let (Some(events), Some(text)) = (events, &state.message)
                && shown.as_ref() != Some(text)
            {
                number += 1;
                events.task_status(number, text, &self.link.redactor(&self.spec.redactor));
                shown = Some(text.clone());
            }
            match state.status {
                TaskStatus::Working => wait = state.interval,
                TaskStatus::InputRequired => {
                    return Err(given_up(
                        "the server asks for input, and the broker has no answer: the task was cancelled",
                    ));
                }
                TaskStatus::Cancelled => {
                    let failure = protocol("the server cancelled the task of the call");
                    return Err(TaskStop::Ended(failure));
                }
                TaskStatus::Completed | TaskStatus::Failed if task.era() == Era::Legacy => {
                    return self.legacy_result(task, &time).await;
                }
                TaskStatus::Completed => return ended(part(&answer, state.result)),
                TaskStatus::Failed => {
                    let error = part(&answer, state.error).map(|error| error.result);
                    return Err(TaskStop::Ended(self.task_error(&error.unwrap_or_default())));
                }
            }
        }
    }

    /// Waits until the state of the task is asked for again.
    async fn rest(&self, wait: Duration, time: &TaskTime) -> Result<(), TaskStop> {
        let mut end = self.end();
        tokio::select! {
            biased;
            _ = end.wait_for(Option::is_some) => return Err(self.interruption()),
            () = sleep_until((Instant::now() + wait).min(time.end)) => {}
        }
        match time.left() {
            Duration::ZERO => Err(TaskStop::GivenUp(time.failure())),
            _ => Ok(()),
        }
    }

    /// Returns why a task is not followed any longer by a session that has ended.
    fn interruption(&self) -> TaskStop {
        if self.tasks_survive() {
            return TaskStop::Interrupted;
        }
        let failure = self.end().borrow().clone();
        TaskStop::Ended(CallFailure::Exited {
            failure: failure.unwrap_or_else(super::stopped),
            maybe_executed: true,
        })
    }

    /// Asks for the result of a task that has ended, in the legacy era.
    async fn legacy_result(
        &self,
        task: &RemoteTask,
        time: &TaskTime,
    ) -> Result<RawResult, TaskStop> {
        let mut wait = Duration::ZERO;
        loop {
            self.rest(wait, time).await?;
            let asked = self.ask_task(request::TASK_RESULT, task, time.left());
            match asked.await {
                Ok(answer) => return ended(Some(answer)),
                Err(RequestError::Error(error)) => {
                    return Err(TaskStop::Ended(self.task_error(&error)));
                }
                Err(error) => self.check_passing(error)?,
            }
            wait = (wait * 2).clamp(ANSWER_TIMEOUT / 10, MAX_RETRY_DELAY);
        }
    }

    async fn ask_task(
        &self,
        method: &'static str,
        task: &RemoteTask,
        time: Duration,
    ) -> Result<RawResult, RequestError> {
        let line = |id| request::about_task(id, method, task.id(), &self.meta);
        self.link.ask_task(method, task.id(), line, time).await
    }

    /// Returns the error with which a task ended.
    fn task_error(&self, error: &Bytes) -> CallFailure {
        rpc_error::read(error, &self.link.redactor(&self.spec.redactor))
    }

    /// Returns `Ok` for a failure after which the task is asked for again.
    fn check_passing(&self, error: RequestError) -> Result<(), TaskStop> {
        match error {
            RequestError::Timeout { .. } | RequestError::Overloaded(_) => Ok(()),
            // A server over HTTP that is not reached now.
            RequestError::Gone { .. } if !self.is_over() && self.tasks_survive() => Ok(()),
            RequestError::Gone { .. } => Err(self.interruption()),
            RequestError::Http(refusal)
                if refusal.retry_after.is_some()
                    || matches!(refusal.status, 408 | 425 | 429 | 500..=599) =>
            {
                Ok(())
            }
            RequestError::Http(refusal) => Err(TaskStop::GivenUp(CallFailure::Http {
                status: refusal.status,
                maybe_executed: true,
            })),
            RequestError::Error(_) => {
                let failure =
                    protocol("the server does not tell the state of the task of the call");
                Err(TaskStop::GivenUp(failure))
            }
            RequestError::Broken(reason) => Err(TaskStop::GivenUp(protocol(&reason))),
            RequestError::TooLarge => Err(TaskStop::Ended(CallFailure::OutputTooLarge {
                limit: self.spec.line_bytes,
            })),
            RequestError::OutOfMemory => Err(TaskStop::Ended(CallFailure::OutOfMemory)),
        }
    }
}

/// Returns the result of a task that has ended.
fn ended(answer: Option<RawResult>) -> Result<RawResult, TaskStop> {
    let answer = answer.ok_or_else(|| protocol("the task has ended without a result"));
    let answer = answer.map(|answer| RawResult {
        result: without_related_task(answer.result),
        ..answer
    });
    answer.and_then(finished).map_err(TaskStop::Ended)
}

/// Returns a result that is complete.
fn finished(answer: RawResult) -> Result<RawResult, CallFailure> {
    let is_error = check_result(&answer.result)?;
    Ok(RawResult { is_error, ..answer })
}

/// Returns a member of an answer as bytes that share the memory of the answer.
fn part(answer: &RawResult, member: Option<&RawValue>) -> Option<RawResult> {
    let member = member?;
    Some(RawResult {
        result: answer.result.slice_ref(member.get().as_bytes()),
        ..answer.clone()
    })
}

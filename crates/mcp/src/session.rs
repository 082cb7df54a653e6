//! One started and handshaken server process: what it said of itself, and calls to it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use broker_model::mcp::Era;
use broker_model::{Snapshot, SourceCause};
use bytes::Bytes;
use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::connection::{Connection, Kind, Unanswered};
use crate::failure::{CallFailure, SourceFailure};
use crate::handshake::{self, Agreed, Disagreement};
use crate::launch::Launch;
use crate::process::{Process, ProcessHandle, StderrTail};
use crate::status::Counters;
use crate::{list, request, rpc_error, startup};

/// One started and handshaken server process. Dropping it ends the process group at once; [`stop`]
/// gives the server time to leave by itself.
///
/// [`stop`]: Session::stop
#[derive(Debug)]
pub struct Session {
    connection: Connection,
    process: ProcessHandle,
    agreed: Agreed,
    /// What every request of the era carries; empty in the legacy era.
    meta: String,
    tail: StderrTail,
    launch: Launch,
}

/// What a supervisor adds to starting a session.
pub(crate) struct Opening<'a> {
    pub(crate) tail: &'a StderrTail,
    pub(crate) counters: &'a Arc<Counters>,
    pub(crate) tasks: &'a TaskTracker,
    /// Whether a second process may be started for the other era when the first one dies.
    pub(crate) second_process: bool,
}

impl Session {
    /// Starts the process and agrees on an era; `era` is tried first.
    pub async fn open(launch: &Launch, era: Option<Era>) -> Result<Self, SourceFailure> {
        let tail = StderrTail::new(launch.redactor.clone());
        Self::open_watched(launch, era, &tail).await
    }

    /// The same, with stderr going into `tail` from the first byte.
    pub async fn open_watched(
        launch: &Launch,
        era: Option<Era>,
        tail: &StderrTail,
    ) -> Result<Self, SourceFailure> {
        let opening = Opening {
            tail,
            counters: &Arc::default(),
            tasks: &TaskTracker::new(),
            second_process: true,
        };
        Self::open_supervised(launch, era, &opening).await
    }

    pub(crate) async fn open_supervised(
        launch: &Launch,
        era: Option<Era>,
        opening: &Opening<'_>,
    ) -> Result<Self, SourceFailure> {
        let first = era.unwrap_or(Era::Modern);
        let result = match Self::attempt(launch, first, true, opening).await {
            Err(Disagreement::Died(failure)) if opening.second_process => {
                tracing::debug!(source = %launch.source.as_str(), %failure, "the server ended at the first question; trying the other era in a new process");
                Self::attempt(launch, handshake::other(first), false, opening).await
            }
            result => result,
        };
        result.map_err(|disagreement| match disagreement {
            Disagreement::Died(failure) | Disagreement::Refused(failure) => {
                startup::explain(failure, launch, opening.tail)
            }
        })
    }

    /// One process. Whatever goes wrong after it was started, it is stopped before this returns.
    async fn attempt(
        launch: &Launch,
        first: Era,
        both: bool,
        opening: &Opening<'_>,
    ) -> Result<Self, Disagreement> {
        opening.tail.clear();
        let mut process = Process::spawn(launch, opening.tail, opening.tasks)
            .await
            .map_err(Disagreement::Refused)?;
        let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            let failure = SourceFailure::new(SourceCause::SpawnFailed, "the process has no pipes");
            return Err(Disagreement::Refused(failure));
        };
        let connection = Connection::open(
            stdin,
            stdout,
            &process.handle,
            launch,
            opening.tail,
            opening.counters,
            opening.tasks,
        );
        let (probe, redactor) = (launch.timing.probe, &launch.redactor);
        let agreed = tokio::select! {
            biased;
            agreed = handshake::agree(&connection, first, both, probe, redactor) => agreed,
            failure = startup::expired(launch.startup_timeout, opening.tail) => {
                Err(Disagreement::Refused(failure))
            }
        };
        match agreed {
            Ok(agreed) => Ok(Self::new(
                connection,
                process.handle,
                agreed,
                launch,
                opening.tail,
            )),
            Err(disagreement) => {
                connection.close().await;
                process.handle.stop().await;
                Err(disagreement)
            }
        }
    }

    fn new(
        connection: Connection,
        process: ProcessHandle,
        agreed: Agreed,
        launch: &Launch,
        tail: &StderrTail,
    ) -> Self {
        let meta = match agreed.era {
            Era::Modern => request::modern_meta(),
            Era::Legacy => String::new(),
        };
        if agreed.era == Era::Modern && announces_changes(&agreed.capabilities) {
            connection.subscribe(|id| request::listen(id, &meta));
        }
        Self {
            connection,
            process,
            agreed,
            meta,
            tail: tail.clone(),
            launch: launch.clone(),
        }
    }

    /// All pages of the tool list, and what the handshake said. A server without the `tools`
    /// capability has no tools.
    pub async fn snapshot(&self) -> Result<Snapshot, SourceFailure> {
        let tools = if self.agreed.capabilities.get("tools").is_some() {
            tokio::select! {
                biased;
                tools = list::tools(&self.connection, &self.meta, self.launch.startup_timeout * 3, &self.launch.redactor) => tools?,
                failure = startup::expired(self.launch.startup_timeout, &self.tail) => return Err(failure),
            }
        } else {
            Vec::new()
        };
        Ok(Snapshot {
            server_info: self.agreed.server_info.clone(),
            protocol_version: self.agreed.protocol_version.clone(),
            capabilities: self.agreed.capabilities.clone(),
            instructions: self.agreed.instructions.clone(),
            tools,
        })
    }

    /// The era that was agreed on.
    pub fn era(&self) -> Era {
        self.agreed.era
    }

    /// The leader of the process group.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What the process last said on stderr.
    pub fn stderr_tail(&self) -> StderrTail {
        self.tail.clone()
    }

    /// Calls a tool by its upstream name. `args` is one JSON object, already checked; the result is
    /// the raw result object. `timeout` covers queueing, writing and waiting. Dropping the future
    /// gives the call up, and the server is told.
    pub async fn call(
        &self,
        tool: &str,
        args: &[u8],
        timeout: Duration,
    ) -> Result<Bytes, CallFailure> {
        let line = |id| request::call(id, tool, args, &self.meta);
        match self.connection.request(Kind::Call, line, timeout).await {
            Ok(result) => check_result(result),
            Err(unanswered) => Err(self.call_failure(unanswered, timeout)),
        }
    }

    fn call_failure(&self, unanswered: Unanswered, after: Duration) -> CallFailure {
        match unanswered {
            Unanswered::Overloaded { limit } => CallFailure::Overloaded { limit },
            Unanswered::Timeout { begun } => CallFailure::Timeout {
                after,
                maybe_executed: begun,
            },
            Unanswered::Gone { failure, begun }
                if failure.cause == SourceCause::Stopped && !begun =>
            {
                tracing::trace!(%failure, "not sent");
                CallFailure::Stopping
            }
            Unanswered::Gone { failure, begun } => CallFailure::Exited {
                failure,
                maybe_executed: begun,
            },
            Unanswered::Error(error) => rpc_error::read(&error, &self.launch.redactor),
            Unanswered::Broken(reason) => protocol(reason),
            Unanswered::TooLarge => CallFailure::OutputTooLarge {
                limit: self.launch.line_bytes,
            },
        }
    }

    /// Counts the server's announcements that its tools changed.
    pub(crate) fn list_changes(&self) -> watch::Receiver<u64> {
        self.connection.list_changes()
    }

    /// Why the connection is over, once it is.
    pub(crate) fn end(&self) -> watch::Receiver<Option<SourceFailure>> {
        self.connection.end()
    }

    /// Whether the connection is over.
    pub(crate) fn is_over(&self) -> bool {
        self.connection.is_over()
    }

    /// Stops the process and everything in its group: stdin closed, TERM, KILL, sweep, reap.
    pub async fn stop(self) {
        self.shut_down().await;
    }

    pub(crate) async fn shut_down(&self) {
        self.connection.close().await;
        self.process.stop().await;
    }
}

fn protocol(message: &str) -> CallFailure {
    CallFailure::Protocol {
        message: message.to_owned(),
        maybe_executed: true,
    }
}

fn announces_changes(capabilities: &Value) -> bool {
    capabilities.pointer("/tools/listChanged") == Some(&Value::Bool(true))
}

/// A result is an object, and complete: the broker has no user whom a server could ask for more.
fn check_result(result: Bytes) -> Result<Bytes, CallFailure> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(borrow, rename = "resultType")]
        kind: Option<Cow<'a, str>>,
    }
    if result.first() != Some(&b'{') {
        return Err(protocol("the result is not an object"));
    }
    // Nearly every result without the word is complete without being looked through.
    if memmem::find(&result, b"\"resultType\"").is_none() {
        return Ok(result);
    }
    match serde_json::from_slice::<Kind<'_>>(&result) {
        Ok(Kind { kind }) if kind.as_deref().is_none_or(|kind| kind == "complete") => Ok(result),
        Ok(_) => Err(protocol(
            "the result is not complete: its `resultType` is not `complete`",
        )),
        Err(_) => Err(protocol("the result's `resultType` cannot be read")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_results_pass() {
        let passes = |text: &'static str| check_result(Bytes::from_static(text.as_bytes())).is_ok();
        assert!(passes(r#"{"content":[]}"#));
        assert!(passes(r#"{"resultType":"complete","content":[]}"#));
        assert!(passes(
            r#"{"content":[{"type":"text","text":"\"resultType\":\"x\""}]}"#
        ));
        assert!(passes(r#"{"structuredContent":{"resultType":"task"}}"#));
        assert!(!passes(r#"{"resultType":"input_required"}"#));
        assert!(!passes(r#"{"resultType":"task","taskId":"1"}"#));
        assert!(!passes(r#"{"resultType":7}"#));
        assert!(!passes("[]"));
        assert!(!passes("null"));
    }
}

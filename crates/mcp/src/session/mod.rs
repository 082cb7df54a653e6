//! A session: one server process after the handshake, with its metadata and calls to it.

mod liveness;
mod open;
mod result;
mod tasks;

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use broker_model::{Snapshot, SourceCause};
use broker_wire::protocol::{HEADER_MISMATCH, MODERN, legacy_revision};
use broker_wire::{Era, LogLevel};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::connection::RawResult;
use crate::failure::{CallFailure, RequestError, SourceFailure};
use crate::http::Pause;
use crate::link::{Carrier, Link};
use crate::list::UndeclaredLists;
use crate::opening::Negotiated;
use crate::server_call::{CallTime, ServerCall};
use crate::spec::SourceSpec;
use crate::subscription::Subscriber;
use crate::tasks::TaskSupport;
use crate::timeout_streak::TimeoutStreak;
use crate::{list, request, rpc_error, startup};
use broker_process::StderrTail;
pub(crate) use liveness::HANG_PROBE_TIMEOUT;
use result::{check_result, protocol};

/// One server process after the handshake. Dropping it ends the process group at once; [`stop`] gives
/// the server time to end by itself.
///
/// [`stop`]: Session::stop
#[derive(Debug)]
pub struct Session {
    link: Link,
    negotiated: Negotiated,
    /// The `_meta` of every request of the era; empty in the legacy era.
    meta: String,
    /// What is known about tasks, if the source has the extension.
    tasks: Option<Box<TaskSupport>>,
    subscribed: Subscriber,
    tail: StderrTail,
    spec: SourceSpec,
    /// The path where the server answered, if it is not the path of the URL as written.
    url_path: Option<&'static str>,
    /// The level of log messages that was sent to a legacy server.
    log_level: Mutex<Option<LogLevel>>,
    undeclared: UndeclaredLists,
    calls_begun: AtomicU64,
    /// The number of handles of the session: calls that were given to it and have not ended.
    handles: AtomicUsize,
    /// Timeouts in a row, and the signal that there is another one.
    timeouts: Mutex<TimeoutStreak>,
    timed_out: Notify,
}

impl Session {
    /// Returns all pages of the lists, and the result of the handshake.
    pub async fn snapshot(&self) -> Result<Snapshot, SourceFailure> {
        tokio::select! {
            biased;
            listed = self.relist() => listed,
            failure = startup::expired(Instant::now(), self.spec.startup_timeout, &self.tail) => Err(failure),
        }
    }

    /// Lists the tools without a timeout: the caller cancels by dropping the future.
    pub(crate) async fn relist(&self) -> Result<Snapshot, SourceFailure> {
        self.link.listing_begins();
        let listed = list::all(
            &self.link,
            &self.meta,
            &self.spec,
            &self.negotiated.capabilities,
            &self.undeclared,
        )
        .await?;
        if let Some(tasks) = &self.tasks {
            tasks.note_tools(&listed.tools);
        }
        Ok(Snapshot {
            server_info: self.negotiated.server_info.clone(),
            protocol_version: self.negotiated.protocol_version.clone(),
            capabilities: self.negotiated.capabilities.clone(),
            instructions: self.negotiated.instructions.clone(),
            tools: listed.tools,
            resources: listed.resources,
            left_out: listed.left_out,
            warnings: listed.warnings,
        })
    }

    /// Returns the path where the server answered, if it is not the path of the URL as written.
    pub const fn url_path(&self) -> Option<&'static str> {
        self.url_path
    }

    /// Returns the negotiated era.
    pub fn era(&self) -> Era {
        self.negotiated.era
    }

    /// Returns the negotiated revision of MCP.
    pub fn revision(&self) -> &'static str {
        // The handshake accepts no others.
        legacy_revision(&self.negotiated.protocol_version).unwrap_or(MODERN)
    }

    /// Returns the capabilities of the server, as it sent them.
    pub const fn capabilities(&self) -> &serde_json::Value {
        &self.negotiated.capabilities
    }

    /// Returns the session id of a legacy server over HTTP that has sessions.
    pub fn session_id(&self) -> Option<String> {
        self.link.session_id()
    }

    /// Returns its transport.
    pub const fn carrier(&self) -> Carrier {
        self.link.carrier()
    }

    /// Returns the leader of the process group, for a server that is a process.
    pub fn pid(&self) -> Option<u32> {
        self.link.pid()
    }

    /// Calls a tool; the result is the raw result object. `time` covers queueing, writing and
    /// waiting. Dropping the future cancels the call at the server.
    #[inline]
    pub async fn call(
        &self,
        call: ServerCall<'_>,
        time: impl Into<CallTime>,
    ) -> Result<RawResult, CallFailure> {
        let time = time.into();
        self.calls_begun.fetch_add(1, Ordering::Relaxed);
        let events = call.events.cloned();
        if call
            .events
            .is_some_and(|events| events.wants().log.is_some())
        {
            // The level may have been lowered a moment ago, for this call.
            self.send_log_level();
        }
        let task = match &self.tasks {
            None => None,
            Some(tasks) => tasks.ttl(&call, time).map_err(CallFailure::Overloaded)?,
        };
        let line = |id| request::call(id, &call, &self.meta, task);
        match self.link.call(&call, line, events, time).await {
            Ok(answer) if self.tasks.is_some() => self.read_answer(&call, answer, task.is_some()),
            Ok(answer) => {
                check_result(&answer.result).map(|is_error| RawResult { is_error, ..answer })
            }
            Err(unanswered) => {
                if let RequestError::Timeout { begun: true, .. } = unanswered {
                    self.note_timeout(time, call.account);
                }
                Err(self.call_failure(unanswered, time.first()))
            }
        }
    }

    fn call_failure(&self, unanswered: RequestError, after: Duration) -> CallFailure {
        match unanswered {
            RequestError::Overloaded(overload) => CallFailure::Overloaded(overload),
            RequestError::Timeout { begun, extended } => CallFailure::Timeout {
                after: extended.unwrap_or(after),
                extended: extended.is_some(),
                maybe_executed: begun,
            },
            RequestError::Gone { failure, begun }
                if failure.cause == SourceCause::Stopped && !begun =>
            {
                tracing::trace!(%failure, "not sent");
                CallFailure::Stopping
            }
            RequestError::Gone {
                failure,
                begun: false,
            } if is_unsent_over_http(failure.cause) => CallFailure::Unavailable {
                failure,
                retry_after: None,
            },
            RequestError::Gone { failure, begun } => CallFailure::Exited {
                failure,
                maybe_executed: begun,
            },
            RequestError::Error(error) => {
                let failure = rpc_error::read(&error, &self.link.redactor(&self.spec.redactor));
                if matches!(failure, CallFailure::Rpc { code, .. } if code == HEADER_MISMATCH) {
                    // The headers follow the last listing. The tool differs from it now.
                    self.link.tools_changed();
                }
                failure
            }
            RequestError::Http(refusal) if refusal.retry_after.is_some() && !refusal.begun => {
                CallFailure::Unavailable {
                    failure: refusal.failure,
                    retry_after: refusal.retry_after,
                }
            }
            RequestError::Http(refusal) => CallFailure::Http {
                status: refusal.status,
                maybe_executed: refusal.begun,
            },
            RequestError::Broken(reason) => protocol(&reason),
            RequestError::TooLarge => CallFailure::OutputTooLarge {
                limit: self.spec.line_bytes,
            },
            RequestError::OutOfMemory => CallFailure::OutOfMemory,
        }
    }

    /// Returns the number of its calls, including waiting ones.
    pub(crate) fn load(&self) -> usize {
        self.link.load()
    }

    /// Returns the number of its calls that wait for others to end.
    pub(crate) fn waiting(&self) -> usize {
        self.load().saturating_sub(self.spec.max_in_flight)
    }

    /// Returns the number of its handles.
    pub(crate) fn handles(&self) -> usize {
        self.handles.load(Ordering::Relaxed)
    }

    /// Counts one more handle.
    pub(crate) fn add_handle(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one more handle if there are `seen` of them now.
    pub(crate) fn add_handle_to(&self, seen: usize) -> bool {
        let order = Ordering::Relaxed;
        let added = self.handles.compare_exchange(seen, seen + 1, order, order);
        added.is_ok()
    }

    /// Counts one handle less.
    pub(crate) fn remove_handle(&self) {
        self.handles.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number of calls since the session was started.
    pub(crate) fn calls_begun(&self) -> u64 {
        self.calls_begun.load(Ordering::Relaxed)
    }

    /// Counts the server's announcements that its tools changed.
    pub(crate) fn list_changes(&self) -> watch::Receiver<u64> {
        self.link.list_changes()
    }

    /// Keeps a modern server's subscription open; notifies `reopened` each time it is opened again.
    pub(crate) async fn keep_subscribed(&self, reopened: &Notify) -> Infallible {
        let (link, timing) = (&self.link, self.spec.timing);
        self.subscribed
            .keep(link, self.spec.lists, &self.meta, timing, reopened)
            .await
    }

    /// Sends the level of log messages that callers ask for to a legacy server that has the capability, now
    /// and whenever it is lowered.
    pub(crate) async fn follow_log_level(&self) -> Infallible {
        let mut asked = self.spec.log_level.subscribe();
        loop {
            self.send_log_level();
            if asked.changed().await.is_err() {
                std::future::pending().await
            }
        }
    }

    /// Sends that level unless the server has it already. The server's answer has no effect.
    fn send_log_level(&self) {
        if self.era() != Era::Legacy || self.negotiated.capabilities.get("logging").is_none() {
            return;
        }
        // Held until the request is on its way: a call that waits for the lock is sent after it.
        let mut sent = self
            .log_level
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(level) = self.spec.log_level.lowest() else {
            return;
        };
        if sent.is_none_or(|sent| level < sent) {
            let line = |id| request::set_level(id, level);
            match self.link.tell(request::SET_LEVEL, line) {
                Ok(()) => *sent = Some(level),
                Err(error) => {
                    tracing::debug!(source = %self.spec.source.as_str(), ?error, "the log level was not sent");
                }
            }
        }
    }

    /// Returns the pause that a server over HTTP asks for.
    pub(crate) fn pause(&self) -> Option<&Pause> {
        self.link.pause()
    }

    /// Returns when the server asks for no pause.
    pub(crate) async fn pause_ended(&self) {
        if let Some(pause) = self.pause() {
            pause.ended().await;
        }
    }

    /// Returns the reason why the connection ended, once it has.
    pub(crate) fn end(&self) -> watch::Receiver<Option<SourceFailure>> {
        self.link.end()
    }

    /// Whether the connection has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.link.is_over()
    }

    /// Stops the process and its group: closes stdin, sends SIGTERM, then SIGKILL, then ends
    /// descendants outside the group.
    pub async fn stop(self) {
        self.shut_down(stopped()).await;
    }

    /// Stops like [`Session::stop`]; pending requests fail with `reason`.
    pub(crate) async fn shut_down(&self, reason: SourceFailure) {
        self.link.close(reason).await;
    }
}

/// Returns the reason of a source that the broker stops.
pub(crate) fn stopped() -> SourceFailure {
    SourceFailure::new(SourceCause::Stopped, "the source is being stopped")
}

/// Whether a call that was not sent for this cause found its server unreachable, rather than lost with its session.
fn is_unsent_over_http(cause: SourceCause) -> bool {
    match cause {
        SourceCause::Unreachable
        | SourceCause::TlsFailed
        | SourceCause::ProxyInvalid
        | SourceCause::NeedsAuth => true,
        SourceCause::SpawnNotFound
        | SourceCause::SpawnDenied
        | SourceCause::SpawnFormat
        | SourceCause::SpawnFailed
        | SourceCause::ExitBeforeReady
        | SourceCause::StartupTimeout
        | SourceCause::HandshakeFailed
        | SourceCause::ListFailed
        | SourceCause::ListInvalid
        | SourceCause::SessionEnded
        | SourceCause::EnvMissing
        | SourceCause::Exited
        | SourceCause::Protocol
        | SourceCause::StdinStalled
        | SourceCause::Hung
        | SourceCause::RecheckPending
        | SourceCause::DriftSource
        | SourceCause::LockStale
        | SourceCause::Stopped => false,
    }
}

#[cfg(test)]
mod tests {
    mod events;
    mod second_try;

    use super::*;

    #[test]
    fn only_a_member_of_the_result_itself_makes_it_an_error() {
        for (result, expected) in [
            (r#"{"content":[],"isError":true}"#, true),
            (r#"{"content":[],"isError" : true }"#, true),
            (r#"{"content":[],"isError":false}"#, false),
            (r#"{"is\u0045rror":true}"#, true),
            (r#"{"content":[{"isError":true}]}"#, false),
            (r#"{"content":[{"text":"\"isError\":true"}]}"#, false),
            (r#"{"content":[]}"#, false),
            (r#"{"content":[],"isError":"true"}"#, false),
        ] {
            assert_eq!(
                check_result(result.as_bytes()).unwrap(),
                expected,
                "{result}"
            );
        }
    }

    #[test]
    fn result_that_is_not_complete_is_refused() {
        let passes = |text: &str| check_result(text.as_bytes()).is_ok();
        assert!(passes(r#"{"content":[]}"#));
        assert!(passes(r#"{"resultType":"complete","content":[]}"#));
        assert!(passes(
            r#"{"content":[{"type":"text","text":"\"resultType\":\"x\""}]}"#
        ));
        assert!(passes(r#"{"structuredContent":{"resultType":"task"}}"#));
        assert!(!passes(r#"{"resultType":"input_required"}"#));
        assert!(!passes(r#"{"resultType":"task","taskId":"1"}"#));
        assert!(!passes(r#"{"resultType":7}"#));
        assert!(!passes(r#"{"resultType":null}"#));
        assert!(!passes(r#"{"resultType" : "completed"}"#));
        assert!(!passes(
            r#"{"x":{"resultType":"complete"},"resultType":"task"}"#
        ));
        assert!(passes(r#"{"x":["resultType"],"resultType" : "complete"}"#));
        assert!(passes(r#"{"x":"\"resultType","content":[]}"#));
        assert!(!passes("[]"));
        assert!(!passes("null"));
    }

    #[test]
    fn complete_result_that_asks_for_input_is_refused() {
        let passes = |text: &str| check_result(text.as_bytes()).is_ok();
        for member in ["inputRequests", "requestState", r"input\u0052equests"] {
            assert!(!passes(&format!(r#"{{"content":[],"{member}":null}}"#)));
            let typed = format!(r#"{{"resultType":"complete","{member}":{{}},"content":[]}}"#);
            assert!(!passes(&typed), "{typed}");
            assert!(passes(&format!(
                r#"{{"structuredContent":{{"{member}":1}}}}"#
            )));
        }
        let text = r#"{"content":[{"type":"text","text":"\"inputRequests\""}]}"#;
        assert!(passes(text));
    }

    #[test]
    fn result_type_is_read_in_any_spelling_of_its_name() {
        let passes = |text: &str| check_result(text.as_bytes()).is_ok();
        for name in [
            r"result\u0054ype",
            r"\u0072esultTyp\u0065",
            r"\u0072\u0065\u0073\u0075\u006c\u0074\u0054\u0079\u0070\u0065",
        ] {
            assert!(!passes(&format!(r#"{{"{name}":"input_required"}}"#)));
            assert!(passes(&format!(r#"{{"{name}":"complet\u0065"}}"#)));
            assert!(passes(&format!(r#"{{"x":{{"{name}":"task"}}}}"#)));
        }
        assert!(passes(r#"{"content":[{"type":"text","text":"\u00e9"}]}"#));
        // Some readers use the first of two equal names, others the second.
        for [one, other] in [["complete", "task"], ["task", "complete"]] {
            let twice = format!(r#"{{"resultType":"{one}","result\u0054ype":"{other}"}}"#);
            assert!(!passes(&twice), "{twice}");
        }
    }
}

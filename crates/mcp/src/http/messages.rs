//! Messages of a server: the answer to a request, and what it sends besides.

use std::sync::Arc;

use broker_model::text::shown_line;
use broker_wire::protocol::{CANCELLED, LOG_MESSAGE, PROGRESS};
use broker_wire::{Era, Id, Incoming, Messages, Problem, Raw, cancelled_request, read_server_line};
use bytes::{Buf as _, Bytes};

use super::LinkState;
use super::body::without_newline;
use super::lost_session::is_error_of_session;
use crate::connection::RawResult;
use crate::events::{self, Delivery, RequestEvents};
use crate::failure::RequestError;
use crate::request;

/// A modern server's notification that confirms a subscription.
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// Maximum number of messages in one batch.
const MAX_BATCH: usize = 1000;

/// The kind of the messages in one body or event on the stream of a request.
pub(super) enum Taken {
    /// The answer to the request is among them.
    Answer(Result<RawResult, RequestError>),
    /// Progress of the request or a log message is among them.
    Event,
    /// Neither is among them.
    Other,
}

/// The kind of the messages in one event on a stream of announcements or of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Announcement {
    /// The server ended the subscription.
    End,
    /// The server sent a message.
    Message,
    /// The event is not a message.
    Noise,
}

impl LinkState {
    /// Takes the messages of one body or event on the stream of request `id`.
    pub(super) fn take_messages(
        self: &Arc<Self>,
        id: u64,
        text: Bytes,
        events: &mut Option<RequestEvents>,
    ) -> Taken {
        // The first event of a stream may have an id and no message.
        if text.trim_ascii().is_empty() {
            return Taken::Other;
        }
        let text = without_mark(text);
        let parsed = read_server_line(text.clone(), &self.account);
        if parsed.repaired {
            self.counters.add_invalid_utf8_line();
        }
        let mut taken = Taken::Other;
        let mut take = |message| {
            let found = self.take_message(id, message, &text, parsed.repaired, events);
            match (&taken, found) {
                (Taken::Answer(_), Taken::Answer(_)) => self.counters.add_late_answer(),
                (Taken::Answer(_), _) | (_, Taken::Other) => {}
                (_, found) => taken = found,
            }
        };
        match parsed.messages {
            Messages::One(message) => take(message),
            Messages::Many(batch) => batch.take(MAX_BATCH).for_each(take),
        }
        taken
    }

    fn take_message(
        self: &Arc<Self>,
        request_id: u64,
        message: Incoming,
        text: &Bytes,
        repaired: bool,
        events: &mut Option<RequestEvents>,
    ) -> Taken {
        let is_own = |id: &Option<Id>| id.as_ref().and_then(Id::number) == Some(request_id);
        match message {
            Incoming::Response { id, outcome } if is_own(&id) => Taken::Answer(match outcome {
                Ok(result) => Ok(RawResult {
                    result: result.into_bytes(),
                    repaired,
                    is_error: false,
                }),
                Err(error) => Err(RequestError::Error(error.into_bytes())),
            }),
            // The stream belongs to this request, so an error without an id is about it.
            Incoming::Response {
                id: None,
                outcome: Err(error),
            } => Taken::Answer(Err(RequestError::Error(error.into_bytes()))),
            Incoming::Response { .. } => {
                self.counters.add_unknown_id();
                Taken::Other
            }
            Incoming::Invalid { id, problem } => {
                let error = self.take_invalid(is_own(&id), problem, text);
                error.map_or(Taken::Other, |error| Taken::Answer(Err(error)))
            }
            Incoming::Request { id, method, .. } => {
                self.answer(&id, &method);
                Taken::Other
            }
            Incoming::Notification { method, params } => {
                self.take_notification(request_id, &method, params.as_ref(), events)
            }
        }
    }

    fn take_invalid(&self, is_own: bool, problem: Problem, text: &Bytes) -> Option<RequestError> {
        match problem {
            Problem::Unreadable(reason) | Problem::Malformed(reason) if is_own => {
                Some(RequestError::Broken(reason))
            }
            Problem::OutOfMemory => Some(RequestError::OutOfMemory),
            Problem::Malformed(_) => {
                self.counters.add_unknown_id();
                None
            }
            Problem::Noise | Problem::Unreadable(_) => {
                self.counters.add_noise_line();
                self.counters.keep_noise(|| {
                    let head = String::from_utf8_lossy(&text[..text.len().min(4096)]);
                    shown_line(&self.client.redactor().redact(&head), 200)
                });
                None
            }
        }
    }

    /// Takes a notification on the stream of its request.
    fn take_notification(
        &self,
        request_id: u64,
        method: &str,
        params: Option<&Raw>,
        events: &mut Option<RequestEvents>,
    ) -> Taken {
        match (method, params) {
            (method, _) if self.lists.are_changed_by(method) => {
                self.tools_changed();
                Taken::Other
            }
            (PROGRESS, Some(params)) if events::progress_token(params) == Some(request_id) => {
                let redactor = self.client.redactor();
                let progress = |events: &mut RequestEvents| events.progress(params, &redactor);
                if events.as_mut().map(progress) == Some(Delivery::Dropped) {
                    self.counters.add_dropped_progress();
                }
                Taken::Event
            }
            (LOG_MESSAGE, Some(params)) => {
                let redactor = self.client.redactor();
                if events.as_ref().map(|events| events.log(params, &redactor))
                    == Some(Delivery::Dropped)
                {
                    self.counters.add_dropped_log_message();
                }
                Taken::Event
            }
            _ => Taken::Other,
        }
    }

    /// Takes the messages of an event on a stream that belongs to no call, or to the subscription `id` of a modern one.
    pub(super) fn take_announcements(
        self: &Arc<Self>,
        text: Bytes,
        id: Option<u64>,
    ) -> Announcement {
        if text.trim_ascii().is_empty() {
            return Announcement::Noise;
        }
        let text = without_mark(text);
        let (mut has_ended, mut has_message) = (false, true);
        let mut take = |message| match message {
            Incoming::Response {
                id: Some(ended), ..
            } if id.is_some() && ended.number() == id => {
                has_ended = true;
            }
            Incoming::Notification { method, params } if method == CANCELLED && id.is_some() => {
                let cancelled = cancelled_request(params.as_ref());
                has_ended |= cancelled.and_then(|cancelled| cancelled.number()) == id;
            }
            // The tools may have changed before the subscription began.
            Incoming::Notification { method, .. } if method == ACKNOWLEDGED => {
                self.tools_changed();
            }
            Incoming::Notification { method, .. } if self.lists.are_changed_by(&method) => {
                self.tools_changed();
            }
            Incoming::Notification { method, .. } if method == LOG_MESSAGE => {
                self.counters.add_dropped_log_message();
            }
            Incoming::Notification { method, .. } if method == PROGRESS => {
                self.counters.add_dropped_progress();
            }
            Incoming::Request { id, method, .. } => self.answer(&id, &method),
            Incoming::Response {
                id: None,
                outcome: Err(error),
            } if self.session.get().is_some() && is_error_of_session(error.bytes()) => {
                self.session_lost();
            }
            Incoming::Response { .. } => self.counters.add_unknown_id(),
            Incoming::Notification { .. } => {}
            Incoming::Invalid { .. } => {
                has_message = false;
                self.counters.add_noise_line();
            }
        };
        match read_server_line(text, &self.account).messages {
            Messages::One(message) => take(message),
            Messages::Many(batch) => batch.take(MAX_BATCH).for_each(take),
        }
        match (has_ended, has_message) {
            (true, _) => Announcement::End,
            (false, true) => Announcement::Message,
            (false, false) => Announcement::Noise,
        }
    }

    /// Counts an announcement that the tools changed.
    pub(super) fn tools_changed(&self) {
        self.list_changes.send_modify(|changes| *changes += 1);
    }

    /// Answers a request of a legacy server with a separate POST.
    fn answer(self: &Arc<Self>, id: &Id, method: &str) {
        self.counters.add_server_request();
        let is_legacy = self.era() == Some(Era::Legacy);
        if !is_legacy || id.is_too_long() || self.internal.available_permits() == 0 {
            return self.counters.add_unanswered_request();
        }
        let (state, line) = (self.clone(), without_newline(request::answer(id, method)));
        self.tasks.spawn(async move {
            let headers = state.headers_of(request::ANSWER);
            tokio::select! {
                () = state.ended.cancelled() => {}
                () = state.post(headers, line) => {}
            }
        });
    }
}

/// Returns the text without a byte order mark. Some servers write one before JSON.
pub(super) fn without_mark(mut text: Bytes) -> Bytes {
    if text.starts_with("\u{feff}".as_bytes()) {
        text.advance("\u{feff}".len());
    }
    text
}

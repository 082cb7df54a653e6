//! The events of a call before its result: progress and log messages of its server. Each is bounded, secrets
//! in it are masked, and characters that are not visible are escaped.

use std::sync::Arc;

use broker_model::redact::Redactor;
use broker_wire::{LogLevel, Raw};
use serde::Deserialize;
use serde_json::Number;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::event_queue::EventQueue;
use crate::event_text;
use crate::tasks::{RemoteTask, TaskSlot};

/// Notifications of progress with longer params are dropped.
const MAX_PROGRESS_BYTES: usize = 64 << 10;

/// The events that a caller wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WantedEvents {
    /// Progress. Without it the server is not asked for progress.
    pub progress: bool,
    /// Log messages of this level or a higher one.
    pub log: Option<LogLevel>,
}

/// One event of a call.
#[derive(Clone, Debug)]
pub enum CallEvent {
    /// `notifications/progress`.
    Progress(Progress),
    /// `notifications/message`.
    Log(LogMessage),
    /// A line that the process of the server wrote to stderr.
    Stderr(StderrLine),
}

/// A line of a process that runs one job only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StderrLine {
    /// The line, at most 4 KiB, with masked secrets.
    pub text: String,
    /// The number of lines before it that were dropped.
    pub dropped: u64,
}

/// One `notifications/progress` of a call, without the broker's token.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Progress {
    /// Grows with each notification; the unit is the server's.
    pub progress: Number,
    /// The value at the end, if the server knows it.
    pub total: Option<Number>,
    /// A text for people, written by the server; at most 4 KiB.
    pub message: Option<String>,
}

/// One `notifications/message` that belongs to a call.
#[derive(Clone, Debug)]
pub struct LogMessage {
    /// Its level.
    pub level: LogLevel,
    /// The part of the server that wrote it; at most 4 KiB.
    pub logger: Option<String>,
    /// The message: any JSON value of at most 4 KiB.
    pub data: Box<RawValue>,
}

/// Takes the events of one request of a caller. All clones share the limit on the rate.
#[derive(Clone, Debug)]
pub struct CallEvents(Arc<EventSink>);

/// Receives the events of one request of a caller.
#[derive(Debug)]
pub struct ReceivedEvents(Arc<EventSink>);

/// One allocation, since each call that may become a job has one.
#[derive(Debug)]
struct EventSink {
    queue: EventQueue<CallEvent>,
    wants: WantedEvents,
    /// Whether it takes lines of stderr too.
    takes_stderr: bool,
    /// Takes the same events for another receiver.
    beside: Option<CallEvents>,
    task: TaskSlot,
}

impl ReceivedEvents {
    /// Returns the next event, once there is one.
    pub fn recv(&mut self) -> impl Future<Output = CallEvent> {
        self.0.queue.recv()
    }

    /// Returns the next event, if there is one.
    pub fn try_recv(&mut self) -> Option<CallEvent> {
        self.0.queue.pop()
    }
}

impl Drop for ReceivedEvents {
    fn drop(&mut self) {
        self.0.queue.close();
    }
}

impl CallEvents {
    /// Keeps at most `capacity` events that were not received; further ones are dropped.
    pub fn new(capacity: usize, wants: WantedEvents) -> (Self, ReceivedEvents) {
        Self::make(capacity, wants, None, false)
    }

    /// Makes the events of a job, which has lines of stderr too. Those that the caller of the job's call takes itself go to
    /// both.
    pub fn for_job(
        capacity: usize,
        wants: WantedEvents,
        of_caller: Option<Self>,
    ) -> (Self, ReceivedEvents) {
        Self::make(capacity, wants, of_caller, true)
    }

    fn make(
        capacity: usize,
        wants: WantedEvents,
        beside: Option<Self>,
        takes_stderr: bool,
    ) -> (Self, ReceivedEvents) {
        let sink = Arc::new(EventSink {
            queue: EventQueue::new(capacity),
            wants,
            takes_stderr,
            beside,
            task: TaskSlot::default(),
        });
        (Self(sink.clone()), ReceivedEvents(sink))
    }

    /// Returns the events that the caller wants.
    pub fn wants(&self) -> WantedEvents {
        let wants = self.0.wants;
        match &self.0.beside {
            None => wants,
            Some(beside) => {
                let other = beside.wants();
                WantedEvents {
                    progress: wants.progress || other.progress,
                    log: [wants.log, other.log].into_iter().flatten().min(),
                }
            }
        }
    }

    /// Returns the task that the server makes of the call, once there is one, and whether it outlives the broker.
    pub async fn task(&self) -> (RemoteTask, bool) {
        self.0.task.made().await
    }

    /// Has the server go on with its task when the call is dropped.
    pub fn leave_task(&self) {
        self.0.task.leave();
    }

    /// Returns the place of the task that the server makes of the call.
    pub(crate) fn task_slot(&self) -> &TaskSlot {
        &self.0.task
    }

    /// Passes on a line of stderr; false if it was dropped.
    fn stderr(&self, line: impl FnOnce() -> StderrLine) -> bool {
        let sink = &self.0;
        sink.takes_stderr && sink.pass(|| CallEvent::Stderr(line()))
    }

    /// Passes on a text about the state of the server's task as progress.
    pub(crate) fn task_status(&self, number: u64, text: &str, redactor: &Redactor) {
        if self.wants().progress {
            self.pass(|| {
                CallEvent::Progress(Progress {
                    progress: number.into(),
                    total: None,
                    message: Some(event_text::text(text, redactor)),
                })
            });
        }
    }

    /// Passes on an event; false if it was dropped.
    pub fn pass(&self, event: impl FnOnce() -> CallEvent) -> bool {
        let Some(beside) = &self.0.beside else {
            return self.0.pass(event);
        };
        let event = event();
        let mut passed = false;
        for sink in [&self.0, &beside.0] {
            passed |= sink.wants(&event) && sink.pass(|| event.clone());
        }
        passed
    }
}

impl EventSink {
    /// Whether its receiver wants an event.
    fn wants(&self, event: &CallEvent) -> bool {
        match event {
            CallEvent::Progress(_) => self.wants.progress,
            CallEvent::Log(message) => self.wants.log.is_some_and(|level| message.level >= level),
            CallEvent::Stderr(_) => self.takes_stderr,
        }
    }

    /// Passes on an event; false if it was dropped.
    fn pass(&self, event: impl FnOnce() -> CallEvent) -> bool {
        self.queue.push(event, Instant::now())
    }
}

/// The events of one request that was sent to a server.
#[derive(Debug)]
pub(crate) struct RequestEvents(CallEvents);

/// When the progress of a request last grew.
#[derive(Debug)]
pub(crate) struct LastProgress(CallEvents);

impl LastProgress {
    /// Returns the time, if there was progress.
    pub(crate) fn time(&self) -> Option<Instant> {
        self.0.0.queue.progressed()
    }
}

/// The fate of a notification of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    Passed,
    /// The caller does not want it, or it cannot be read.
    Ignored,
    /// It was over a limit.
    Dropped,
}

impl RequestEvents {
    /// Makes the events of a request that is being sent. Also returns the time of their last progress.
    pub(crate) fn new(events: CallEvents) -> (Self, LastProgress) {
        // The server counts the progress of a call that is sent again from its start.
        events.0.queue.begin_request();
        (Self(events.clone()), LastProgress(events))
    }

    /// Takes the params of a `notifications/progress` for this request.
    pub(crate) fn progress(&mut self, params: &Raw, redactor: &Redactor) -> Delivery {
        if !self.0.wants().progress {
            return Delivery::Ignored;
        }
        let Ok(mut progress) = serde_json::from_slice::<Progress>(params.bytes()) else {
            return Delivery::Ignored;
        };
        // A notification that is dropped below still shows that the server works.
        (self.0.0.queue).note_progress(&progress.progress, Instant::now());
        let passed = self.0.pass(|| {
            progress.message = progress
                .message
                .take()
                .map(|text| event_text::text(&text, redactor));
            CallEvent::Progress(progress)
        });
        if passed {
            Delivery::Passed
        } else {
            Delivery::Dropped
        }
    }

    /// Takes a line of stderr, after `dropped` others that were dropped; false if it was dropped.
    pub(crate) fn stderr(&self, line: &[u8], dropped: u64, redactor: &Redactor) -> bool {
        self.0.stderr(|| StderrLine {
            text: event_text::text(&String::from_utf8_lossy(line), redactor),
            dropped,
        })
    }

    /// Takes the params of a `notifications/message` that belongs to this request.
    pub(crate) fn log(&self, params: &Raw, redactor: &Redactor) -> Delivery {
        #[derive(Deserialize)]
        struct Params<'a> {
            level: &'a str,
            #[serde(borrow)]
            logger: Option<&'a RawValue>,
            #[serde(borrow)]
            data: &'a RawValue,
        }
        let Some(wanted) = self.0.wants().log else {
            return Delivery::Ignored;
        };
        let Ok(params) = serde_json::from_slice::<Params<'_>>(params.bytes()) else {
            return Delivery::Dropped;
        };
        let Some(level) = LogLevel::parse(params.level) else {
            return Delivery::Dropped;
        };
        if level < wanted {
            return Delivery::Ignored;
        }
        let passed = self.0.pass(|| {
            let logger = params.logger.and_then(event_text::string_of);
            CallEvent::Log(LogMessage {
                level,
                logger: logger.map(|logger| event_text::text(&logger, redactor)),
                data: event_text::data(params.data, redactor),
            })
        });
        if passed {
            Delivery::Passed
        } else {
            Delivery::Dropped
        }
    }
}

/// Returns the request whose progress the `params` of a notification are: the token of a request is its id.
pub(crate) fn progress_token(params: &Raw) -> Option<u64> {
    #[derive(Deserialize)]
    struct Token {
        #[serde(rename = "progressToken")]
        token: u64,
    }
    let bytes = params.bytes();
    if bytes.len() > MAX_PROGRESS_BYTES {
        return None;
    }
    let read = serde_json::from_slice::<Token>(bytes).ok();
    read.map(|read| read.token)
}

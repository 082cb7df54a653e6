//! The events of a call before its result: progress and log messages of its server. Each is bounded, secrets
//! in it are masked, and characters that are not visible are escaped.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use broker_model::redact::Redactor;
use broker_wire::{LogLevel, Raw};
use serde::Deserialize;
use serde_json::Number;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::event_text;

/// Notifications of progress with longer params are dropped.
const MAX_PROGRESS_BYTES: usize = 64 << 10;
/// The maximum number of events of one request in a second; further ones are dropped.
const MAX_EVENTS_PER_SECOND: u32 = 50;

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
pub struct CallEvents {
    sender: mpsc::Sender<CallEvent>,
    wants: WantedEvents,
    rate: Arc<Mutex<TokenBucket>>,
}

impl CallEvents {
    /// Keeps at most `capacity` events that were not received; further ones are dropped.
    pub fn new(capacity: usize, wants: WantedEvents) -> (Self, mpsc::Receiver<CallEvent>) {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        let rate = Arc::new(Mutex::new(TokenBucket::full(Instant::now())));
        let events = Self {
            sender,
            wants,
            rate,
        };
        (events, receiver)
    }

    /// Returns the events that the caller wants.
    pub fn wants(&self) -> WantedEvents {
        self.wants
    }

    /// Passes on an event of another call that was received, if it is wanted and there is room for it.
    pub fn repeat(&self, event: CallEvent) {
        let is_wanted = match &event {
            CallEvent::Progress(_) => self.wants.progress,
            CallEvent::Log(message) => self.wants.log.is_some_and(|least| message.level >= least),
        };
        if is_wanted && self.sender.try_send(event).is_err() {
            tracing::trace!("an event of a call was dropped: its caller is gone or does not read");
        }
    }

    /// Passes on an event; false if it was dropped.
    fn pass(&self, event: impl FnOnce() -> CallEvent) -> bool {
        if self.sender.capacity() == 0 {
            return false;
        }
        let taken = self
            .rate
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take(Instant::now());
        taken && self.sender.try_send(event()).is_ok()
    }
}

/// Allows [`MAX_EVENTS_PER_SECOND`] at once, and as many again in each second.
#[derive(Debug)]
struct TokenBucket {
    /// The time when it was or will be full.
    full_at: Instant,
}

impl TokenBucket {
    const INTERVAL: Duration = Duration::from_nanos(1_000_000_000 / MAX_EVENTS_PER_SECOND as u64);
    const BURST: Duration = Duration::from_secs(1);

    fn full(now: Instant) -> Self {
        Self { full_at: now }
    }

    fn take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now) + Self::INTERVAL;
        let allowed = full_at - now <= Self::BURST;
        if allowed {
            self.full_at = full_at;
        }
        allowed
    }
}

/// The events of one request that was sent to a server.
#[derive(Debug)]
pub(crate) struct RequestEvents {
    events: CallEvents,
    /// The highest progress so far.
    last: Option<Number>,
    /// When the progress last grew.
    progressed: watch::Sender<Option<Instant>>,
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
    /// Makes the events. Also returns the time of the last progress, now and whenever it changes.
    pub(crate) fn new(events: CallEvents) -> (Box<Self>, watch::Receiver<Option<Instant>>) {
        let (progressed, receiver) = watch::channel(None);
        let request = Self {
            events,
            last: None,
            progressed,
        };
        (Box::new(request), receiver)
    }

    /// Takes the params of a `notifications/progress` for this request.
    pub(crate) fn progress(&mut self, params: &Raw, redactor: &Redactor) -> Delivery {
        if !self.events.wants.progress {
            return Delivery::Ignored;
        }
        let Ok(mut progress) = serde_json::from_slice::<Progress>(params.bytes()) else {
            return Delivery::Ignored;
        };
        // A notification that is dropped below still shows that the server works.
        if grows(self.last.as_ref(), &progress.progress) {
            self.last = Some(progress.progress.clone());
            self.progressed.send_replace(Some(Instant::now()));
        }
        let passed = self.events.pass(|| {
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
        let Some(wanted) = self.events.wants.log else {
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
        let passed = self.events.pass(|| {
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

/// Whether progress has increased.
fn grows(last: Option<&Number>, now: &Number) -> bool {
    let Some(last) = last else {
        return true;
    };
    match (last.as_i128(), now.as_i128()) {
        (Some(last), Some(now)) => now > last,
        _ => now.as_f64() > last.as_f64(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_limited_to_fifty_in_a_second() {
        let start = Instant::now();
        let mut bucket = TokenBucket::full(start);
        let taken = |bucket: &mut TokenBucket, at: Duration| {
            (0..200).filter(|_| bucket.take(start + at)).count()
        };
        assert_eq!(taken(&mut bucket, Duration::ZERO), 50);
        assert_eq!(taken(&mut bucket, Duration::from_millis(100)), 5);
        assert_eq!(taken(&mut bucket, Duration::from_secs(60)), 50);
    }

    #[test]
    fn progress_grows_only_if_it_is_higher() {
        let number = |text: &str| serde_json::from_str::<Number>(text).unwrap();
        assert!(grows(None, &number("0")));
        for (last, now, expected) in [
            ("1", "2", true),
            ("1", "1", false),
            ("2", "1", false),
            ("1", "1.5", true),
            ("1.0", "1", false),
            ("9007199254740992", "9007199254740993", true),
        ] {
            assert_eq!(grows(Some(&number(last)), &number(now)), expected, "{now}");
        }
    }
}

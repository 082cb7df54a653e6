//! Events of streams: their text, and logs of events from which streams are written and resumed.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::edit::{Drip, Edit, Events};
use super::socket::POLL_INTERVAL;

/// Maximum number of events of a log; older ones are dropped.
const MAX_EVENTS: usize = 100_000;

/// An event as text: optional name and id, and its data, which may be any bytes.
pub(crate) fn text(events: &Events, name: Option<&str>, id: Option<&str>, data: &[u8]) -> Vec<u8> {
    let newline = events.newline.as_bytes();
    let mut text = Vec::new();
    let mut field = |name: &str, value: &[u8]| {
        text.extend([name.as_bytes(), b": ", value, newline].concat());
    };
    if let Some(name) = name {
        field("event", name.as_bytes());
    }
    if let Some(id) = id {
        field("id", id.as_bytes());
    }
    match data.split_first() {
        // The client joins the lines with a newline, which is white space between two members.
        Some((first @ b'{', rest)) if events.split => {
            field("data", &[*first]);
            field("data", rest);
        }
        _ => field("data", data),
    }
    text.extend(newline);
    text
}

/// The event that a stream begins with if it can be resumed.
pub(crate) fn priming(events: &Events, id: &str) -> Vec<u8> {
    let newline = &events.newline;
    let retry = retry(events);
    format!("id: {id}{newline}{retry}data: {newline}{newline}").into()
}

/// The text before the first message of a stream that has no priming event.
pub(crate) fn preamble(events: &Events) -> Vec<u8> {
    let newline = &events.newline;
    let mut text = match events.priming {
        true => String::new(),
        false => retry(events),
    };
    if !text.is_empty() {
        text.push_str(newline);
    }
    for at in 1..=events.comments {
        text.push_str(&format!(": comment {at}{newline}{newline}"));
    }
    text.into()
}

fn retry(events: &Events) -> String {
    let newline = &events.newline;
    let line = |ms| format!("retry: {ms}{newline}");
    events.retry_ms.map_or(String::new(), line)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A message before the answer.
    Message,
    /// The answer, or its last part.
    Answer,
    /// Bytes without the frame of an event.
    Raw,
}

#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    pub(crate) data: Vec<u8>,
    pub(crate) drip: Option<Drip>,
    /// The faults of this event.
    pub(crate) edit: Option<Arc<Edit>>,
}

impl Event {
    pub(crate) fn new(kind: Kind, data: impl Into<Vec<u8>>) -> Self {
        Self {
            kind,
            data: data.into(),
            drip: None,
            edit: None,
        }
    }
}

/// The events of one stream, from 1.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) number: u64,
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    events: VecDeque<Arc<Event>>,
    dropped: u64,
    done: bool,
    readers: usize,
}

/// The next event of a log.
pub(crate) enum Next {
    Event(Arc<Event>),
    /// None so far.
    None,
    /// None will come.
    Done,
}

impl Log {
    pub(crate) fn new(number: u64) -> Arc<Self> {
        Arc::new(Self {
            number,
            inner: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    pub(crate) fn push(&self, event: Event) {
        let mut inner = self.lock();
        if inner.done {
            return;
        }
        if inner.events.len() >= MAX_EVENTS {
            inner.events.pop_front();
            inner.dropped += 1;
        }
        inner.events.push_back(Arc::new(event));
        self.changed.notify_all();
    }

    pub(crate) fn finish(&self) {
        self.lock().done = true;
        self.changed.notify_all();
    }

    /// The event after the first `read` ones; waits for it for a short time.
    pub(crate) fn next(&self, read: u64) -> Next {
        let inner = self.lock();
        let at = |inner: &Inner| {
            let at = read.saturating_sub(inner.dropped);
            usize::try_from(at)
                .ok()
                .and_then(|at| inner.events.get(at).cloned())
        };
        let missing = |inner: &mut Inner| at(inner).is_none() && !inner.done;
        let waited = self
            .changed
            .wait_timeout_while(inner, POLL_INTERVAL, missing);
        let (inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match at(&inner) {
            Some(event) => Next::Event(event),
            None if inner.done => Next::Done,
            None => Next::None,
        }
    }

    /// Counts a reader until the value is dropped.
    pub(crate) fn reader(self: &Arc<Self>) -> Reader {
        self.lock().readers += 1;
        Reader(Arc::clone(self))
    }

    pub(crate) fn has_reader(&self) -> bool {
        self.lock().readers > 0
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream that reads a log.
pub(crate) struct Reader(Arc<Log>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.lock().readers -= 1;
    }
}

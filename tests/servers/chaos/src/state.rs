//! The state that all transports share: script, journal and counters; and the messages of a client.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::journal::Journal;
use crate::script::Script;
use crate::source::Source;
use crate::tasks::Tasks;

pub(crate) struct State {
    pub(crate) source: Source,
    pub(crate) journal: Journal,
    /// The command line, for `args_dump`.
    pub(crate) shown: Vec<String>,
    pub(crate) sequence: AtomicU64,
    pub(crate) tasks: Tasks,
}

impl State {
    pub(crate) fn new(source: Source, journal: Journal, shown: Vec<String>) -> Self {
        Self {
            source,
            journal,
            shown,
            sequence: AtomicU64::new(0),
            tasks: Tasks::default(),
        }
    }

    pub(crate) fn script(&self) -> Arc<Script> {
        self.source.current()
    }
}

/// The progress of the legacy handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Step {
    #[default]
    None,
    Asked,
    Done,
    Needless,
}

/// The legacy handshake of a session.
#[derive(Debug, Default)]
pub(crate) struct Handshake(Mutex<Step>);

impl Handshake {
    /// A session that needs no handshake.
    pub(crate) fn needless() -> Self {
        Self(Mutex::new(Step::Needless))
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(*self.step(), Step::Done | Step::Needless)
    }

    pub(crate) fn ask(&self) {
        let mut step = self.step();
        if *step != Step::Needless {
            *step = Step::Asked;
        }
    }

    /// Ends the handshake if `initialize` came before.
    pub(crate) fn confirm(&self) {
        let mut step = self.step();
        if *step == Step::Asked {
            *step = Step::Done;
        }
    }

    fn step(&self) -> MutexGuard<'_, Step> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A parsed request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Value,
    /// Whether the transport says that the request is a modern one.
    pub(crate) marked_modern: bool,
    /// The number of the HTTP request that carried it.
    pub(crate) number: Option<u64>,
}

impl Request {
    /// Adds the number of the HTTP request to the details of a journal line.
    pub(crate) fn add_number(&self, details: &mut Value) {
        if let Some(number) = self.number {
            details["request"] = json!(number);
        }
    }
}

/// A message of the client.
pub(crate) enum Message {
    Request(Request),
    Notification {
        method: String,
        params: Value,
    },
    /// A response, or any other JSON.
    Other(Value),
}

impl Message {
    /// Reads a message; `None` if it is not JSON.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let message = serde_json::from_slice::<Value>(bytes).ok()?;
        let params = message.get("params").cloned().unwrap_or(Value::Null);
        Some(match (message.get("id"), message["method"].as_str()) {
            (Some(id), Some(method)) => Self::Request(Request {
                id: id.clone(),
                method: method.to_owned(),
                params,
                marked_modern: false,
                number: None,
            }),
            (None, Some(method)) => Self::Notification {
                method: method.to_owned(),
                params,
            },
            (_, None) => Self::Other(message),
        })
    }
}

/// Handles a notification of the client; returns the id of a request that it cancels.
pub(crate) fn notice(
    journal: &Journal,
    handshake: &Handshake,
    method: &str,
    params: &Value,
) -> Option<Value> {
    match method {
        "notifications/initialized" => {
            journal.write("initialized", json!({}));
            handshake.confirm();
            None
        }
        "notifications/cancelled" => {
            let details = json!({"id": params["requestId"], "reason": params["reason"]});
            journal.write("cancelled", details);
            Some(params["requestId"].clone())
        }
        other => {
            journal.write("notification", json!({"method": other}));
            None
        }
    }
}

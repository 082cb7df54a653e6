//! The shared state of the server's threads: session, calls in progress, journal and output. It parses messages
//! and passes requests to `eras`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::eras;
use crate::journal::Journal;
use crate::output::Output;
use crate::reply::{Outcome, subscribed};
use crate::script::{RpcError, Script};
use crate::source::Source;

/// Maximum number of requests with a thread.
const MAX_THREADS: usize = 256;

/// The progress of the legacy handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Handshake {
    #[default]
    None,
    Asked,
    Done,
}

#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) handshake: Handshake,
    /// The ids of the open `subscriptions/listen` requests that want tool changes.
    pub(crate) subscriptions: Vec<Value>,
}

/// A parsed request.
pub(crate) struct Request {
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Value,
}

pub(crate) struct Server {
    pub(crate) source: Source,
    pub(crate) journal: Journal,
    pub(crate) output: Output,
    /// The command line, for `args_dump`.
    pub(crate) shown: Vec<String>,
    pub(crate) sequence: AtomicU64,
    pub(crate) lists: AtomicU64,
    session: Mutex<Session>,
    // The key is the id as JSON, so that `1` and `"1"` are two requests.
    waiting: Mutex<HashMap<String, SyncSender<()>>>,
    threads: AtomicUsize,
}

impl Server {
    pub(crate) fn new(
        source: Source,
        journal: Journal,
        output: Output,
        shown: Vec<String>,
    ) -> Self {
        Self {
            source,
            journal,
            output,
            shown,
            sequence: AtomicU64::new(0),
            lists: AtomicU64::new(0),
            session: Mutex::default(),
            waiting: Mutex::default(),
            threads: AtomicUsize::new(0),
        }
    }

    pub(crate) fn script(&self) -> Arc<Script> {
        self.source.current()
    }

    pub(crate) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles one line from stdin.
    pub(crate) fn receive(self: &Arc<Self>, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            let head = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
            self.journal.write("not-json", json!({"line": head}));
            let error = json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "not JSON"}});
            return self.output.line(&error.to_string());
        };
        let params = message.get("params").cloned().unwrap_or(Value::Null);
        match (message.get("id"), message["method"].as_str()) {
            (Some(id), Some(method)) => {
                let request = Request {
                    id: id.clone(),
                    method: method.to_owned(),
                    params,
                };
                eras::answer(self, request);
            }
            (None, Some(method)) => self.notice(method, &params),
            (_, None) => self.journal.write("response", json!({"message": message})),
        }
    }

    fn notice(&self, method: &str, params: &Value) {
        match method {
            "notifications/initialized" => {
                self.journal.write("initialized", json!({}));
                let mut session = self.session();
                if session.handshake == Handshake::Asked {
                    session.handshake = Handshake::Done;
                }
            }
            "notifications/cancelled" => {
                let details = json!({"id": params["requestId"], "reason": params["reason"]});
                self.journal.write("cancelled", details);
                self.cancel(&params["requestId"]);
            }
            other => self.journal.write("notification", json!({"method": other})),
        }
    }

    /// Announces a changed tool list to every subscriber.
    pub(crate) fn notify_list_changed(&self) {
        const METHOD: &str = "notifications/tools/list_changed";
        let (legacy, subscriptions) = {
            let session = self.session();
            let legacy = session.handshake == Handshake::Done;
            (legacy, session.subscriptions.clone())
        };
        let notified = subscriptions.len() + usize::from(legacy);
        // Written to the journal first, so that a test that has received the message finds the line.
        self.journal
            .write("list-changed", json!({"notified": notified}));
        if legacy {
            let message = json!({"jsonrpc": "2.0", "method": METHOD});
            self.output.line(&message.to_string());
        }
        for subscription in &subscriptions {
            self.output
                .line(&subscribed(METHOD, subscription, json!({})));
        }
    }

    /// Runs the answer to a request on a separate thread, up to the maximum number.
    pub(crate) fn on_thread(self: &Arc<Self>, id: &Value, run: impl FnOnce() + Send + 'static) {
        let server = Arc::clone(self);
        let begun = self.threads.fetch_add(1, Ordering::SeqCst) < MAX_THREADS
            && std::thread::Builder::new()
                .spawn(move || {
                    run();
                    server.threads.fetch_sub(1, Ordering::SeqCst);
                })
                .is_ok();
        if !begun {
            self.threads.fetch_sub(1, Ordering::SeqCst);
            let error = Outcome::Error(RpcError::new(-32603, "too many requests at once"));
            self.output.line(&error.line(id));
        }
    }

    /// Makes the request cancellable until [`Self::stop_waiting`].
    pub(crate) fn start_waiting(&self, id: &Value) -> Receiver<()> {
        let (cancel, cancelled) = sync_channel(1);
        self.waiting().insert(id.to_string(), cancel);
        cancelled
    }

    pub(crate) fn stop_waiting(&self, id: &Value) {
        self.waiting().remove(&id.to_string());
    }

    fn cancel(&self, id: &Value) {
        self.session().subscriptions.retain(|open| open != id);
        if let Some(cancel) = self.waiting().get(&id.to_string()) {
            match cancel.try_send(()) {
                // Full: it was cancelled already. Disconnected: its wait has just ended.
                Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, SyncSender<()>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

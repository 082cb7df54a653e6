//! The transport stdio: one line per message, one session per process.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::eras::{self, Reaction};
use crate::faults::{Behaviour, Channel, Play};
use crate::output::{Output, complain};
use crate::reply::{LIST_CHANGED, Outcome, acknowledgement, list_changed, subscribed};
use crate::script::{RpcError, Script};
use crate::startup::close_stdout;
use crate::state::{Handshake, Message, Request, State, notice};
use crate::waiting::Waiting;

/// Maximum number of requests with a thread.
const MAX_THREADS: usize = 256;

pub(crate) struct Server {
    pub(crate) state: Arc<State>,
    output: Output,
    handshake: Handshake,
    /// The ids of the open `subscriptions/listen` requests that want tool changes.
    subscriptions: Mutex<Vec<Value>>,
    waiting: Waiting,
    threads: AtomicUsize,
}

impl Server {
    pub(crate) fn new(state: Arc<State>, output: Output) -> Self {
        Self {
            state,
            output,
            handshake: Handshake::default(),
            subscriptions: Mutex::default(),
            waiting: Waiting::default(),
            threads: AtomicUsize::new(0),
        }
    }

    /// Handles one line from stdin.
    pub(crate) fn receive(self: &Arc<Self>, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let journal = &self.state.journal;
        match Message::parse(line) {
            None => {
                let head = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
                journal.write("not-json", json!({"line": head}));
                let error =
                    json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "not JSON"}});
                self.output.line(&error.to_string());
            }
            Some(Message::Request(request)) => self.answer(request),
            Some(Message::Notification { method, params }) => {
                if let Some(id) = notice(journal, &self.handshake, &method, &params) {
                    self.subscriptions().retain(|open| *open != id);
                    self.waiting.cancel(&id.to_string());
                }
            }
            Some(Message::Other(message)) => journal.write("response", json!({"message": message})),
        }
    }

    /// Answers a request, now, later or not at all.
    fn answer(self: &Arc<Self>, request: Request) {
        let script = self.state.script();
        let reaction = eras::react(&self.state, &script, &self.handshake, &request);
        let (behaviour, outcome) = match reaction {
            Reaction::Silence => return,
            Reaction::Refuse(error) => {
                return self.output.line(&Outcome::Error(error).line(&request.id));
            }
            Reaction::Answer(outcome) => return self.output.line(&outcome.line(&request.id)),
            Reaction::Subscribe { wanted } => return self.subscribe(&request.id, wanted),
            Reaction::Play(behaviour, outcome) => (behaviour, outcome),
            Reaction::Announce(outcome) => {
                self.notify_list_changed();
                (Behaviour::Ok, outcome)
            }
        };
        let play = Play::new(&script, request);
        self.on_thread(play, behaviour, outcome);
    }

    /// Opens a subscription; it ends with `notifications/cancelled` for its id.
    fn subscribe(&self, id: &Value, wanted: bool) {
        // The lock is held until the acknowledgement is written, since it must be the first message.
        let mut subscriptions = self.subscriptions();
        self.output.line(&acknowledgement(id, wanted));
        if wanted {
            subscriptions.push(id.clone());
        }
    }

    /// Announces a changed tool list to every subscriber.
    pub(crate) fn notify_list_changed(&self) {
        let legacy = self.handshake.is_done();
        let subscriptions = self.subscriptions().clone();
        let notified = subscriptions.len() + usize::from(legacy);
        // Written to the journal first, so that a test that has received the message finds the line.
        let details = json!({"notified": notified});
        self.state.journal.write("list-changed", details);
        if legacy {
            self.output.line(&list_changed());
        }
        for subscription in &subscriptions {
            self.output
                .line(&subscribed(LIST_CHANGED, subscription, json!({})));
        }
    }

    /// Runs the answer to a request on a separate thread, up to the maximum number.
    fn on_thread(self: &Arc<Self>, play: Play, behaviour: Behaviour, outcome: Outcome) {
        let server = Arc::clone(self);
        let id = play.request.id.clone();
        let begun = self.threads.fetch_add(1, Ordering::SeqCst) < MAX_THREADS
            && std::thread::Builder::new()
                .spawn(move || {
                    let mut channel = Line {
                        server: &server,
                        id: &play.request.id,
                    };
                    play.run(&mut channel, &behaviour, outcome);
                    server.threads.fetch_sub(1, Ordering::SeqCst);
                })
                .is_ok();
        if !begun {
            self.threads.fetch_sub(1, Ordering::SeqCst);
            let error = Outcome::Error(RpcError::new(-32603, "too many requests at once"));
            self.output.line(&error.line(&id));
        }
    }

    fn subscriptions(&self) -> MutexGuard<'_, Vec<Value>> {
        self.subscriptions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer to one request on stdout. A reader that has gone also closed stdin, which ends the process; so
/// errors of writing are ignored.
struct Line<'a> {
    server: &'a Server,
    id: &'a Value,
}

impl Channel for Line<'_> {
    fn notification(&mut self, message: &str) {
        self.server.output.line(message);
    }

    fn raw(&mut self, bytes: &[u8]) -> bool {
        self.server.output.raw(bytes).is_ok()
    }

    fn answer(&mut self, bytes: &[u8]) {
        drop(self.server.output.raw(&[bytes, b"\n"].concat()));
    }

    fn drip(&mut self, bytes: &[u8], step: usize, pause: Duration) {
        let line = [bytes, b"\n"].concat();
        self.server.output.drip(&line, step, pause);
    }

    fn wait(&mut self, ms: u64) -> bool {
        let wait = Duration::from_millis(ms);
        let script: Arc<Script> = self.server.state.script();
        if script.ignore_cancel {
            std::thread::sleep(wait);
            return true;
        }
        let key = self.id.to_string();
        let cancelled = self.server.waiting.start(&key);
        let woken = cancelled.recv_timeout(wait);
        self.server.waiting.stop(&key);
        woken == Err(RecvTimeoutError::Timeout)
    }

    fn close(&mut self) {
        complain(&close_stdout());
    }
}

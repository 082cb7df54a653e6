//! MCP over HTTP, with raw HTTP/1.1 on threads and blocking sockets, so that a script can make any response
//! invalid. This file has the listener and the state of all connections; `settings` and `edit` are the reference
//! of the script's member `http`.

mod connection;
mod edit;
mod endless;
mod events;
mod exchange;
mod headers;
mod json;
mod live;
mod logged;
mod old_sse;
mod request;
mod rules;
mod sessions;
mod settings;
mod socket;
mod streamable;
mod writer;

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use self::events::{Event, Kind, Log};
use self::sessions::Sessions;
pub(crate) use self::settings::{Settings, Transport};
use crate::output::{Output, complain};
use crate::reply::{LIST_CHANGED, list_changed, subscribed};
use crate::state::State;
use crate::waiting::Waiting;
use crate::watch;

/// Maximum number of open connections, and of answers that are not tied to one.
const MAX_THREADS: usize = 2048;

pub(crate) struct HttpServer {
    pub(crate) state: Arc<State>,
    /// `http://127.0.0.1:PORT`.
    pub(crate) origin: String,
    pub(crate) sessions: Sessions,
    pub(crate) waiting: Waiting,
    pub(crate) requests: AtomicU64,
    subscriptions: Mutex<Vec<(Value, Arc<Log>)>>,
    threads: AtomicUsize,
}

/// Serves until stdin ends, so that the process does not survive the one that started it.
pub(crate) fn run(address: SocketAddr, state: Arc<State>, output: &Output) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("cannot listen at {address}: {error}");
    let listener = TcpListener::bind(address).map_err(wrong)?;
    let bound = listener.local_addr().map_err(wrong)?;
    let server = Arc::new(HttpServer {
        state: Arc::clone(&state),
        origin: format!("http://{bound}"),
        sessions: Sessions::default(),
        waiting: Waiting::default(),
        requests: AtomicU64::new(0),
        subscriptions: Mutex::default(),
        threads: AtomicUsize::new(0),
    });
    let watched = Arc::clone(&server);
    watch::start(&state, move || watched.announce_list_changed())?;
    let url = format!("{}{}", server.origin, state.script().http.path());
    std::thread::Builder::new()
        .spawn(move || accept(&server, &listener))
        .map_err(|error| format!("cannot start the listener: {error}"))?;
    output.line(&url);
    let mut buffer = [0; 1024];
    // An error of stdin ends the process like its end.
    while std::io::stdin()
        .read(&mut buffer)
        .is_ok_and(|read| read > 0)
    {}
    state.journal.write("eof", json!({}));
    Ok(())
}

fn accept(server: &Arc<HttpServer>, listener: &TcpListener) {
    for (connection, stream) in (1_u64..).zip(listener.incoming()) {
        match stream {
            Ok(stream) => {
                let shared = Arc::clone(server);
                server.on_thread(move || connection::serve(&shared, stream, connection));
            }
            Err(error) => complain(&format!("cannot accept a connection: {error}")),
        }
    }
}

impl HttpServer {
    /// Runs a task on a separate thread, up to the maximum number; more are dropped, and with them their
    /// connections.
    pub(crate) fn on_thread(self: &Arc<Self>, task: impl FnOnce() + Send + 'static) {
        let server = Arc::clone(self);
        let begun = self.threads.fetch_add(1, Ordering::SeqCst) < MAX_THREADS
            && std::thread::Builder::new()
                .spawn(move || {
                    task();
                    server.threads.fetch_sub(1, Ordering::SeqCst);
                })
                .is_ok();
        if !begun {
            self.threads.fetch_sub(1, Ordering::SeqCst);
            complain("too many connections and answers at once");
        }
    }

    /// Announces a changed tool list to every session with an open stream, and to every subscription.
    pub(crate) fn announce_list_changed(&self) {
        let mut streams = Vec::new();
        for session in self.sessions.all() {
            if session.handshake.is_done()
                && let Some(log) = session.standalone().filter(|log| log.has_reader())
            {
                streams.push(log);
            }
        }
        let subscriptions = self.subscriptions().clone();
        let notified = streams.len() + subscriptions.len();
        // Written to the journal first, so that a test that has received the message finds the line.
        let details = json!({"notified": notified});
        self.state.journal.write("list-changed", details);
        for log in streams {
            log.push(Event::new(Kind::Message, list_changed()));
        }
        for (id, log) in subscriptions {
            let message = subscribed(LIST_CHANGED, &id, json!({}));
            log.push(Event::new(Kind::Message, message));
        }
    }

    /// Adds a subscription until the value is dropped.
    pub(crate) fn subscribe<'a>(&'a self, id: &Value, log: &Arc<Log>) -> Subscription<'a> {
        self.subscriptions().push((id.clone(), Arc::clone(log)));
        Subscription {
            server: self,
            log: Arc::clone(log),
        }
    }

    fn subscriptions(&self) -> MutexGuard<'_, Vec<(Value, Arc<Log>)>> {
        self.subscriptions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open subscription.
pub(crate) struct Subscription<'a> {
    server: &'a HttpServer,
    log: Arc<Log>,
}

impl Drop for Subscription<'_> {
    fn drop(&mut self) {
        let mut subscriptions = self.server.subscriptions();
        subscriptions.retain(|(_, log)| !Arc::ptr_eq(log, &self.log));
    }
}

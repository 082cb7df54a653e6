//! The transport HTTP+SSE of 2024-11-05: GET opens a stream, whose first event is the address for messages; a POST
//! is answered 202, and the reply is an event of the stream.

use std::sync::Arc;

use serde_json::json;

use super::edit::Edit;
use super::events;
use super::exchange::Exchange;
use super::live::begin_stream;
use super::logged::{Copy, Logged};
use super::sessions::Session;
use super::socket::Stop;
use super::writer::Head;
use crate::eras::{self, Reaction};
use crate::faults::{Behaviour, Play};
use crate::reply::Outcome;
use crate::state::{Message, Request, notice};

/// Handles a request; `edit` has the faults of the reply on the stream.
pub(crate) fn handle(
    exchange: &Exchange<'_>,
    message: Option<Message>,
    edit: Option<Arc<Edit>>,
) -> Result<(), Stop> {
    let request = exchange.request;
    let is_stream = request.path() == exchange.settings().path();
    match (request.method.as_str(), is_stream, request.query("session")) {
        ("GET", true, _) => open(exchange),
        ("POST", _, Some(id)) => match exchange.server.sessions.find(id, &exchange.script) {
            Some(session) => receive(exchange, &session, message, edit),
            None => exchange.text(404, "the session is not known"),
        },
        (_, true, _) => exchange.send(Head::new(405, &[("Allow", "GET")]), Vec::new()),
        _ => exchange.status(404),
    }
}

/// Opens a session, which ends with its stream.
fn open(exchange: &Exchange<'_>) -> Result<(), Stop> {
    let Some(session) = exchange.open_session() else {
        return exchange.status(503);
    };
    let details = json!({"session": session.id, "request": exchange.number});
    exchange.server.state.journal.write("stream", details);
    let sent = stream(exchange, &session);
    exchange.server.sessions.end(&session.id);
    sent
}

fn stream(exchange: &Exchange<'_>, session: &Session) -> Result<(), Stop> {
    let log = session.open_standalone();
    let _reader = log.reader();
    let options = exchange.edit.events(&exchange.settings().events);
    let mut writer = exchange.stream(None)?;
    if let Some(endpoint) = &exchange.settings().endpoint {
        let endpoint = exchange.fill(endpoint);
        let event = events::text(&options, Some("endpoint"), None, endpoint.as_bytes());
        writer.body(&event)?;
    }
    begin_stream(exchange, &mut writer, &options, Some("message"), "0-0")?;
    let copy = Copy {
        exchange,
        log: &log,
        read: 0,
        events: options,
        name: Some("message"),
        session: Some(session),
    };
    copy.run(&mut writer)?;
    writer.finish()
}

fn receive(
    exchange: &Exchange<'_>,
    session: &Arc<Session>,
    message: Option<Message>,
    edit: Option<Arc<Edit>>,
) -> Result<(), Stop> {
    let server = exchange.server;
    let journal = &server.state.journal;
    match message {
        None => return exchange.text(400, "not JSON"),
        Some(Message::Request(request)) => {
            let sent = exchange.text(202, "Accepted");
            answer(exchange, session, request, edit);
            return sent;
        }
        Some(Message::Notification { method, params }) => {
            if let Some(id) = notice(journal, &session.handshake, &method, &params) {
                server.waiting.cancel(&format!("{} {id}", session.id));
            }
        }
        Some(Message::Other(message)) => journal.write("response", json!({"message": message})),
    }
    exchange.text(202, "Accepted")
}

fn answer(
    exchange: &Exchange<'_>,
    session: &Arc<Session>,
    request: Request,
    edit: Option<Arc<Edit>>,
) {
    let server = exchange.server;
    let Some(log) = session.standalone() else {
        return;
    };
    let reaction = eras::react(
        &server.state,
        &exchange.script,
        &session.handshake,
        &request,
    );
    let (behaviour, outcome) = match reaction {
        // A modern request is not possible here.
        Reaction::Silence | Reaction::Subscribe { .. } => return,
        Reaction::Refuse(error) => (Behaviour::Ok, Outcome::Error(error)),
        Reaction::Answer(outcome) => (Behaviour::Ok, outcome),
        Reaction::Play(behaviour, outcome) => (behaviour, outcome),
        Reaction::Announce(outcome) => {
            server.announce_list_changed();
            (Behaviour::Ok, outcome)
        }
    };
    let mut channel = Logged {
        server: Arc::clone(server),
        log,
        cancel_key: format!("{} {}", session.id, request.id),
        edit,
    };
    let play = Play::new(&exchange.script, request);
    server.on_thread(move || {
        play.run(&mut channel, &behaviour, outcome);
    });
}

//! Streamable HTTP, both eras: POST with a message, GET for a stream, DELETE for the end of a session.

use std::sync::Arc;

use serde_json::{Value, json};

use super::edit::Form;
use super::events::{Event, Kind, Log};
use super::exchange::Exchange;
use super::headers;
use super::live::{Live, begin_stream};
use super::logged::{Copy, Logged};
use super::sessions::Session;
use super::socket::Stop;
use super::writer::Head;
use crate::eras::{self, Reaction};
use crate::faults::{Behaviour, Channel as _, Play, Played};
use crate::reply::{Outcome, acknowledgement};
use crate::script::{Era, RpcError};
use crate::state::{Handshake, Message, Request, notice};

pub(crate) fn handle(exchange: &Exchange<'_>, message: Option<Message>) -> Result<(), Stop> {
    let settings = exchange.settings();
    if exchange.request.path() != settings.path() {
        return exchange.status(404);
    }
    let method = exchange.request.method.as_str();
    if settings.check_headers
        && matches!(method, "POST" | "GET")
        && let Err(status) = headers::check_media(exchange.request)
    {
        return exchange.status(status);
    }
    match method {
        "POST" => post(exchange, message),
        "GET" if exchange.script.era != Era::Modern => get(exchange),
        "DELETE" if exchange.script.era != Era::Modern => delete(exchange),
        _ => exchange.send(Head::new(405, &[("Allow", "POST")]), Vec::new()),
    }
}

fn post(exchange: &Exchange<'_>, message: Option<Message>) -> Result<(), Stop> {
    let journal = &exchange.server.state.journal;
    match message {
        None => exchange.error(400, RpcError::new(-32700, "not JSON")),
        Some(Message::Request(request)) => post_request(exchange, request),
        Some(Message::Notification { method, params }) => {
            let session = match exchange.script.era {
                Era::Modern => None,
                // A modern client sends no notification.
                _ => match find_session(exchange) {
                    Ok(session) => Some(session),
                    Err(sent) => return sent,
                },
            };
            let none = Handshake::default();
            let handshake = session.as_ref().map_or(&none, |session| &session.handshake);
            let cancelled = notice(journal, handshake, &method, &params);
            if let (Some(id), Some(session)) = (cancelled, session) {
                exchange.server.waiting.cancel(&cancel_key(&session, &id));
            }
            exchange.status(202)
        }
        Some(Message::Other(message))
            if is_response(&message) && exchange.script.era != Era::Modern =>
        {
            if let Err(sent) = find_session(exchange) {
                return sent;
            }
            journal.write("response", json!({"message": message}));
            exchange.status(202)
        }
        Some(Message::Other(_)) => {
            exchange.error(400, RpcError::new(-32600, "not a single message"))
        }
    }
}

fn is_response(message: &Value) -> bool {
    message.get("id").is_some()
        && (message.get("result").is_some() || message.get("error").is_some())
}

fn post_request(exchange: &Exchange<'_>, request: Request) -> Result<(), Stop> {
    let script = &exchange.script;
    if eras::is_modern(script, &request) {
        if exchange.settings().check_headers && !eras::is_legacy_only(&request.method) {
            let checked = headers::check_modern(script, exchange.request, &request);
            if let Err(error) = checked {
                return exchange.error(400, error);
            }
        }
        let id = request.id.clone();
        let sent = answer(exchange, request, None);
        if sent == Err(Stop::ClientClosed) {
            let details = json!({"id": id, "by": "disconnect", "request": exchange.number});
            exchange.server.state.journal.write("cancelled", details);
        }
        return sent;
    }
    let has_session = exchange.request.header(headers::SESSION).is_some();
    if eras::has_modern_frame(&request) && !has_session {
        let is_probe = request.method == "server/discover";
        if !is_probe || script.era == Era::Legacy {
            return refuse_probe(exchange, &request);
        }
        return answer(exchange, request, None);
    }
    let session = if request.method == "initialize" && exchange.settings().sessions {
        match exchange.open_session() {
            Some(session) => session,
            None => return exchange.status(503),
        }
    } else {
        match find_session(exchange) {
            Ok(session) => session,
            Err(sent) => return sent,
        }
    };
    answer(exchange, request, Some(&session))
}

/// Answers a modern request on a legacy server.
fn refuse_probe(exchange: &Exchange<'_>, request: &Request) -> Result<(), Stop> {
    let details = json!({"id": request.id, "request": exchange.number});
    exchange.server.state.journal.write("discover", details);
    let probe = exchange.settings().probe;
    if probe.error {
        exchange.error(probe.status, exchange.script.probe_error.clone())
    } else {
        exchange.status(probe.status)
    }
}

/// The session of a request that is not `initialize`, or the result of the response that refuses it.
fn find_session(exchange: &Exchange<'_>) -> Result<Arc<Session>, Result<(), Stop>> {
    let sessions = &exchange.server.sessions;
    let version = exchange.request.header(headers::VERSION);
    if exchange.settings().check_headers
        && version.is_some_and(|version| !exchange.script.is_legacy_version(version))
    {
        let error = RpcError::new(-32600, "the protocol version is not supported");
        return Err(exchange.error(400, error));
    }
    if !exchange.settings().sessions {
        return Ok(Arc::clone(sessions.shared()));
    }
    let Some(id) = exchange.request.only(headers::SESSION) else {
        let error = RpcError::new(-32600, "a session is required: send `initialize` first");
        return Err(exchange.error(400, error));
    };
    // The code that the official library sends with this status.
    let unknown = || exchange.error(404, RpcError::new(-32001, "the session is not known"));
    let session = sessions.find(id, &exchange.script);
    session.ok_or_else(unknown)
}

fn answer(
    exchange: &Exchange<'_>,
    request: Request,
    session: Option<&Arc<Session>>,
) -> Result<(), Stop> {
    let server = exchange.server;
    let none = Handshake::default();
    let handshake = session.map_or(&none, |session| &session.handshake);
    let reaction = eras::react(&server.state, &exchange.script, handshake, &request);
    let (behaviour, outcome) = match reaction {
        Reaction::Silence => {
            let live = Live::begin(exchange, None, None);
            return live.finish(Played::Unanswered);
        }
        Reaction::Refuse(error) => {
            let modern = eras::is_modern(&exchange.script, &request);
            let status = match (modern, error.code) {
                (true, -32601) => 404,
                (false, -32601) => 200,
                _ => 400,
            };
            return exchange.error(status, error);
        }
        Reaction::Subscribe { wanted } => return subscribe(exchange, &request.id, wanted),
        Reaction::Answer(outcome) => (Behaviour::Ok, outcome),
        Reaction::Play(behaviour, outcome) => (behaviour, outcome),
        Reaction::Announce(outcome) => {
            server.announce_list_changed();
            (Behaviour::Ok, outcome)
        }
    };
    let settings = exchange.settings();
    let is_first = request.method == "initialize" && settings.sessions;
    let minted = session
        .filter(|_| is_first)
        .map(|session| session.id.as_str());
    let key = session.map(|session| cancel_key(session, &request.id));
    let play = Play::new(&exchange.script, request);
    let edit = &exchange.edit;
    let is_resumable = edit.form(settings.reply) == Form::Sse && edit.events(&settings.events).ids;
    if let Some(session) = session.filter(|_| is_resumable) {
        let log = session.open_stream();
        let channel = logged(exchange, session, Arc::clone(&log), &play);
        server.on_thread(move || play_into_log(&play, channel, &behaviour, outcome));
        return copy(exchange, &log, 0, minted, None);
    }
    let mut live = Live::begin(exchange, minted, key);
    let played = play.run(&mut live, &behaviour, outcome);
    live.finish(played)
}

fn logged(exchange: &Exchange<'_>, session: &Session, log: Arc<Log>, play: &Play) -> Logged {
    Logged {
        server: Arc::clone(exchange.server),
        log,
        cancel_key: cancel_key(session, &play.request.id),
        edit: None,
    }
}

/// Runs an answer whose stream ends with it.
fn play_into_log(play: &Play, mut channel: Logged, behaviour: &Behaviour, outcome: Outcome) {
    if play.run(&mut channel, behaviour, outcome) != Played::Unanswered {
        channel.close();
    }
}

fn cancel_key(session: &Session, id: &Value) -> String {
    format!("{} {id}", session.id)
}

/// Copies a log to the client as the response.
fn copy(
    exchange: &Exchange<'_>,
    log: &Arc<Log>,
    read: u64,
    minted: Option<&str>,
    session: Option<&Session>,
) -> Result<(), Stop> {
    let _reader = log.reader();
    let mut default = exchange.settings().events.clone();
    if session.is_some() {
        // A stream of GET would end again and again otherwise.
        default.resume_after = None;
    }
    let events = exchange.edit.events(&default);
    if let Some(session) = session {
        let details = json!({
            "session": session.id, "stream": log.number, "read": read, "request": exchange.number,
        });
        exchange.server.state.journal.write("stream", details);
    }
    let mut writer = exchange.stream(minted)?;
    let id = format!("{}-{read}", log.number);
    begin_stream(exchange, &mut writer, &events, None, &id)?;
    let copy = Copy {
        exchange,
        log,
        read,
        events,
        name: None,
        session,
    };
    copy.run(&mut writer)?;
    writer.finish()
}

fn get(exchange: &Exchange<'_>) -> Result<(), Stop> {
    if let Some(status) = exchange.settings().get {
        return exchange.status(status);
    }
    let session = match find_session(exchange) {
        Ok(session) => session,
        Err(sent) => return sent,
    };
    let (log, read) = match exchange.request.header(headers::LAST_EVENT) {
        None => (session.open_standalone(), 0),
        Some(id) => match session.resumed(id) {
            Some(resumed) => resumed,
            None => return exchange.text(400, "the event is not known"),
        },
    };
    copy(exchange, &log, read, None, Some(&session))
}

fn delete(exchange: &Exchange<'_>) -> Result<(), Stop> {
    let session = match find_session(exchange) {
        Ok(session) => session,
        Err(sent) => return sent,
    };
    let status = exchange.settings().delete;
    if (200..300).contains(&status) {
        let details = json!({"session": session.id, "request": exchange.number});
        exchange.server.state.journal.write("session-end", details);
        exchange.server.sessions.end(&session.id);
    }
    exchange.status(status)
}

/// Opens a subscription, which ends with its response.
fn subscribe(exchange: &Exchange<'_>, id: &Value, wanted: bool) -> Result<(), Stop> {
    let log = Log::new(exchange.number);
    log.push(Event::new(Kind::Message, acknowledgement(id, wanted)));
    let _subscription = wanted.then(|| exchange.server.subscribe(id, &log));
    let events = exchange.edit.events(&exchange.settings().events);
    let mut writer = exchange.stream(None)?;
    let first = format!("{}-0", log.number);
    begin_stream(exchange, &mut writer, &events, None, &first)?;
    let copy = Copy {
        exchange,
        log: &log,
        read: 0,
        events: events.clone(),
        name: None,
        session: None,
    };
    copy.run(&mut writer)?;
    writer.finish()
}

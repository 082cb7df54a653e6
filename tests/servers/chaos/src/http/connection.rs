//! One connection: its requests one after the other, their lines of the journal, and the rule for each.
//!
//! The journal has `http` for each request when it was read, with all its headers and the time, so that a request
//! that is still open is there as well; `http-end` of the same number when it has ended, with the status and
//! `answered`, `cut-off` (by the script) or `client-closed`; and `fault` if a rule was applied. Lines of `call`,
//! `list` and other events name the number as `request`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::HttpServer;
use super::edit::{Edit, End};
use super::exchange::Exchange;
use super::headers;
use super::request::{self, HttpRequest, Incoming};
use super::rules::{Target, select};
use super::settings::Transport;
use super::socket::{Socket, Stop};
use super::writer::Head;
use super::{old_sse, streamable};
use crate::script::Script;
use crate::state::Message;

/// Serves a connection until one side ends it.
pub(crate) fn serve(server: &Arc<HttpServer>, stream: TcpStream, connection: u64) {
    let journal = &server.state.journal;
    journal.write("connected", json!({"connection": connection}));
    let socket = Socket::new(stream);
    loop {
        match request::read(&socket) {
            Incoming::End => break,
            Incoming::Refused(status, reason) => {
                let details = json!({"connection": connection, "reason": reason});
                journal.write("bad-request", details);
                let response = format!(
                    "HTTP/1.1 {status} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                );
                let (Ok(()) | Err(_)) = socket.write(response.as_bytes());
                break;
            }
            Incoming::Request(request) => {
                if !exchange(server, &socket, &request, connection) {
                    break;
                }
            }
        }
    }
    drop(socket);
    journal.write("disconnected", json!({"connection": connection}));
}

/// Answers a request; returns whether another one can follow on the connection.
fn exchange(
    server: &Arc<HttpServer>,
    socket: &Socket,
    request: &HttpRequest,
    connection: u64,
) -> bool {
    let number = server.requests.fetch_add(1, Ordering::SeqCst) + 1;
    let script = server.state.script();
    let message = read_message(&script, request, number);
    let mut target = target(request, message.as_ref());
    let id = match &message {
        Some(Message::Request(request)) => request.id.clone(),
        _ => Value::Null,
    };
    let session = request.header(headers::SESSION);
    let session = session.or_else(|| request.query("session"));
    server.state.journal.write(
        "http",
        json!({
            "request": number,
            "at_ms": now_ms(),
            "connection": connection,
            "method": request.method,
            "path": request.target,
            "headers": shown_headers(request),
            "rpc_method": target.method,
            "rpc_id": id,
            "tool": target.tool,
            "session": session,
            "body_bytes": request.body.len(),
        }),
    );
    let edit = find_rule(server, &script, &target, number);
    let resets = edit
        .as_ref()
        .is_some_and(|edit| edit.end == Some(End::Reset));
    if !resets {
        request::take_last_byte(socket);
    }
    target.reply = true;
    let reply = match script.http.transport {
        Transport::OldSse if target.method.is_some() => find_rule(server, &script, &target, number),
        _ => None,
    };
    let exchange = Exchange {
        server,
        socket,
        request,
        number,
        id,
        edit: edit.unwrap_or_default(),
        session: RefCell::new(session.map(str::to_owned)),
        status: Cell::new(None),
        script,
    };
    let sent = answer(&exchange, message, reply);
    let end = match sent {
        Ok(()) | Err(Stop::Closed) => "answered",
        Err(Stop::CutOff) => "cut-off",
        Err(Stop::ClientClosed) => "client-closed",
    };
    let details = json!({
        "request": number, "connection": connection, "status": exchange.status.get(), "end": end,
    });
    server.state.journal.write("http-end", details);
    sent.is_ok() && request.keeps_alive() && !resets
}

fn answer(
    exchange: &Exchange<'_>,
    message: Option<Message>,
    reply: Option<Arc<Edit>>,
) -> Result<(), Stop> {
    if !exchange.edit.executes() {
        return exchange.replacement();
    }
    let settings = exchange.settings();
    let request = exchange.request;
    if settings.check_headers
        && let Err(status) = headers::check_origin(request)
    {
        return exchange.status(status);
    }
    let mut required = settings.require_headers.iter();
    if required.any(|(name, value)| request.only(name) != Some(value.as_str())) {
        let head = Head::new(401, &[("WWW-Authenticate", "Bearer")]);
        return exchange.send(head, Vec::new());
    }
    match settings.transport {
        Transport::Streamable => streamable::handle(exchange, message),
        Transport::OldSse => old_sse::handle(exchange, message, reply),
    }
}

/// The message of a POST, if it is JSON.
fn read_message(script: &Script, request: &HttpRequest, number: u64) -> Option<Message> {
    if request.method != "POST" {
        return None;
    }
    let mut message = Message::parse(&request.body)?;
    if let Message::Request(parsed) = &mut message {
        let version = request.header(headers::VERSION);
        parsed.number = Some(number);
        parsed.marked_modern = request.header(headers::SESSION).is_none()
            && version.is_some_and(|version| !script.is_legacy_version(version));
    }
    Some(message)
}

fn target(request: &HttpRequest, message: Option<&Message>) -> Target {
    let (method, tool) = match message {
        Some(Message::Request(request)) => {
            let name = request.params["name"].as_str();
            let tool = name.filter(|_| request.method == "tools/call");
            (Some(request.method.clone()), tool.map(str::to_owned))
        }
        Some(Message::Notification { method, .. }) => (Some(method.clone()), None),
        Some(Message::Other(_)) | None => (None, None),
    };
    Target {
        http_method: Some(request.method.clone()),
        path: Some(request.path().to_owned()),
        method,
        tool,
        resume: Some(request.header(headers::LAST_EVENT).is_some()),
        reply: false,
    }
}

fn find_rule(
    server: &HttpServer,
    script: &Script,
    target: &Target,
    number: u64,
) -> Option<Arc<Edit>> {
    let (rule, edit) = select(&script.http.rules, target)?;
    let details = json!({"request": number, "rule": rule});
    server.state.journal.write("fault", details);
    Some(edit)
}

/// The time in milliseconds, comparable with the time of other processes.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// The headers by name: a text, or a list of all values if a header is repeated.
fn shown_headers(request: &HttpRequest) -> Value {
    let mut shown: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, value) in &request.headers {
        shown.entry(name).or_default().push(value);
    }
    let show = |(name, values): (&str, Vec<&str>)| {
        let value = match values.as_slice() {
            [value] => json!(value),
            values => json!(values),
        };
        (name.to_owned(), value)
    };
    Value::Object(shown.into_iter().map(show).collect())
}

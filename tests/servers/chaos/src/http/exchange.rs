//! One HTTP request with the rule for it, and its response.

use std::cell::{Cell, RefCell};
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::read::GzEncoder;
use serde_json::{Value, json};

use super::HttpServer;
use super::edit::{Body, Edit, End};
use super::request::HttpRequest;
use super::sessions::Session;
use super::settings::Settings;
use super::socket::{Socket, Stop};
use super::writer::{Head, Writer};
use crate::reply::Outcome;
use crate::script::{RpcError, Script};

pub(crate) struct Exchange<'a> {
    pub(crate) server: &'a Arc<HttpServer>,
    pub(crate) script: Arc<Script>,
    pub(crate) socket: &'a Socket,
    pub(crate) request: &'a HttpRequest,
    /// Counts the requests of the process.
    pub(crate) number: u64,
    /// The id of the JSON-RPC request, or null.
    pub(crate) id: Value,
    pub(crate) edit: Arc<Edit>,
    /// The session of the request, for texts of the script.
    pub(crate) session: RefCell<Option<String>>,
    /// The status that was written.
    pub(crate) status: Cell<Option<u16>>,
}

impl Exchange<'_> {
    pub(crate) fn settings(&self) -> &Settings {
        &self.script.http
    }

    /// Opens a session for the client; `None` if there are too many.
    pub(crate) fn open_session(&self) -> Option<Arc<Session>> {
        let session = self.server.sessions.open(&self.script)?;
        *self.session.borrow_mut() = Some(session.id.clone());
        let details = json!({"session": session.id, "request": self.number});
        self.server.state.journal.write("session-start", details);
        Some(session)
    }

    /// A text of the script with its variables replaced.
    pub(crate) fn fill(&self, text: &str) -> String {
        let session = self.session.borrow().clone().unwrap_or_default();
        let mut text = text
            .replace("$URL", &format!("$ORIGIN{}", self.settings().path()))
            .replace("$ORIGIN", &self.server.origin)
            .replace("$ID", &self.id.to_string())
            .replace("$SESSION", &session);
        if text.contains("$OTHER_SESSION") {
            let other = self.server.sessions.other(&session);
            text = text.replace("$OTHER_SESSION", &other);
        }
        text
    }

    /// Sends a response without a body.
    pub(crate) fn status(&self, status: u16) -> Result<(), Stop> {
        self.send(Head::new(status, &[]), Vec::new())
    }

    /// Sends a text that is not JSON.
    pub(crate) fn text(&self, status: u16, text: &str) -> Result<(), Stop> {
        let head = Head::new(status, &[("Content-Type", "text/plain")]);
        self.send(head, text.into())
    }

    /// Sends a JSON-RPC error.
    pub(crate) fn error(&self, status: u16, error: RpcError) -> Result<(), Stop> {
        let head = Head::new(status, &[("Content-Type", "application/json")]);
        self.send(head, Outcome::Error(error).line(&self.id).into())
    }

    /// Sends the response of a rule whose request is not executed.
    pub(crate) fn replacement(&self) -> Result<(), Stop> {
        let kind = match &self.edit.body {
            Some(Body::Text(text)) if !text.starts_with('{') => "text/plain",
            _ => "application/json",
        };
        self.send(Head::new(200, &[("Content-Type", kind)]), Vec::new())
    }

    /// Sends a response with the faults of the rule.
    pub(crate) fn send(&self, mut head: Head, body: Vec<u8>) -> Result<(), Stop> {
        let edit = &self.edit;
        self.raw()?;
        let mut body = self.replaced(body);
        if let Some(padding) = edit.gzip_bomb {
            let (before, after) = self.padded_answer();
            let padding = std::io::repeat(b'x').take(padding);
            body = packed(before.as_bytes().chain(padding).chain(after.as_bytes()))?;
        } else if edit.gzip {
            body = packed(body.as_slice())?;
        }
        if edit.gzip || edit.gzip_bomb.is_some() {
            let header = ("Content-Encoding".to_owned(), "gzip".to_owned());
            head.headers.push(header);
        }
        let endless = edit.endless.as_ref();
        let grows = endless.is_some_and(super::endless::Endless::is_in_body);
        let length = (!grows).then_some(body.len() as u64);
        let mut writer = Writer::begin(self, head, length)?;
        if writer.endless_body(endless)? {
            writer.body(&body)?;
        }
        writer.finish()
    }

    /// Begins a stream of events.
    pub(crate) fn stream(&self, session: Option<&str>) -> Result<Writer<'_>, Stop> {
        self.raw()?;
        let mut headers = vec![
            ("Content-Type", "text/event-stream"),
            ("Cache-Control", "no-cache"),
        ];
        if let Some(session) = session {
            headers.push(("Mcp-Session-Id", session));
        }
        Writer::begin(self, Head::new(200, &headers), None)
    }

    /// The answer, or the body of the rule in its place.
    pub(crate) fn replaced(&self, answer: Vec<u8>) -> Vec<u8> {
        match &self.edit.body {
            None => answer,
            Some(Body::Text(text)) => self.fill(text).into(),
            Some(Body::Error(error)) => Outcome::Error(error.clone()).line(&self.id).into(),
        }
    }

    /// Ends the connection in the middle of a response, as the rule says.
    pub(crate) fn cut_off(&self) -> Stop {
        match self.edit.end {
            None | Some(End::Close | End::Reset) => Stop::CutOff,
            Some(End::Hang) => self.socket.wait_for_close(),
        }
    }

    /// Sends all bytes of a rule that has them, which ends the connection.
    fn raw(&self) -> Result<(), Stop> {
        let Some(raw) = &self.edit.raw else {
            return Ok(());
        };
        self.socket.pause(self.edit.delay_ms)?;
        match self.edit.body_drip {
            None => self.socket.write(raw)?,
            Some(drip) => {
                let pause = Duration::from_millis(drip.ms);
                self.socket.drip(raw, drip.bytes, pause)?;
            }
        }
        Err(match self.edit.end {
            None | Some(End::Close | End::Reset) => Stop::Closed,
            Some(End::Hang) => self.socket.wait_for_close(),
        })
    }

    /// The parts of a valid answer before and after its padding.
    fn padded_answer(&self) -> (String, String) {
        let result = r#"{"content":[{"type":"text","text":"@"}],"resultType":"complete"}"#;
        let line = Outcome::Result(result.to_owned()).line(&self.id);
        match line.split_once('@') {
            Some((before, after)) => (before.to_owned(), after.to_owned()),
            None => (line, String::new()),
        }
    }
}

/// The bytes in gzip.
fn packed(bytes: impl Read) -> Result<Vec<u8>, Stop> {
    let mut packed = Vec::new();
    let read = GzEncoder::new(bytes, Compression::best()).read_to_end(&mut packed);
    read.map(|_| packed).map_err(|_| Stop::CutOff)
}

//! The member `http` of a script: the transport, the form of its answers, its sessions, and the rules for faults.
//! All members are optional.

use serde_json::Value;

use super::edit::{Events, Form};
use super::json::{flag, members, number, status, text, unknown};
use super::rules::Rule;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Streamable HTTP: one path for POST, GET and DELETE.
    Streamable,
    /// HTTP+SSE of 2024-11-05: a stream, and another path for messages.
    OldSse,
}

/// The answer of a legacy server to a modern request without a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) status: u16,
    /// Whether the body is the JSON-RPC error `probe_error`; otherwise it is empty.
    pub(crate) error: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// `streamable` or `sse`, which is the older transport and always legacy.
    pub(crate) transport: Transport,
    /// The path of the printed URL: `/mcp`, or `/sse` for the older transport.
    path: Option<String>,
    /// The event `endpoint` of the older transport, in which `$SESSION` is the session, `$ORIGIN` the origin of the
    /// server; `null` for no such event.
    pub(crate) endpoint: Option<String>,
    /// `json` or `sse`: the form of answers.
    pub(crate) reply: Form,
    /// The events of all streams.
    pub(crate) events: Events,
    /// Whether a legacy server mints sessions; otherwise all clients share one without an id.
    pub(crate) sessions: bool,
    /// Another number ends all sessions that exist.
    pub(crate) end_sessions: u64,
    pub(crate) probe: Probe,
    /// `stream`, or the status that answers GET.
    pub(crate) get: Option<u16>,
    /// The status that answers DELETE; 2xx ends the session.
    pub(crate) delete: u16,
    /// Whether the headers of a request are checked.
    pub(crate) check_headers: bool,
    /// Headers without which a request is answered 401, and their values.
    pub(crate) require_headers: Vec<(String, String)>,
    /// The faults; the first rule that matches a request is applied.
    pub(crate) rules: Vec<Rule>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            transport: Transport::Streamable,
            path: None,
            endpoint: Some("/messages?session=$SESSION".to_owned()),
            reply: Form::Json,
            events: Events::default(),
            sessions: true,
            end_sessions: 0,
            probe: Probe {
                status: 400,
                error: true,
            },
            get: None,
            delete: 204,
            check_headers: true,
            require_headers: Vec::new(),
            rules: Vec::new(),
        }
    }
}

impl Settings {
    pub(crate) fn parse(value: &Value) -> Result<Self, String> {
        let mut settings = Self::default();
        members(value, |name, value| settings.set(name, value))?;
        Ok(settings)
    }

    pub(crate) fn path(&self) -> &str {
        match (&self.path, self.transport) {
            (Some(path), _) => path,
            (None, Transport::Streamable) => "/mcp",
            (None, Transport::OldSse) => "/sse",
        }
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        match name {
            "transport" => {
                self.transport = match value.as_str() {
                    Some("streamable") => Transport::Streamable,
                    Some("sse") => Transport::OldSse,
                    _ => return Err("must be streamable or sse".to_owned()),
                }
            }
            "path" => self.path = Some(text(value)?),
            "endpoint" if value.is_null() => self.endpoint = None,
            "endpoint" => self.endpoint = Some(text(value)?),
            "reply" => self.reply = Form::parse(value)?,
            "events" => self.events = Events::default().with(value)?,
            "sessions" => self.sessions = flag(value)?,
            "end_sessions" => self.end_sessions = number(value)?,
            "probe" => self.probe = Probe::parse(value)?,
            "get" if *value == "stream" => self.get = None,
            "get" => self.get = Some(status(value)?),
            "delete" => self.delete = status(value)?,
            "check_headers" => self.check_headers = flag(value)?,
            "require_headers" => {
                self.require_headers.clear();
                members(value, |name, value| {
                    let name = name.to_ascii_lowercase();
                    self.require_headers.push((name, text(value)?));
                    Ok(())
                })?;
            }
            "rules" => {
                let rules = value.as_array().ok_or("must be a list")?.iter();
                self.rules = rules.map(Rule::parse).collect::<Result<_, _>>()?;
            }
            _ => return unknown(),
        }
        Ok(())
    }
}

impl Probe {
    fn parse(value: &Value) -> Result<Self, String> {
        let mut probe = Self {
            status: 400,
            error: false,
        };
        members(value, |name, value| {
            match name {
                "status" => probe.status = status(value)?,
                "error" => probe.error = flag(value)?,
                _ => return unknown(),
            }
            Ok(())
        })?;
        Ok(probe)
    }
}

//! The fault of a rule, `do`: a name or an object whose members change one response. Members can be combined. The
//! names are short forms: `hang` sends nothing, `close` and `reset` end the connection before the head; all three
//! execute the request.

use serde_json::Value;

use super::endless::Endless;
use super::json::{bytes, flag, members, number, size, status, text, texts, unknown};
use crate::script::RpcError;

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Sse,
}

/// The body in place of the answer.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// A text in which `$ID` is the id of the request.
    Text(String),
    /// This JSON-RPC error.
    Error(RpcError),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    Exact(u64),
    /// More or less than the real length.
    Add(i64),
}

/// The frame of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    Length,
    Chunked,
    /// Until the end of the connection.
    Close,
    /// Content-Length and chunks.
    Both,
    /// A chunk whose size is not a number.
    BadChunk,
    /// A chunk whose size does not fit into 64 bits.
    HugeChunk,
    /// No last chunk before the end of the connection.
    NoLastChunk,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Drip {
    pub(crate) bytes: usize,
    pub(crate) ms: u64,
}

/// The place at which a response breaks off.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// After this many bytes of the head; without a number, after half of it.
    Head(Option<usize>),
    /// After this many bytes of the body; without a number, after half of it, or in the event of the answer.
    Body(Option<u64>),
    /// In the middle of the event of the answer.
    Event,
}

/// The state of the connection after the place of [`Cut`], or after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Close,
    Reset,
    /// It stays open, and nothing more is sent.
    Hang,
}

/// The events of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    /// Whether events have ids, so that a client of a session can resume a stream.
    pub(crate) ids: bool,
    /// Whether a stream begins with an event that has an id and empty data.
    pub(crate) priming: bool,
    /// The field `retry` of the first event.
    pub(crate) retry_ms: Option<u64>,
    /// Closes the response after this many events, before the answer, which a GET with `Last-Event-ID` gets. It
    /// applies to a stream of GET only if the rule for it has this member.
    pub(crate) resume_after: Option<u64>,
    /// `\n`, `\r\n` or `\r`.
    pub(crate) newline: String,
    /// Whether the data of an event has two lines.
    pub(crate) split: bool,
    /// Number of comments before the first message.
    pub(crate) comments: u64,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            ids: false,
            priming: false,
            retry_ms: None,
            resume_after: None,
            newline: "\n".to_owned(),
            split: false,
            comments: 0,
        }
    }
}

impl Events {
    /// These events with some members changed.
    pub(crate) fn with(&self, value: &Value) -> Result<Self, String> {
        let mut events = self.clone();
        members(value, |name, value| {
            match name {
                "ids" => events.ids = flag(value)?,
                "priming" => events.priming = flag(value)?,
                "retry_ms" => events.retry_ms = Some(number(value)?),
                "resume_after" => events.resume_after = Some(number(value)?),
                "newline" => {
                    events.newline = text(value)?;
                    if !["\n", "\r\n", "\r"].contains(&events.newline.as_str()) {
                        return Err("must be \\n, \\r\\n or \\r".to_owned());
                    }
                }
                "split" => events.split = flag(value)?,
                "comments" => events.comments = number(value)?,
                _ => return unknown(),
            }
            Ok(())
        })?;
        events.ids |= events.priming || events.resume_after.is_some();
        Ok(events)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Edit {
    /// Whether the request is executed although the rule has `status`, `body` or `raw`, or not executed although
    /// it has none of them.
    execute: Option<bool>,
    /// Waits before the head.
    pub(crate) delay_ms: u64,
    /// The status; without `body` and `execute`, the response has no body.
    pub(crate) status: Option<u16>,
    /// Headers that replace those of the same name, in which `$URL`, `$ORIGIN`, `$SESSION` and `$OTHER_SESSION` are
    /// replaced; an empty list removes a header.
    pub(crate) headers: Vec<(String, Vec<String>)>,
    pub(crate) body: Option<Body>,
    /// All bytes of the response, or of the event on the stream of the older transport.
    pub(crate) raw: Option<Vec<u8>>,
    /// The form of the answer, `json` or `sse`.
    pub(crate) reply: Option<Form>,
    /// Members of the events of the settings that differ.
    events: Option<Value>,
    /// Messages on the stream before the answer.
    pub(crate) before: Vec<String>,
    /// Bytes on the stream before the answer.
    pub(crate) raw_before: Vec<u8>,
    /// A wrong Content-Length, after which the connection is closed.
    pub(crate) content_length: Option<Length>,
    pub(crate) transfer: Option<Transfer>,
    /// Whether the body is in gzip, whatever the client accepts.
    pub(crate) gzip: bool,
    /// A body in gzip with a valid answer that has this many bytes of padding.
    pub(crate) gzip_bomb: Option<u64>,
    /// This many headers of this many bytes.
    pub(crate) header_flood: Option<(u64, usize)>,
    /// Writes the head this many bytes at a time, with a pause of this many milliseconds after them.
    pub(crate) head_drip: Option<Drip>,
    pub(crate) body_drip: Option<Drip>,
    pub(crate) endless: Option<Endless>,
    pub(crate) cut: Option<Cut>,
    pub(crate) end: Option<End>,
    /// Ends a GET stream or a subscription after this time.
    pub(crate) open_ms: Option<u64>,
}

impl Edit {
    pub(crate) fn parse(value: &Value) -> Result<Self, String> {
        let mut edit = Self::default();
        match value.as_str() {
            None => members(value, |name, value| edit.set(name, value))?,
            Some("hang") => (edit.cut, edit.end) = (Some(Cut::Head(Some(0))), Some(End::Hang)),
            Some("close") => edit.cut = Some(Cut::Head(Some(0))),
            Some("reset") => (edit.cut, edit.end) = (Some(Cut::Head(Some(0))), Some(End::Reset)),
            Some(_) => return Err("must be an object, or hang, close or reset".to_owned()),
        }
        Ok(edit)
    }

    /// Checks the members against each other; `reply` is a rule for the reply of the older transport.
    pub(crate) fn check(&self, reply: bool) -> Result<(), String> {
        if reply && self.end == Some(End::Reset) {
            return Err("the stream of a reply cannot be reset".to_owned());
        }
        Ok(())
    }

    pub(crate) fn executes(&self) -> bool {
        let replaced = self.status.is_some() || self.body.is_some() || self.raw.is_some();
        self.execute.unwrap_or(!replaced)
    }

    /// The form of the answer, with that of the settings as the default.
    pub(crate) fn form(&self, default: Form) -> Form {
        let endless = self.endless.as_ref().and_then(Endless::form);
        let is_packed = self.gzip || self.gzip_bomb.is_some();
        let packed = is_packed.then_some(Form::Json);
        self.reply.or(endless).or(packed).unwrap_or(default)
    }

    /// The events of the stream, with those of the settings as the default.
    pub(crate) fn events(&self, default: &Events) -> Events {
        let changed = self.events.as_ref().map(|value| default.with(value));
        // The value was checked when the script was read.
        match changed {
            Some(Ok(events)) => events,
            None | Some(Err(_)) => default.clone(),
        }
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        match name {
            "execute" => self.execute = Some(flag(value)?),
            "delay_ms" => self.delay_ms = number(value)?,
            "status" => self.status = Some(status(value)?),
            "headers" => members(value, |name, value| {
                self.headers.push((name.to_owned(), header_values(value)?));
                Ok(())
            })?,
            "body" => {
                self.body = Some(match value {
                    Value::String(text) => Body::Text(text.clone()),
                    error => Body::Error(RpcError::parse(error)?),
                })
            }
            "raw" => self.raw = Some(bytes(&text(value)?)),
            "reply" => self.reply = Some(Form::parse(value)?),
            "events" => {
                Events::default().with(value)?;
                self.events = Some(value.clone());
            }
            "before" => self.before = texts(value)?,
            "raw_before" => self.raw_before = bytes(&text(value)?),
            "content_length" => self.content_length = Some(Length::parse(value)?),
            "transfer" => self.transfer = Some(Transfer::parse(value)?),
            "gzip" => self.gzip = flag(value)?,
            "gzip_bomb" => self.gzip_bomb = Some(number(value)?),
            "header_flood" => {
                let drip = Drip::parse(value, "count")?;
                self.header_flood = Some((drip.ms, drip.bytes));
            }
            "head_drip" => self.head_drip = Some(Drip::parse(value, "ms")?),
            "body_drip" => self.body_drip = Some(Drip::parse(value, "ms")?),
            "endless" => self.endless = Some(Endless::parse(value)?),
            "cut" => self.cut = Some(Cut::parse(value)?),
            "end" => self.end = Some(End::parse(value)?),
            "open_ms" => self.open_ms = Some(number(value)?),
            _ => return unknown(),
        }
        Ok(())
    }
}

/// A text, several, or none for `null`.
fn header_values(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(_) => texts(value),
        _ => Ok(vec![text(value)?]),
    }
}

impl Form {
    pub(crate) fn parse(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            Some("json") => Ok(Self::Json),
            Some("sse") => Ok(Self::Sse),
            _ => Err("must be json or sse".to_owned()),
        }
    }
}

impl Length {
    /// A number, or `{"add": N}`.
    fn parse(value: &Value) -> Result<Self, String> {
        match (value.as_u64(), value["add"].as_i64()) {
            (Some(length), _) => Ok(Self::Exact(length)),
            (None, Some(more)) => Ok(Self::Add(more)),
            (None, None) => Err("must be a number, or an object with `add`".to_owned()),
        }
    }

    pub(crate) fn apply(self, length: u64) -> u64 {
        match self {
            Self::Exact(exact) => exact,
            Self::Add(more) => length.saturating_add_signed(more),
        }
    }
}

impl Transfer {
    fn parse(value: &Value) -> Result<Self, String> {
        Ok(match value.as_str() {
            Some("length") => Self::Length,
            Some("chunked") => Self::Chunked,
            Some("close") => Self::Close,
            Some("both") => Self::Both,
            Some("bad-chunk") => Self::BadChunk,
            Some("huge-chunk") => Self::HugeChunk,
            Some("no-last-chunk") => Self::NoLastChunk,
            _ => {
                let names = "length, chunked, close, both, bad-chunk, huge-chunk, no-last-chunk";
                return Err(format!("must be one of {names}"));
            }
        })
    }
}

impl Drip {
    /// `bytes`, and a number of another name.
    fn parse(value: &Value, other: &str) -> Result<Self, String> {
        let mut drip = Self { bytes: 1, ms: 0 };
        members(value, |name, value| {
            match name {
                "bytes" => drip.bytes = size(value)?,
                name if name == other => drip.ms = number(value)?,
                _ => return unknown(),
            }
            Ok(())
        })?;
        Ok(drip)
    }
}

impl Cut {
    /// `head`, `body` or `event`, or an object with the number of bytes of the head or the body.
    fn parse(value: &Value) -> Result<Self, String> {
        match (value.as_str(), value.get("head"), value.get("body")) {
            (Some("head"), ..) => Ok(Self::Head(None)),
            (Some("body"), ..) => Ok(Self::Body(None)),
            (Some("event"), ..) => Ok(Self::Event),
            (None, Some(bytes), None) => size(bytes).map(|bytes| Self::Head(Some(bytes))),
            (None, None, Some(bytes)) => number(bytes).map(|bytes| Self::Body(Some(bytes))),
            _ => {
                Err("must be head, body or event, or have the bytes of one of the first".to_owned())
            }
        }
    }
}

impl End {
    fn parse(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            Some("close") => Ok(Self::Close),
            Some("reset") => Ok(Self::Reset),
            Some("hang") => Ok(Self::Hang),
            _ => Err("must be close, reset or hang".to_owned()),
        }
    }
}

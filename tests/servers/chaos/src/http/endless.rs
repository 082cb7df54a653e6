//! Parts of a response that do not end, or only after a number of bytes; then the answer follows.

use serde_json::Value;

use super::edit::Form;
use super::json::{members, number, text, unknown};
use super::socket::{Socket, Stop};

const BLOCK: usize = 16 * 1024;

/// The place and the content of an endless part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Responses with status 100 before the real one.
    Interim,
    /// A header without an end.
    Header,
    /// Headers.
    Headers,
    /// White space before the JSON of the answer.
    Spaces,
    /// An answer whose text does not end; nothing follows it.
    Json,
    /// An event whose line does not end.
    Event,
    /// Events, each with a log message, or with `text` as the data.
    Events,
    /// Comments of a stream.
    Comments,
}

/// `{"kind": KIND, "bytes": N, "ms": N, "text": TEXT}`: until that many bytes were written, with a pause after each
/// block of 16 KiB, or after each event or comment.
#[derive(Clone, Debug)]
pub(crate) struct Endless {
    pub(crate) kind: Kind,
    bytes: u64,
    ms: u64,
    text: Option<String>,
}

impl Endless {
    pub(crate) fn parse(value: &Value) -> Result<Self, String> {
        let mut endless = Self {
            kind: Kind::Event,
            bytes: u64::MAX,
            ms: 0,
            text: None,
        };
        members(value, |name, value| {
            match name {
                "kind" => endless.kind = Kind::parse(value)?,
                "bytes" => endless.bytes = number(value)?,
                "ms" => endless.ms = number(value)?,
                "text" => endless.text = Some(text(value)?),
                _ => return unknown(),
            }
            Ok(())
        })?;
        Ok(endless)
    }

    /// The only form of an answer that can have this part.
    pub(crate) fn form(&self) -> Option<Form> {
        match self.kind {
            Kind::Interim | Kind::Header | Kind::Headers => None,
            Kind::Spaces | Kind::Json => Some(Form::Json),
            Kind::Event | Kind::Events | Kind::Comments => Some(Form::Sse),
        }
    }

    /// Whether the part is in the body, and not before it.
    pub(crate) fn is_in_body(&self) -> bool {
        self.form().is_some()
    }

    /// Writes the part by `write`; `id` is the id of the request.
    pub(crate) fn play(
        &self,
        socket: &Socket,
        id: &Value,
        mut write: impl FnMut(&[u8]) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let (before, unit, after) = self.parts(id);
        write(before.as_bytes())?;
        let mut written = 0_u64;
        while written < self.bytes {
            let left = usize::try_from(self.bytes - written).unwrap_or(usize::MAX);
            // The other parts are whole lines.
            let can_split = matches!(
                self.kind,
                Kind::Header | Kind::Spaces | Kind::Json | Kind::Event
            );
            let end = if can_split {
                unit.len().min(left)
            } else {
                unit.len()
            };
            write(&unit.as_bytes()[..end])?;
            written += end as u64;
            socket.pause(self.ms)?;
        }
        write(after.as_bytes())
    }

    /// The text before the part, the text that is repeated, and the text after it.
    fn parts(&self, id: &Value) -> (String, String, &'static str) {
        let letters = || "x".repeat(BLOCK);
        let data = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"endless"}}"#;
        let data = self.text.as_deref().unwrap_or(data);
        match self.kind {
            Kind::Interim => (
                String::new(),
                "HTTP/1.1 100 Continue\r\n\r\n".to_owned(),
                "",
            ),
            Kind::Header => ("X-Endless: ".to_owned(), letters(), "\r\n"),
            Kind::Headers => (String::new(), "X-Endless: x\r\n".repeat(100), ""),
            Kind::Spaces => (String::new(), " ".repeat(BLOCK), ""),
            Kind::Json => {
                let before = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#
                );
                (before, letters(), r#""}],"resultType":"complete"}}"#)
            }
            Kind::Event => ("data: ".to_owned(), letters(), "\n\n"),
            Kind::Events => (String::new(), format!("data: {data}\n\n"), ""),
            Kind::Comments => (String::new(), ": endless\n\n".to_owned(), ""),
        }
    }
}

impl Kind {
    fn parse(value: &Value) -> Result<Self, String> {
        Ok(match value.as_str() {
            Some("interim") => Self::Interim,
            Some("header") => Self::Header,
            Some("headers") => Self::Headers,
            Some("spaces") => Self::Spaces,
            Some("json") => Self::Json,
            Some("event") => Self::Event,
            Some("events") => Self::Events,
            Some("comments") => Self::Comments,
            _ => {
                let names = "interim, header, headers, spaces, json, event, events, comments";
                return Err(format!("must be one of {names}"));
            }
        })
    }
}

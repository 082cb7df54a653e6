//! Writes a response with the faults of its rule: the head, the frame of the body, and the place at which it
//! breaks off.

use std::time::Duration;

use super::edit::{Cut, Drip, End, Transfer};
use super::endless::{Endless, Kind};
use super::exchange::Exchange;
use super::json::bytes;
use super::socket::Stop;

/// The status line and the headers, without those of the frame.
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
}

impl Head {
    pub(crate) fn new(status: u16, headers: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self {
            status,
            headers: headers.iter().map(owned).collect(),
        }
    }

    /// Replaces all headers of this name, whose case does not matter.
    fn replace(&mut self, name: &str, values: Vec<String>) {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        let added = values.into_iter().map(|value| (name.to_owned(), value));
        self.headers.extend(added);
    }

    fn lines(&self) -> String {
        let reason = match self.status {
            200 => "OK",
            202 => "Accepted",
            204 => "No Content",
            400 => "Bad Request",
            401 => "Unauthorized",
            404 => "Not Found",
            405 => "Method Not Allowed",
            429 => "Too Many Requests",
            500 => "Internal Server Error",
            503 => "Service Unavailable",
            _ => "Scripted",
        };
        let mut lines = format!("HTTP/1.1 {} {reason}\r\n", self.status);
        for (name, value) in &self.headers {
            lines.push_str(&format!("{name}: {value}\r\n"));
        }
        lines
    }
}

/// A response whose head was written.
pub(crate) struct Writer<'a> {
    exchange: &'a Exchange<'a>,
    transfer: Transfer,
    has_body: bool,
    /// Bytes of the body before it breaks off.
    left: Option<u64>,
    cuts_answer: bool,
}

impl<'a> Writer<'a> {
    /// Writes the head; a body without a known length is written in chunks.
    pub(crate) fn begin(
        exchange: &'a Exchange<'a>,
        mut head: Head,
        length: Option<u64>,
    ) -> Result<Self, Stop> {
        let edit = &exchange.edit;
        exchange.socket.pause(edit.delay_ms)?;
        head.status = edit.status.unwrap_or(head.status);
        exchange.status.set(Some(head.status));
        let default = match length {
            Some(_) => Transfer::Length,
            None => Transfer::Chunked,
        };
        let has_body = !matches!(head.status, 100..=199 | 204 | 304);
        let writer = Self {
            exchange,
            transfer: edit.transfer.unwrap_or(default),
            has_body,
            left: match (edit.cut, length) {
                (Some(Cut::Body(None)), Some(length)) => Some(length / 2),
                (Some(Cut::Body(bytes)), _) => bytes,
                _ => None,
            },
            cuts_answer: matches!(
                (edit.cut, length),
                (Some(Cut::Event), _) | (Some(Cut::Body(None)), None)
            ),
        };
        if has_body {
            writer.add_frame(&mut head, length.unwrap_or_default());
        }
        for (name, values) in &edit.headers {
            let values = values.iter().map(|value| exchange.fill(value));
            head.replace(name, values.collect());
        }
        if let Some((count, size)) = edit.header_flood {
            let value = "x".repeat(size);
            let headers = (1..=count).map(|at| (format!("X-Flood-{at}"), value.clone()));
            head.headers.extend(headers);
        }
        writer.write_head(&head)?;
        Ok(writer)
    }

    fn add_frame(&self, head: &mut Head, length: u64) {
        let length = match self.exchange.edit.content_length {
            Some(change) => change.apply(length),
            None => length,
        };
        let mut add = |name: &str, value: String| head.headers.push((name.to_owned(), value));
        if matches!(self.transfer, Transfer::Length | Transfer::Both) {
            add("Content-Length", length.to_string());
        }
        match self.transfer {
            Transfer::Length => {}
            Transfer::Close => add("Connection", "close".to_owned()),
            _ => add("Transfer-Encoding", "chunked".to_owned()),
        }
    }

    fn write_head(&self, head: &Head) -> Result<(), Stop> {
        let Exchange { edit, socket, .. } = self.exchange;
        self.endless(|kind| kind == Kind::Interim)?;
        let lines = bytes(&head.lines());
        if let Some(Cut::Head(count)) = edit.cut {
            let count = count.unwrap_or(lines.len() / 2).min(lines.len());
            socket.write(&lines[..count])?;
            return Err(self.exchange.cut_off());
        }
        self.raw(&lines, edit.head_drip)?;
        self.endless(|kind| matches!(kind, Kind::Header | Kind::Headers))?;
        self.raw(b"\r\n", edit.head_drip)
    }

    /// Writes the endless part if it is one of these kinds, without a frame.
    fn endless(&self, selected: impl Fn(Kind) -> bool) -> Result<(), Stop> {
        let Exchange { edit, socket, .. } = self.exchange;
        match &edit.endless {
            Some(endless) if selected(endless.kind) => {
                endless.play(socket, &self.exchange.id, |bytes| socket.write(bytes))
            }
            _ => Ok(()),
        }
    }

    /// Writes the endless part of a body; returns whether the answer follows it.
    pub(crate) fn endless_body(&mut self, endless: Option<&Endless>) -> Result<bool, Stop> {
        let Some(endless) = endless.filter(|endless| endless.is_in_body()) else {
            return Ok(true);
        };
        let (socket, id) = (self.exchange.socket, &self.exchange.id);
        endless.play(socket, id, |bytes| self.body(bytes))?;
        Ok(endless.kind != Kind::Json)
    }

    /// Writes a part of the body in its frame.
    pub(crate) fn body(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        match self.left {
            Some(left) if bytes.len() as u64 >= left => {
                let count = usize::try_from(left).unwrap_or(bytes.len());
                self.framed(&bytes[..count])?;
                Err(self.exchange.cut_off())
            }
            Some(left) => {
                self.left = Some(left - bytes.len() as u64);
                self.framed(bytes)
            }
            None => self.framed(bytes),
        }
    }

    /// Writes an event.
    pub(crate) fn event(&mut self, event: &[u8], is_answer: bool) -> Result<(), Stop> {
        if is_answer && self.cuts_answer {
            self.body(&event[..event.len() / 2])?;
            return Err(self.exchange.cut_off());
        }
        self.body(event)
    }

    /// Ends the body; the connection stays open for another request unless the rule or the frame ends it.
    pub(crate) fn finish(self) -> Result<(), Stop> {
        let edit = &self.exchange.edit;
        if self.left.is_some() {
            return Err(self.exchange.cut_off());
        }
        if edit.end == Some(End::Hang) {
            return Err(self.exchange.socket.wait_for_close());
        }
        if self.has_body && matches!(self.transfer, Transfer::Chunked | Transfer::Both) {
            self.exchange.socket.write(b"0\r\n\r\n")?;
        }
        match self.transfer {
            Transfer::NoLastChunk | Transfer::BadChunk | Transfer::HugeChunk => Err(Stop::CutOff),
            Transfer::Close => Err(Stop::Closed),
            _ if edit.end.is_some() || edit.content_length.is_some() => Err(Stop::Closed),
            Transfer::Length | Transfer::Chunked | Transfer::Both => Ok(()),
        }
    }

    fn framed(&self, bytes: &[u8]) -> Result<(), Stop> {
        // An empty chunk would end the body.
        if bytes.is_empty() || !self.has_body {
            return Ok(());
        }
        let drip = self.exchange.edit.body_drip;
        let size = match self.transfer {
            Transfer::Length | Transfer::Close => return self.raw(bytes, drip),
            Transfer::Chunked | Transfer::Both | Transfer::NoLastChunk => {
                format!("{:x}\r\n", bytes.len())
            }
            Transfer::BadChunk => "not-a-size\r\n".to_owned(),
            Transfer::HugeChunk => "fffffffffffffffff\r\n".to_owned(),
        };
        self.raw(&[size.as_bytes(), bytes, b"\r\n"].concat(), drip)
    }

    fn raw(&self, bytes: &[u8], drip: Option<Drip>) -> Result<(), Stop> {
        let socket = self.exchange.socket;
        match drip {
            Some(drip) => socket.drip(bytes, drip.bytes, Duration::from_millis(drip.ms)),
            None => socket.write(bytes),
        }
    }
}

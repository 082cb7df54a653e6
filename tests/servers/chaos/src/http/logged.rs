//! Streams that are written from a log: the answer goes into the log, so that it does not depend on the connection
//! which carries it.

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::HttpServer;
use super::edit::{Cut, Drip, Edit, End, Events};
use super::events::{self, Event, Kind, Log, Next};
use super::exchange::Exchange;
use super::sessions::Session;
use super::socket::{POLL_INTERVAL, Stop};
use super::writer::Writer;
use crate::faults::Channel;

/// The answer to a request in a log.
pub(crate) struct Logged {
    pub(crate) server: Arc<HttpServer>,
    pub(crate) log: Arc<Log>,
    pub(crate) cancel_key: String,
    /// The faults of the event of the answer.
    pub(crate) edit: Option<Arc<Edit>>,
}

impl Channel for Logged {
    fn notification(&mut self, message: &str) {
        self.log.push(Event::new(Kind::Message, message));
    }

    fn raw(&mut self, bytes: &[u8]) -> bool {
        self.log.push(Event::new(Kind::Raw, bytes));
        true
    }

    fn answer(&mut self, bytes: &[u8]) {
        let mut lines = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            let is_last = lines.peek().is_none();
            let kind = if is_last { Kind::Answer } else { Kind::Message };
            let mut event = Event::new(kind, line);
            event.edit = self.edit.clone().filter(|_| is_last);
            self.log.push(event);
        }
    }

    fn drip(&mut self, bytes: &[u8], step: usize, pause: Duration) {
        let mut event = Event::new(Kind::Answer, bytes);
        let ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        event.drip = Some(Drip { bytes: step, ms });
        self.log.push(event);
    }

    fn wait(&mut self, ms: u64) -> bool {
        let wait = Duration::from_millis(ms);
        if self.server.state.script().ignore_cancel {
            std::thread::sleep(wait);
            return true;
        }
        let cancelled = self.server.waiting.start(&self.cancel_key);
        let woken = cancelled.recv_timeout(wait);
        self.server.waiting.stop(&self.cancel_key);
        woken == Err(RecvTimeoutError::Timeout)
    }

    fn close(&mut self) {
        self.log.finish();
    }
}

/// A stream that copies a log to its client.
pub(crate) struct Copy<'a> {
    pub(crate) exchange: &'a Exchange<'a>,
    pub(crate) log: &'a Log,
    /// Number of events that the client has.
    pub(crate) read: u64,
    pub(crate) events: Events,
    /// The name of each event.
    pub(crate) name: Option<&'static str>,
    /// The session whose end ends the stream.
    pub(crate) session: Option<&'a Session>,
}

impl Copy<'_> {
    /// Writes events until the log, the session, the client or the rule ends the stream.
    pub(crate) fn run(mut self, writer: &mut Writer<'_>) -> Result<(), Stop> {
        let open = self.exchange.edit.open_ms.map(Duration::from_millis);
        let (mut waited, mut written) = (Duration::ZERO, 0);
        loop {
            if self.events.resume_after == Some(written) {
                return Ok(());
            }
            match self.log.next(self.read) {
                Next::Event(event) => {
                    self.read += 1;
                    written += 1;
                    self.write(writer, &event)?;
                }
                Next::Done => return Ok(()),
                Next::None if self.exchange.socket.is_closed() => return Err(Stop::ClientClosed),
                Next::None if self.has_ended() => return Ok(()),
                Next::None if open.is_some_and(|open| waited >= open) => return Ok(()),
                Next::None => waited += POLL_INTERVAL,
            }
        }
    }

    fn has_ended(&self) -> bool {
        let server = self.exchange.server;
        let script = server.state.script();
        self.session.is_some_and(|session| {
            !session.id.is_empty() && server.sessions.find(&session.id, &script).is_none()
        })
    }

    fn write(&self, writer: &mut Writer<'_>, event: &Event) -> Result<(), Stop> {
        if let Some(edit) = &event.edit {
            return self.write_edited(writer, event, edit);
        }
        let is_answer = event.kind == Kind::Answer;
        let text = self.text(event.kind, &event.data);
        match event.drip {
            None => writer.event(&text, is_answer),
            Some(drip) => self.drip(writer, &text, drip),
        }
    }

    /// Writes an event with the faults of the rule for the reply.
    fn write_edited(
        &self,
        writer: &mut Writer<'_>,
        event: &Event,
        edit: &Edit,
    ) -> Result<(), Stop> {
        self.exchange.socket.pause(edit.delay_ms)?;
        for message in &edit.before {
            let message = self.exchange.fill(message);
            writer.body(&self.text(Kind::Message, message.as_bytes()))?;
        }
        writer.body(&edit.raw_before)?;
        writer.endless_body(edit.endless.as_ref())?;
        let text = match &edit.raw {
            Some(raw) => raw.clone(),
            None => self.text(event.kind, &event.data),
        };
        let cut = match edit.cut {
            None => text.len(),
            Some(Cut::Head(_)) => 0,
            Some(Cut::Event | Cut::Body(None)) => text.len() / 2,
            Some(Cut::Body(Some(bytes))) => usize::try_from(bytes).unwrap_or(usize::MAX),
        };
        let text = &text[..cut.min(text.len())];
        match edit.body_drip {
            None => writer.body(text)?,
            Some(drip) => self.drip(writer, text, drip)?,
        }
        match (edit.cut, edit.end) {
            (None, None) => Ok(()),
            (_, Some(End::Hang)) => Err(self.exchange.socket.wait_for_close()),
            _ => Err(Stop::CutOff),
        }
    }

    fn drip(&self, writer: &mut Writer<'_>, text: &[u8], drip: Drip) -> Result<(), Stop> {
        for part in text.chunks(drip.bytes.max(1)) {
            writer.body(part)?;
            std::thread::sleep(Duration::from_millis(drip.ms));
        }
        Ok(())
    }

    fn text(&self, kind: Kind, data: &[u8]) -> Vec<u8> {
        if kind == Kind::Raw {
            return data.to_vec();
        }
        let id = format!("{}-{}", self.log.number, self.read);
        let id = self.events.ids.then_some(id.as_str());
        events::text(&self.events, self.name, id, data)
    }
}

//! The answer to a request on its own response, as JSON or as a stream of events; and the beginning of streams.

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::edit::{Events, Form};
use super::events;
use super::exchange::Exchange;
use super::socket::Stop;
use super::writer::{Head, Writer};
use crate::faults::{Channel, Played};

pub(crate) struct Live<'a> {
    exchange: &'a Exchange<'a>,
    form: Form,
    events: Events,
    /// The header `Mcp-Session-Id` of the response.
    session: Option<&'a str>,
    /// The key of the request if a notification can cancel it; otherwise the end of the connection does.
    cancel_key: Option<String>,
    writer: Option<Writer<'a>>,
    written: u64,
    result: Result<(), Stop>,
}

impl<'a> Live<'a> {
    /// Begins the response if it is a stream.
    pub(crate) fn begin(
        exchange: &'a Exchange<'a>,
        session: Option<&'a str>,
        cancel_key: Option<String>,
    ) -> Self {
        let settings = exchange.settings();
        let mut live = Self {
            exchange,
            form: exchange.edit.form(settings.reply),
            events: exchange.edit.events(&settings.events),
            session,
            cancel_key,
            writer: None,
            written: 0,
            result: Ok(()),
        };
        if live.form == Form::Sse {
            live.attempt(|live| {
                let mut writer = live.exchange.stream(live.session)?;
                let id = live.next_id();
                let begun = begin_stream(live.exchange, &mut writer, &live.events, None, &id);
                live.writer = Some(writer);
                begun
            });
        }
        live
    }

    /// Ends the response.
    pub(crate) fn finish(mut self, played: Played) -> Result<(), Stop> {
        self.result?;
        match (played, self.writer.take()) {
            (Played::Answered, None) => Ok(()),
            (Played::Answered | Played::Cancelled, Some(writer)) => writer.finish(),
            (Played::Cancelled, None) => Err(Stop::CutOff),
            (Played::Unanswered, _) => Err(self.exchange.socket.wait_for_close()),
        }
    }

    fn attempt(&mut self, step: impl FnOnce(&mut Self) -> Result<(), Stop>) {
        if self.result.is_ok() {
            self.result = step(self);
        }
    }

    fn json_head(&self) -> Head {
        let mut headers = vec![("Content-Type", "application/json")];
        if let Some(session) = self.session {
            headers.push(("Mcp-Session-Id", session));
        }
        Head::new(200, &headers)
    }

    /// The response, which has begun or begins here, without a known length.
    fn writer(&mut self) -> Result<&mut Writer<'a>, Stop> {
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => Writer::begin(self.exchange, self.json_head(), None)?,
        };
        Ok(self.writer.insert(writer))
    }

    /// The text of an event, or the data itself if the answer is JSON.
    fn framed(&mut self, data: &[u8]) -> Vec<u8> {
        if self.form == Form::Json {
            return data.to_vec();
        }
        let id = self.events.ids.then(|| self.next_id());
        events::text(&self.events, None, id.as_deref(), data)
    }

    /// An event id that no session can resume.
    fn next_id(&mut self) -> String {
        self.written += 1;
        format!("x{}-{}", self.exchange.number, self.written)
    }
}

impl Channel for Live<'_> {
    fn notification(&mut self, message: &str) {
        if self.form == Form::Sse {
            self.attempt(|live| {
                let event = live.framed(message.as_bytes());
                live.writer()?.event(&event, false)
            });
        }
    }

    fn raw(&mut self, bytes: &[u8]) -> bool {
        self.attempt(|live| live.writer()?.body(bytes));
        self.result.is_ok()
    }

    fn answer(&mut self, bytes: &[u8]) {
        self.attempt(|live| match (live.form, &live.writer) {
            (Form::Json, None) => live.exchange.send(live.json_head(), bytes.to_vec()),
            (Form::Json, Some(_)) => live.writer()?.body(bytes),
            (Form::Sse, _) => {
                let answer = live.exchange.replaced(bytes.to_vec());
                let mut lines = answer.split(|byte| *byte == b'\n').peekable();
                while let Some(line) = lines.next() {
                    let event = live.framed(line);
                    live.writer()?.event(&event, lines.peek().is_none())?;
                }
                Ok(())
            }
        });
    }

    fn drip(&mut self, bytes: &[u8], step: usize, pause: Duration) {
        self.attempt(|live| {
            let text = live.framed(bytes);
            for part in text.chunks(step) {
                live.writer()?.body(part)?;
                std::thread::sleep(pause);
            }
            Ok(())
        });
    }

    fn wait(&mut self, ms: u64) -> bool {
        let server = self.exchange.server;
        if self.exchange.script.ignore_cancel {
            std::thread::sleep(Duration::from_millis(ms));
            return true;
        }
        match &self.cancel_key {
            Some(key) => {
                let cancelled = server.waiting.start(key);
                let woken = cancelled.recv_timeout(Duration::from_millis(ms));
                server.waiting.stop(key);
                woken == Err(RecvTimeoutError::Timeout)
            }
            None => {
                self.attempt(|live| live.exchange.socket.pause(ms));
                self.result.is_ok()
            }
        }
    }

    fn close(&mut self) {
        self.attempt(|_| Err(Stop::CutOff));
    }
}

/// Writes the beginning of a stream: the fields and comments of all streams, then those of the rule.
pub(crate) fn begin_stream(
    exchange: &Exchange<'_>,
    writer: &mut Writer<'_>,
    options: &Events,
    name: Option<&str>,
    id: &str,
) -> Result<(), Stop> {
    writer.body(&events::preamble(options))?;
    if options.priming {
        writer.body(&events::priming(options, id))?;
    }
    let edit = &exchange.edit;
    for message in &edit.before {
        let message = exchange.fill(message);
        writer.event(
            &events::text(options, name, None, message.as_bytes()),
            false,
        )?;
    }
    writer.body(&edit.raw_before)?;
    writer.endless_body(edit.endless.as_ref()).map(drop)
}

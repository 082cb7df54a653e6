//! The events of a job of a running broker: its stream of Server-Sent Events.

use std::time::Duration;

use broker_core::MemoryBudget;
use broker_model::job_state::JobState;
use broker_model::terminal::Text;
use broker_model::text;
use broker_wire::SseDecoder;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::get::{self, Opened};
use super::jobs::{JobsClient, route_of};
use super::shown;

/// The time after which a stream without a byte is cut. The broker sends a comment each 15 s.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(45);
/// The maximum bytes of an event.
const MAX_EVENT_BYTES: usize = 16 << 20;
/// The maximum characters of the data of an event in a line.
const MAX_DATA_CHARS: usize = 4_096;

/// The end of a stream. `E` is the error of the function that takes the events.
#[derive(Debug)]
pub(crate) enum StreamEnd<E> {
    /// The connection has ended, for this reason.
    Cut(String),
    /// The broker has answered with an error.
    Refused(String),
    /// An event was not taken.
    Unprinted(E),
}

/// An event.
#[derive(Debug)]
pub(crate) struct ShownEvent {
    pub(crate) number: u64,
    kind: String,
    data: Value,
}

impl ShownEvent {
    /// Returns the state that the event tells, if it tells one.
    pub(crate) fn state(&self) -> Option<JobState> {
        let status = self.data["status"]
            .as_str()
            .filter(|_| self.kind == "status");
        status.and_then(JobState::parse)
    }

    /// Returns it as one line.
    pub(crate) fn human(&self) -> Text {
        let data = match &self.data["data"] {
            Value::String(text) => Value::from(text.as_str()),
            _ => Value::from(self.data.to_string()),
        };
        text!(
            "{}  {}  {}\n",
            format!("{:>5}", self.number),
            format!("{:<8}", shown(&Value::from(self.kind.as_str()), 20)),
            shown(&data, MAX_DATA_CHARS)
        )
    }

    /// Returns it as a JSON object, as over WebSocket.
    pub(crate) fn json(&self) -> String {
        json!({"seq": self.number, "kind": self.kind, "data": self.data}).to_string()
    }
}

impl JobsClient<'_> {
    /// Passes the events of a job behind the number `after` on, until their stream ends.
    pub(crate) async fn follow<E>(
        &self,
        id: &str,
        after: u64,
        mut take: impl FnMut(&ShownEvent) -> Result<(), E>,
    ) -> StreamEnd<E> {
        let route = format!("{}/events?after={after}", route_of(id));
        let opened = timeout(SILENCE_TIMEOUT, get::open(self.target, &route, self.secret));
        let mut response = match opened.await {
            Ok(Ok(Opened::Stream(response))) => response,
            Ok(Ok(Opened::Refused(reason))) => return StreamEnd::Refused(reason),
            Ok(Err(reason)) => return StreamEnd::Cut(reason),
            Err(_) => return StreamEnd::Cut(self.silent()),
        };
        let account = MemoryBudget::new(4 * MAX_EVENT_BYTES).account();
        let mut decoder = SseDecoder::new(MAX_EVENT_BYTES, account);
        loop {
            let chunk = match timeout(SILENCE_TIMEOUT, response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => {
                    let shown = self.target.shown();
                    return StreamEnd::Cut(format!("`{shown}` ended the stream"));
                }
                Ok(Err(error)) => return StreamEnd::Cut(get::failed(&self.target.shown(), &error)),
                Err(_) => return StreamEnd::Cut(self.silent()),
            };
            decoder.push(&chunk);
            loop {
                let event = match decoder.next_event() {
                    Ok(Some(event)) => event,
                    Ok(None) => break,
                    Err(error) => {
                        return StreamEnd::Refused(format!("the stream cannot be read: {error:?}"));
                    }
                };
                decoder.note_message();
                let data: Value = serde_json::from_slice(&event.data).unwrap_or_default();
                if event.name == "error" {
                    let message = shown(&data["error"]["message"], MAX_DATA_CHARS);
                    return StreamEnd::Refused(format!("the broker answered: {message}"));
                }
                let number = decoder.last_id().and_then(|id| id.parse().ok());
                let event = ShownEvent {
                    number: number.unwrap_or(after),
                    kind: event.name,
                    data,
                };
                if let Err(error) = take(&event) {
                    return StreamEnd::Unprinted(error);
                }
            }
        }
    }

    fn silent(&self) -> String {
        let seconds = SILENCE_TIMEOUT.as_secs();
        format!(
            "nothing came from `{}` for {seconds} s",
            self.target.shown()
        )
    }
}

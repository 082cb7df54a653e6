//! Writes an answer with its fault.

use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Behaviour, Flood, Notifications};
use crate::eras;
use crate::reply::{Outcome, error_body, with_members};
use crate::script::{RpcError, Script};
use crate::startup::end_process;
use crate::state::Request;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The way of an answer to the client. Several answers, or lines of noise, are separated by newlines.
pub(crate) trait Channel {
    /// Sends a notification before the answer.
    fn notification(&mut self, message: &str);
    /// Sends bytes without a frame; returns whether more can be sent.
    fn raw(&mut self, bytes: &[u8]) -> bool;
    fn answer(&mut self, bytes: &[u8]);
    /// Sends the answer a few bytes at a time.
    fn drip(&mut self, bytes: &[u8], step: usize, pause: Duration);
    /// Whether the wait ended without a cancel.
    fn wait(&mut self, ms: u64) -> bool;
    /// Closes the channel for good, while the process runs on.
    fn close(&mut self);
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Played {
    Answered,
    /// Never answered, on purpose.
    Unanswered,
    /// Cancelled before the answer.
    Cancelled,
}

/// A request that is about to be answered.
pub(crate) struct Play {
    pub(crate) request: Request,
    modern: bool,
    /// A tool call has content to change; any other result gets a padding member.
    is_call: bool,
}

impl Play {
    pub(crate) fn new(script: &Script, request: Request) -> Self {
        Self {
            modern: eras::is_modern(script, &request),
            is_call: request.method == "tools/call",
            request,
        }
    }

    /// Answers the request; `outcome` is the answer of a server without faults.
    pub(crate) fn run(
        &self,
        channel: &mut dyn Channel,
        behaviour: &Behaviour,
        outcome: Outcome,
    ) -> Played {
        let id = &self.request.id;
        match behaviour {
            Behaviour::Hang => return Played::Unanswered,
            Behaviour::Delay { ms, then } => {
                if channel.wait(*ms) {
                    return self.run(channel, then, outcome);
                }
                return Played::Cancelled;
            }
            Behaviour::Notify {
                notifications,
                then,
            } => {
                self.notify(channel, notifications);
                return self.run(channel, then, outcome);
            }
            Behaviour::Exit(code) => end_process(*code),
            Behaviour::Abort => std::process::abort(),
            Behaviour::CloseStdout => {
                channel.close();
                return Played::Unanswered;
            }
            Behaviour::Drip { bytes, ms } => {
                let pause = Duration::from_millis(*ms);
                channel.drip(outcome.line(id).as_bytes(), *bytes, pause);
            }
            Behaviour::PartialEof => {
                let line = outcome.line(id);
                channel.raw(&line.as_bytes()[..line.len() / 2]);
                end_process(0)
            }
            Behaviour::Flood(flood) => {
                let Flood { before, after, .. } = flood;
                let round = format!("{before}{}{after}", flood.text.repeat(flood.times));
                for _ in 0..flood.rounds {
                    if !channel.raw(round.as_bytes()) {
                        return Played::Unanswered;
                    }
                }
                channel.answer(outcome.line(id).as_bytes());
            }
            _ => channel.answer(&self.message(behaviour, &outcome)),
        }
        Played::Answered
    }

    /// The answer with the fault in it; the behaviours that are more than a text are done in [`Self::run`].
    fn message(&self, behaviour: &Behaviour, outcome: &Outcome) -> Vec<u8> {
        let id = &self.request.id;
        let line = outcome.line(id);
        match behaviour {
            Behaviour::Dup => format!("{line}\n{line}").into(),
            Behaviour::Batch => format!("[{line}]").into(),
            Behaviour::WrongId => outcome.line(&wrong_id(id)).into(),
            Behaviour::StrId => outcome.line(&other_type(id)).into(),
            Behaviour::Both => {
                let error = error_body(&RpcError::new(-32603, "and an error as well"));
                with_members(&line, &format!(r#""error":{error}"#)).into()
            }
            Behaviour::NoJsonrpc => line.replacen(r#""jsonrpc":"2.0","#, "", 1).into(),
            Behaviour::Bom => [BOM, line.as_bytes()].concat(),
            Behaviour::Crlf => format!("{line}\r").into(),
            Behaviour::NotJson => b"this is not JSON".to_vec(),
            Behaviour::NotObject => self.result(r#""not an object""#),
            Behaviour::RpcError(error) => Outcome::Error(error.clone()).line(id).into(),
            Behaviour::Result(result) => self.result(&self.completed(result)),
            Behaviour::RawResult(text) => self.result(text),
            Behaviour::RawLine(text) => text.replace("$ID", &id.to_string()).into(),
            Behaviour::BadUtf8 => self.spoilt(outcome, b"\"not UTF-8: \xff\xfe\""),
            Behaviour::Surrogate => self.spoilt(outcome, br#""alone: \ud800""#),
            Behaviour::Ansi => {
                let text = json!("\u{1b}[31mred\u{1b}[0m \u{202e}bidi \u{e0041}tag");
                self.spoilt(outcome, text.to_string().as_bytes())
            }
            Behaviour::Big(size) => {
                let text = format!("\"{}\"", "x".repeat(*size));
                self.spoilt(outcome, text.as_bytes())
            }
            Behaviour::Deep(levels) => self.deep(outcome, *levels),
            Behaviour::Noise(lines) => {
                let noise: String = (1..=*lines).map(|at| format!("noise {at}\n")).collect();
                format!("{noise}{line}").into()
            }
            Behaviour::NoiseJson => {
                let noise = "{\"level\":\"info\"}\n[]\n42\n\"text\"\nnull\n{}";
                format!("{noise}\n{line}").into()
            }
            Behaviour::Ok
            | Behaviour::Hang
            | Behaviour::Exit(_)
            | Behaviour::Abort
            | Behaviour::PartialEof
            | Behaviour::CloseStdout
            | Behaviour::Delay { .. }
            | Behaviour::Notify { .. }
            | Behaviour::Drip { .. }
            | Behaviour::Flood(_) => line.into(),
        }
    }

    fn deep(&self, outcome: &Outcome, levels: usize) -> Vec<u8> {
        let nested = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let result = match outcome {
            Outcome::Result(result) => result.as_str(),
            Outcome::Error(_) => "{}",
        };
        let member = if self.is_call {
            "structuredContent"
        } else {
            "padding"
        };
        let members = format!(r#""{member}":{{"deep":{nested}}}"#);
        self.result(&with_members(result, &members))
    }

    fn notify(&self, channel: &mut dyn Channel, notifications: &Notifications) {
        let mut write = |method: &str, params: Value| {
            let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
            channel.notification(&message.to_string());
        };
        match notifications {
            Notifications::Progress(steps) => {
                let token = &self.request.params["_meta"]["progressToken"];
                for step in steps.iter().filter(|_| !token.is_null()) {
                    let mut params = step.clone();
                    params["progressToken"] = token.clone();
                    write("notifications/progress", params);
                }
            }
            Notifications::Log(messages) => {
                for params in messages {
                    write("notifications/message", params.clone());
                }
            }
            Notifications::Stderr(lines) => {
                for line in lines {
                    // No script closes stderr.
                    drop(writeln!(std::io::stderr(), "{line}"));
                }
            }
        }
    }

    fn result(&self, result: &str) -> Vec<u8> {
        Outcome::Result(result.to_owned())
            .line(&self.request.id)
            .into()
    }

    fn completed(&self, result: &Value) -> String {
        let bare = self.modern && result.is_object() && result.get("resultType").is_none();
        let text = result.to_string();
        if bare {
            with_members(&text, r#""resultType":"complete""#)
        } else {
            text
        }
    }

    /// The answer with a JSON text in it that may be invalid.
    fn spoilt(&self, outcome: &Outcome, text: &[u8]) -> Vec<u8> {
        const PLACE: &str = "\"@\"";
        let result = match outcome {
            _ if self.is_call => {
                let content = json!({"content": [{"type": "text", "text": "@"}]});
                self.completed(&content)
            }
            Outcome::Result(result) => with_members(result, &format!(r#""padding":{PLACE}"#)),
            Outcome::Error(_) => format!(r#"{{"padding":{PLACE}}}"#),
        };
        let frame = Outcome::Result(result).line(&self.request.id);
        // The position is before any text of a script.
        let (before, after) = frame.split_once(PLACE).unwrap_or((&frame, ""));
        [before.as_bytes(), text, after.as_bytes()].concat()
    }
}

/// An id that no real request has.
fn wrong_id(id: &Value) -> Value {
    match id.as_i64() {
        Some(id) => json!(id.wrapping_add(1_000_000_007)),
        None => json!(format!("wrong-{id}")),
    }
}

/// The id as the other type: `1` and `"1"` are two ids.
fn other_type(id: &Value) -> Value {
    match id.as_str() {
        Some(text) => text.parse::<i64>().map_or(Value::Null, Value::from),
        None => json!(id.to_string()),
    }
}

//! Writes an answer with its fault.

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Behaviour, Flood, Notifications};
use crate::output::complain;
use crate::reply::{Outcome, error_body, with_members};
use crate::script::RpcError;
use crate::server::{Request, Server};
use crate::startup::{close_stdout, end_process};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// A request that is about to be answered.
pub(crate) struct Play {
    pub(crate) request: Request,
    pub(crate) modern: bool,
    /// A tool call has content to change; any other result gets a padding member.
    pub(crate) is_call: bool,
}

impl Play {
    /// Answers the request; `outcome` is the answer of a server without faults.
    pub(crate) fn run(&self, server: &Server, behaviour: &Behaviour, outcome: Outcome) {
        let id = &self.request.id;
        let output = &server.output;
        let line = outcome.line(id);
        let bytes = match behaviour {
            Behaviour::Hang => return,
            Behaviour::Delay { ms, then } => {
                if self.wait(server, *ms) {
                    self.run(server, then, outcome);
                }
                return;
            }
            Behaviour::Notify {
                notifications,
                then,
            } => {
                self.notify(server, notifications);
                return self.run(server, then, outcome);
            }
            Behaviour::Exit(code) => end_process(*code),
            Behaviour::Abort => std::process::abort(),
            Behaviour::CloseStdout => return complain(&close_stdout()),
            Behaviour::Drip { bytes, ms } => {
                let pause = Duration::from_millis(*ms);
                return output.drip(format!("{line}\n").as_bytes(), *bytes, pause);
            }
            Behaviour::PartialEof => {
                drop(output.raw(&line.as_bytes()[..line.len() / 2]));
                end_process(0)
            }
            Behaviour::Ok => line.into(),
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
            Behaviour::BadUtf8 => self.spoilt(&outcome, b"\"not UTF-8: \xff\xfe\""),
            Behaviour::Surrogate => self.spoilt(&outcome, br#""alone: \ud800""#),
            Behaviour::Ansi => {
                let text = json!("\u{1b}[31mred\u{1b}[0m \u{202e}bidi \u{e0041}tag");
                self.spoilt(&outcome, text.to_string().as_bytes())
            }
            Behaviour::Big(size) => {
                let text = format!("\"{}\"", "x".repeat(*size));
                self.spoilt(&outcome, text.as_bytes())
            }
            Behaviour::Deep(levels) => {
                let nested = format!("{}{}", "[".repeat(*levels), "]".repeat(*levels));
                let result = match &outcome {
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
            Behaviour::Noise(lines) => {
                let noise: String = (1..=*lines).map(|at| format!("noise {at}\n")).collect();
                format!("{noise}{line}").into()
            }
            Behaviour::NoiseJson => {
                let noise = "{\"level\":\"info\"}\n[]\n42\n\"text\"\nnull\n{}";
                format!("{noise}\n{line}").into()
            }
            Behaviour::Flood(flood) => {
                let Flood { before, after, .. } = flood;
                let round = format!("{before}{}{after}", flood.text.repeat(flood.times));
                for _ in 0..flood.rounds {
                    if output.raw(round.as_bytes()).is_err() {
                        return;
                    }
                }
                line.into()
            }
        };
        // A reader that has gone also closed stdin, which ends the process.
        drop(output.raw(&[bytes.as_slice(), b"\n"].concat()));
    }

    /// Whether the wait ended without a cancel.
    fn wait(&self, server: &Server, ms: u64) -> bool {
        let wait = Duration::from_millis(ms);
        if server.script().ignore_cancel {
            std::thread::sleep(wait);
            return true;
        }
        let cancelled = server.start_waiting(&self.request.id);
        let woken = cancelled.recv_timeout(wait);
        server.stop_waiting(&self.request.id);
        woken == Err(RecvTimeoutError::Timeout)
    }

    fn notify(&self, server: &Server, notifications: &Notifications) {
        let write = |method: &str, params: Value| {
            let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
            server.output.line(&message.to_string());
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

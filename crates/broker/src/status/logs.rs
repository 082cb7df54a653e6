//! The last stderr lines of a source of a running broker: requests them, and renders the reply.

use std::time::Duration;

use broker_model::redact::Secret;
use broker_model::terminal::Text;
use broker_model::text;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::time::timeout;

use super::{Target, get, shown};

/// The timeout of the request.
const LOGS_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum characters of a line that are printed.
const MAX_LINE_CHARS: usize = 4096;

/// The lines of a source.
#[derive(Debug)]
pub(crate) struct Logs {
    /// The reply, as text.
    text: String,
    source: String,
    processes: Vec<Value>,
}

/// Requests the lines of the source at `path`; an error is one lowercase fragment.
pub(crate) async fn ask_for_logs(
    target: &Target,
    path: &str,
    secret: Option<&Secret>,
) -> Result<Logs, String> {
    let route = format!("/logs?path={}", utf8_percent_encode(path, NON_ALPHANUMERIC));
    let asked = get::json(target, &route, secret);
    let late = |_| {
        let seconds = LOGS_TIMEOUT.as_secs();
        format!("no answer from `{}` within {seconds} s", target.shown())
    };
    let (mut reply, text) = timeout(LOGS_TIMEOUT, asked).await.map_err(late)??;
    match reply["processes"].take() {
        Value::Array(processes) => Ok(Logs {
            text,
            source: shown(&reply["path"], 200),
            processes,
        }),
        _ => Err(format!(
            "the server at `{}` is not an mcp-broker, or an older one",
            target.shown()
        )),
    }
}

impl Logs {
    /// The reply as the broker sent it.
    pub(crate) fn json(&self) -> &str {
        &self.text
    }

    /// Returns the lines as text. If the source has several processes, the number of a process is before its lines.
    pub(crate) fn human(&self) -> Text {
        let mut all = Text::new();
        let is_one = self.processes.len() == 1;
        for (at, process) in self.processes.iter().enumerate() {
            let lines = process["lines"].as_array().into_iter().flatten();
            for line in lines {
                let line = shown(line, MAX_LINE_CHARS);
                let line = match is_one {
                    true => text!("{}\n", line),
                    false => text!("{}: {}\n", at + 1, line),
                };
                all.push(line);
            }
        }
        all
    }

    /// Notes for people, beside the lines.
    pub(crate) fn notes(&self) -> Vec<Text> {
        if self.processes.is_empty() {
            let message = "it is reached by a URL, so that the broker has no output of it";
            return vec![text!("{}: {}", self.source, message)];
        }
        let is_silent = |process: &&Value| process["lines"].as_array().is_none_or(Vec::is_empty);
        let silent = self.processes.iter().filter(is_silent);
        silent
            .map(|process| {
                text!(
                    "{}: no line on stderr; it is {} since {}",
                    self.source,
                    shown(&process["state"], 20),
                    shown(&process["since"], 40)
                )
            })
            .collect()
    }
}

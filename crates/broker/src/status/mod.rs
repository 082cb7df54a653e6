//! The status of a running broker: requests its health routes, and renders the replies.

mod age;
mod events;
mod get;
mod jobs;
mod logs;
mod table;
mod target;

use std::time::{Duration, SystemTime};

use broker_model::redact::Secret;
use broker_model::text::shown_line;
use serde_json::Value;
use tokio::time::timeout;

pub(crate) use events::StreamEnd;
pub(crate) use jobs::{JobsClient, ShownJob};
pub(crate) use logs::ask_for_logs;
pub(crate) use target::Target;

use broker_model::terminal::Text;
use broker_model::text;
use broker_terminal::Layout as _;

/// The timeout of both requests together.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum characters of the reason why jobs are off.
const MAX_REASON_CHARS: usize = 1000;

/// The note below a table that has states only.
const STATES_ONLY: &str = "The broker shows paths, causes and counters only to a caller who sends its \
    secret: set `MCP_BROKER_SECRET`, or give `--secret-file`.";

/// The text in place of the table for a caller who may not see the sources.
const OPERATORS_ONLY: &str = "The broker shows its sources to `access.operators` only: give the key of \
    an operator by `--secret-file` or `MCP_BROKER_SECRET`. Whether a source needs attention is not known.";

/// The status of a broker.
#[derive(Debug)]
pub(crate) struct Status {
    ready: bool,
    /// Whether a source is not ready or a tool is withdrawn.
    degraded: bool,
    /// The reply of `/sources`, as text; of `/readyz` for a caller who may not see the sources.
    text: String,
    /// `None` for a caller who may not see them.
    sources: Option<Vec<Value>>,
    /// The state of the store of jobs and the reason, if jobs are off although the config has them.
    jobs: Option<(String, String)>,
}

/// Requests the status of the broker at `target`; an error is one lowercase fragment.
pub(crate) async fn ask(target: &Target, secret: Option<&Secret>) -> Result<Status, String> {
    let asked = async {
        let ready = get::json(target, "/readyz", secret).await?;
        let sources = get::json_if_permitted(target, "/sources", secret).await?;
        Ok::<_, String>((ready, sources))
    };
    let late = |_| {
        let seconds = REQUEST_TIMEOUT.as_secs();
        format!("no answer from `{}` within {seconds} s", target.shown())
    };
    let ((ready, ready_text), sources) = timeout(REQUEST_TIMEOUT, asked).await.map_err(late)??;
    let no_broker = || format!("the server at `{}` is not an mcp-broker", target.shown());
    let is_ready = ready["ready"].as_bool().ok_or_else(no_broker)?;
    let Some((mut sources, text)) = sources else {
        return Ok(Status {
            ready: is_ready,
            degraded: false,
            text: ready_text,
            sources: None,
            jobs: None,
        });
    };
    let jobs = sources.get("jobs").map(|jobs| {
        let reason = shown(&jobs["reason"], MAX_REASON_CHARS);
        (shown(&jobs["state"], MAX_REASON_CHARS), reason)
    });
    match sources["sources"].take() {
        Value::Array(sources) => Ok(Status {
            ready: is_ready,
            // Absent in a reply of an older broker.
            degraded: ready["degraded"].as_bool().unwrap_or_default(),
            text,
            sources: Some(sources),
            jobs,
        }),
        _ => Err(no_broker()),
    }
}

impl Status {
    /// Whether the broker is ready, no source that the caller sees needs attention, and jobs are not off for a fault.
    pub(crate) fn is_fine(&self) -> bool {
        let mut sources = self.sources.iter().flatten();
        self.ready && self.jobs.is_none() && !sources.any(needs_attention)
    }

    /// The reply of the broker as it was sent: the sources, or the readiness for a caller who may not see them.
    pub(crate) fn json(&self) -> &str {
        &self.text
    }

    /// The table.
    pub(crate) fn human(&self, target: &Target) -> Text {
        let word = match (self.ready, self.degraded) {
            (true, false) => "ready",
            (true, true) => "ready, but degraded",
            (false, _) => "not ready",
        };
        let title = text!("{} is {}", target.shown(), word);
        let Some(sources) = &self.sources else {
            let mut text = text!("{}\n\n", title);
            text.wrap("", "", OPERATORS_ONLY);
            return text;
        };
        let attention = sources
            .iter()
            .filter(|source| needs_attention(source))
            .count();
        let mut more = Text::new();
        if sources.iter().any(|source| source["path"].is_null()) {
            more.wrap("", "", STATES_ONLY);
        }
        if let Some((state, reason)) = &self.jobs {
            more.wrap("", "", &format!("Jobs are off ({state}): {reason}"));
        }
        text!(
            "{}\n\n{}{}\n{} of {} sources need attention\n",
            title,
            table::render(sources, SystemTime::now()),
            more,
            attention,
            sources.len()
        )
    }
}

/// Whether a source needs attention: it is down, or some of its tools are withdrawn.
fn needs_attention(source: &Value) -> bool {
    let state = source["state"].as_str().unwrap_or_default();
    !matches!(state, "ready" | "starting") || source["withdrawn"].as_u64().unwrap_or_default() > 0
}

/// A text of the broker, escaped for a terminal.
fn shown(value: &Value, most: usize) -> String {
    shown_line(value.as_str().unwrap_or_default(), most)
}

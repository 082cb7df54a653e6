//! The jobs of a running broker: requests them, and renders the replies.

use std::time::Duration;

use axum::http::Method;
use broker_model::job_state::JobState;
use broker_model::redact::Secret;
use broker_model::terminal::Text;
use broker_model::text;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::time::timeout;

use super::{Target, get, shown};

/// The timeout of a request.
const JOBS_TIMEOUT: Duration = Duration::from_secs(10);
/// The characters of a bar of progress.
const BAR_CHARS: usize = 24;
/// The maximum characters of a path in a line.
const MAX_PATH_CHARS: usize = 60;
/// The maximum characters of a message in a line.
const MAX_MESSAGE_CHARS: usize = 200;

/// A running broker, asked for its jobs.
pub(crate) struct JobsClient<'a> {
    pub(crate) target: &'a Target,
    pub(crate) secret: Option<&'a Secret>,
}

/// A job as the broker sent it.
#[derive(Debug)]
pub(crate) struct ShownJob {
    pub(crate) text: String,
    job: Value,
}

impl JobsClient<'_> {
    /// Requests the newest jobs; an error is one lowercase fragment.
    pub(crate) async fn list(&self, state: Option<&str>) -> Result<(Text, String), String> {
        let route = match state {
            Some(state) => format!(
                "/jobs?status={}",
                utf8_percent_encode(state, NON_ALPHANUMERIC)
            ),
            None => "/jobs".to_owned(),
        };
        let (reply, text) = self.ask(Method::GET, &route).await?;
        let mut all = Text::new();
        for job in reply["jobs"].as_array().into_iter().flatten() {
            all.push(line(job));
        }
        Ok((all, text))
    }

    /// Requests a job.
    pub(crate) async fn show(&self, id: &str) -> Result<ShownJob, String> {
        let (job, text) = self.ask(Method::GET, &route_of(id)).await?;
        Ok(ShownJob { text, job })
    }

    /// Cancels a job.
    pub(crate) async fn cancel(&self, id: &str) -> Result<ShownJob, String> {
        let (job, text) = self.ask(Method::DELETE, &route_of(id)).await?;
        Ok(ShownJob { text, job })
    }

    async fn ask(&self, method: Method, route: &str) -> Result<(Value, String), String> {
        let asked = get::ask(self.target, (method, route), self.secret);
        let late = |_| {
            let seconds = JOBS_TIMEOUT.as_secs();
            format!(
                "no answer from `{}` within {seconds} s",
                self.target.shown()
            )
        };
        timeout(JOBS_TIMEOUT, asked).await.map_err(late)?
    }
}

impl ShownJob {
    /// Returns its state, if this program knows it.
    pub(crate) fn state(&self) -> Option<JobState> {
        JobState::parse(self.job["status"].as_str().unwrap_or_default())
    }

    /// Returns its members as lines.
    pub(crate) fn human(&self) -> Text {
        let mut all = Text::new();
        for (name, value) in self.job.as_object().into_iter().flatten() {
            let value = match value {
                Value::String(_) => shown(value, MAX_MESSAGE_CHARS),
                other => shown(&Value::String(other.to_string()), MAX_MESSAGE_CHARS),
            };
            all.push(text!("{}: {}\n", name.clone(), value));
        }
        all
    }

    /// Returns its progress as a line with a bar, if the server has sent any.
    pub(crate) fn progress(&self) -> Option<Text> {
        let progress = self.job.get("progress")?;
        let done = progress["progress"].as_f64()?;
        let message = shown(&progress["message"], MAX_MESSAGE_CHARS);
        let bar = match progress["total"].as_f64().filter(|total| *total > 0.0) {
            Some(total) => {
                let part = (done / total).clamp(0.0, 1.0);
                let filled = (part * BAR_CHARS as f64) as usize;
                let bar = format!("{}{}", "#".repeat(filled), "-".repeat(BAR_CHARS - filled));
                format!("[{bar}] {done} of {total}")
            }
            None => format!("{done}"),
        };
        Some(text!("{} {}", bar, message))
    }
}

/// Returns a job as one line: its id, its state, when it was made, and its path.
fn line(job: &Value) -> Text {
    text!(
        "{}  {}  {}  {}\n",
        shown(&job["job_id"], 64),
        format!("{:<14}", shown(&job["status"], 14)),
        shown(&job["created_at"], 20),
        shown(&job["path"], MAX_PATH_CHARS)
    )
}

/// Returns the route of a job.
pub(super) fn route_of(id: &str) -> String {
    format!("/jobs/{}", utf8_percent_encode(id, &PATH))
}

/// The characters of an id that need no escape.
static PATH: percent_encoding::AsciiSet = NON_ALPHANUMERIC.remove(b'_');

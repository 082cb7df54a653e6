//! Lines for requests whose `Host` or `Origin` is refused. Every sender can cause them, so that there is one a minute.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use tokio::time::Instant;

use super::respond::Refusal;

/// The time between two lines.
const LINE_INTERVAL: Duration = Duration::from_secs(60);
/// The maximum characters of a header in a line.
const MAX_CHARS: usize = 128;

/// The requests that were refused since the last line.
#[derive(Debug, Default)]
pub(crate) struct RefusedHosts(Mutex<Since>);

#[derive(Clone, Copy, Debug, Default)]
struct Since {
    line: Option<Instant>,
    without_line: u64,
}

impl RefusedHosts {
    /// Writes a line for a refused request, or counts it for the next line.
    pub(crate) fn note(&self, refusal: &Refusal, headers: &HeaderMap) {
        let Some(without_line) = self.take_line() else {
            return;
        };
        let text = |name| {
            let value = headers.get(name)?.to_str().ok()?;
            Some(value.chars().take(MAX_CHARS).collect::<String>())
        };
        tracing::warn!(
            code = refusal.code().as_str(),
            host = text(header::HOST),
            origin = text(header::ORIGIN),
            without_line,
            "a request was refused: `allowed_hosts` and `allowed_origins` name other hosts that callers may use"
        );
    }

    /// Returns the number of requests without a line if this one has a line.
    fn take_line(&self) -> Option<u64> {
        let now = Instant::now();
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if since
            .line
            .is_some_and(|line| now.duration_since(line) < LINE_INTERVAL)
        {
            since.without_line += 1;
            return None;
        }
        since.line = Some(now);
        Some(std::mem::take(&mut since.without_line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn refused_hosts_have_one_line_a_minute_with_the_count_of_the_others() {
        let hosts = RefusedHosts::default();
        assert_eq!(hosts.take_line(), Some(0));
        for _ in 0..1000 {
            assert_eq!(hosts.take_line(), None);
        }
        tokio::time::advance(LINE_INTERVAL).await;
        assert_eq!(hosts.take_line(), Some(1000));
        assert_eq!(hosts.take_line(), None);
    }
}

//! Step 8: the one log line of a call.

use std::time::Duration;

use tokio::time::Instant;
use tracing::Level;

use super::resolve::Target;
use crate::call::context::{CallContext, Outcome};
use crate::errors::error::CoreError;

/// The log line of a call, written when the call ends, also when its caller leaves. If the level is not
/// logged, it costs one check of the level. It never has arguments.
pub(super) struct Record<'a> {
    started: Option<Instant>,
    path: &'a str,
    request_id: &'a str,
    source: &'static str,
    digest: &'static str,
    outcome: &'static str,
}

impl<'a> Record<'a> {
    pub(super) fn new(context: &'a CallContext, path: &'a str) -> Self {
        Self {
            started: tracing::enabled!(Level::DEBUG).then(Instant::now),
            path,
            request_id: context.request_id.as_str(),
            source: "",
            digest: "",
            outcome: "cancelled",
        }
    }

    /// Records the tool.
    pub(super) fn resolved(&mut self, target: &Target) {
        self.source = target.source;
        self.digest = target.item.digest;
    }

    /// Records the outcome.
    pub(super) fn end(mut self, outcome: &Result<Outcome, Box<CoreError>>) {
        self.outcome = match outcome {
            Ok(_) => "ok",
            Err(error) => error.code.as_str(),
        };
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        if let Some(started) = self.started {
            tracing::debug!(
                path = broker_model::text::shown_line(self.path, 512),
                source = self.source,
                digest = self.digest,
                outcome = self.outcome,
                ms = tenths(started.elapsed()),
                request_id = self.request_id,
                "call"
            );
        }
    }
}

/// Returns milliseconds with one decimal: more digits have no meaning.
fn tenths(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_time_is_logged_in_tenths_of_a_millisecond() {
        for (micros, text) in [
            (1_001_634, "1001.6"),
            (49, "0.0"),
            (50, "0.1"),
            (2_000, "2.0"),
        ] {
            assert_eq!(format!("{:?}", tenths(Duration::from_micros(micros))), text);
        }
    }
}

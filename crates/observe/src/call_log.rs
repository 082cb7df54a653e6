//! The log line of a call.

use std::time::Duration;

use broker_model::text::shown_line;
use tracing::Level;

use crate::list_changed_exec::name_of;
use crate::recorded_call::{CallEnd, RecordSink, RecordedCall};

/// The maximum characters of a path in a log line.
const MAX_PATH_CHARS: usize = 512;

/// Writes one log line for each call, at the level `debug`. The line never has arguments.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallLog;

impl RecordSink for CallLog {
    fn is_enabled(&self) -> bool {
        tracing::enabled!(Level::DEBUG)
    }

    fn record(&self, call: &RecordedCall, end: CallEnd<'_>) {
        let item = call.item();
        tracing::debug!(
            path = shown_line(&call.path, MAX_PATH_CHARS),
            source = item.map_or("", |item| item.source),
            digest = item.map_or("", |item| item.digest),
            outcome = end.as_str(),
            caller = name_of(call.identity.subject()),
            ms = tenths(call.elapsed()),
            request_id = call.request_id.as_str(),
            "call"
        );
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

//! Times as text: RFC 3339 in UTC, whole seconds.

use std::time::SystemTime;

use jiff::Timestamp;

/// Formats a time as `2026-11-21T03:14:05Z`. A time before 1970 is shown as 1970.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let time = time.max(SystemTime::UNIX_EPOCH);
    // No clock shows a year above 9999.
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::MAX);
    format!("{time:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn time_as_rfc3339_matches_the_calendar() {
        // Each by `date -u -d @N +%FT%TZ`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_210_096, "2024-02-29T12:34:56Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(rfc3339(time), text);
            assert_eq!(rfc3339(time + Duration::from_millis(999)), text);
        }
        assert_eq!(
            rfc3339(UNIX_EPOCH - Duration::from_secs(1)),
            "1970-01-01T00:00:00Z"
        );
        assert_eq!(
            rfc3339(UNIX_EPOCH + Duration::from_secs(u64::MAX >> 2)),
            "9999-12-30T22:00:00Z"
        );
    }
}

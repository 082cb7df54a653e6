//! The age of a time, in a short form for a table.

use std::time::SystemTime;

use jiff::Timestamp;

/// `3m` for a time in the format of the health routes; `?` for other text. A future time is `0s`.
pub(super) fn age(text: &str, now: SystemTime) -> String {
    let Some(then) = parse(text) else {
        return "?".to_owned();
    };
    short(now.duration_since(then).unwrap_or_default().as_secs())
}

/// `12s` until a future time; `now` for a past one.
pub(super) fn until(text: &str, now: SystemTime) -> String {
    match parse(text).and_then(|then| then.duration_since(now).ok()) {
        Some(left) => format!("in {}", short(left.as_secs().max(1))),
        None => "now".to_owned(),
    }
}

fn short(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn parse(text: &str) -> Option<SystemTime> {
    text.parse::<Timestamp>().ok().map(SystemTime::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn age_is_shown_in_its_largest_unit() {
        // By `date -u -d 2024-02-29T12:34:56Z +%s`.
        let then = UNIX_EPOCH + Duration::from_secs(1_709_210_096);
        for (later, expected) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3599, "59m"),
            (7200, "2h"),
            (200_000, "2d"),
        ] {
            let now = then + Duration::from_secs(later);
            assert_eq!(age("2024-02-29T12:34:56Z", now), expected);
        }
        assert_eq!(age("2024-02-29T12:34:56Z", UNIX_EPOCH), "0s");
        for wrong in [
            "",
            "yesterday",
            "2024-13-01T00:00:00Z",
            "2024-02-30T00:00:00Z",
            "2024-02-29T12:34:56",
        ] {
            assert_eq!(age(wrong, then), "?", "{wrong}");
        }
        let now = then - Duration::from_secs(12);
        assert_eq!(until("2024-02-29T12:34:56Z", now), "in 12s");
        assert_eq!(
            until("2024-02-29T12:34:56Z", then + Duration::from_secs(9)),
            "now"
        );
    }
}

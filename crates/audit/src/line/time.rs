//! The time of a line: RFC 3339 in UTC with milliseconds.

use std::time::SystemTime;

use broker_model::utc::UtcTime;

/// Returns a time as a line has it.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let millis = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.subsec_millis());
    let mut text = UtcTime::from_system_time(time).to_string();
    text.pop();
    text.push_str(&format!(".{millis:03}Z"));
    text
}

/// Returns the day of a time as a line has it.
pub(crate) fn day_of(at: &str) -> &str {
    at.get(..10).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn time_of_a_line_has_milliseconds() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(951_868_799_042);
        assert_eq!(rfc3339(time), "2000-02-29T23:59:59.042Z");
        assert_eq!(day_of(&rfc3339(time)), "2000-02-29");
    }
}

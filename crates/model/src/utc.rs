//! Times in UTC as people write them: RFC 3339 with whole seconds and `Z`.

use std::fmt;
use std::time::{Duration, SystemTime};

const DAY: u64 = 86_400;

/// A time from 1970 to 9999, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UtcTime(u64);

impl UtcTime {
    /// Reads `2027-01-31T12:00:00Z`; `None` for any other form, and for a day that does not exist.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: &[u8; 20] = text.as_bytes().try_into().ok()?;
        for (at, mark) in [
            (4, b'-'),
            (7, b'-'),
            (10, b'T'),
            (13, b':'),
            (16, b':'),
            (19, b'Z'),
        ] {
            if bytes[at] != mark {
                return None;
            }
        }
        let number = |from: usize, to: usize| -> Option<u64> {
            let digits = &bytes[from..to];
            let is_number = digits.iter().all(u8::is_ascii_digit);
            is_number.then(|| {
                digits
                    .iter()
                    .fold(0, |n, digit| n * 10 + u64::from(digit - b'0'))
            })
        };
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let is_day = year >= 1970
            && (1..=12).contains(&month)
            && (1..=days_of_month(year, month)).contains(&day);
        if !is_day || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let days = days_before(year, month) + day - 1;
        Some(Self(days * DAY + hour * 3600 + minute * 60 + second))
    }

    /// Returns a time of the system clock without its fraction of a second. A time before 1970 is 1970.
    pub fn from_system_time(time: SystemTime) -> Self {
        Self(
            time.duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
        )
    }

    /// Returns the time as a time of the system clock.
    pub fn to_system_time(self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.0)
    }
}

impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut days, rest) = (self.0 / DAY, self.0 % DAY);
        let mut year = 1970;
        while days >= days_of_year(year) {
            days -= days_of_year(year);
            year += 1;
        }
        let mut month = 1;
        while days >= days_of_month(year, month) {
            days -= days_of_month(year, month);
            month += 1;
        }
        let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
        let day = days + 1;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
        )
    }
}

/// Days from 1970 to the first day of a month.
fn days_before(year: u64, month: u64) -> u64 {
    let years: u64 = (1970..year).map(days_of_year).sum();
    years
        + (1..month)
            .map(|month| days_of_month(year, month))
            .sum::<u64>()
}

fn days_of_year(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn days_of_month(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utc_time_is_read_and_written() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2027-01-01T00:00:00Z", 1_798_761_600),
            ("2100-03-01T00:00:00Z", 4_107_542_400),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] {
            let time = UtcTime::parse(text).unwrap();
            assert_eq!((time.0, time.to_string().as_str()), (seconds, text));
        }
    }

    #[test]
    fn utc_time_in_another_form_or_without_a_day_is_refused() {
        for text in [
            "",
            "2027-01-01",
            "2027-01-01T00:00:00",
            "2027-01-01T00:00:00+00:00",
            "2027-01-01T00:00:00.0Z",
            "2027-01-01 00:00:00Z",
            "2027-02-29T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "2027-00-01T00:00:00Z",
            "2027-13-01T00:00:00Z",
            "2027-01-32T00:00:00Z",
            "2027-01-01T24:00:00Z",
            "2027-01-01T00:60:00Z",
            "2027-01-01T00:00:60Z",
            "1969-12-31T23:59:59Z",
            "+027-01-01T00:00:00Z",
        ] {
            assert_eq!(UtcTime::parse(text), None, "{text}");
        }
    }
}

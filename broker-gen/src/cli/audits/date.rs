//! A calendar day in UTC in the format of RFC 3339: `2026-11-21`.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

/// An existing day. Ordered by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) struct Date {
    year: u16,
    month: u8,
    day: u8,
}

/// An invalid date; its text follows "expected".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a day that exists, as `2026-11-21`")]
pub(in crate::cli) struct InvalidDate;

impl Date {
    /// Today.
    pub(in crate::cli) fn today() -> Self {
        let seconds = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        Self::of_day(seconds / 86_400)
    }

    pub(super) fn new(year: u16, month: u8, day: u8) -> Option<Self> {
        let leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        (1..=days)
            .contains(&day)
            .then_some(Self { year, month, day })
    }

    /// The day with this number of days after 1 January 1970.
    fn of_day(days: u64) -> Self {
        // Counted from 1 March of the year 0, so that a leap day is the last day of its year; 400 years always have
        // 146 097 days.
        let shifted = days + 719_468;
        let (era, of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 {
            from_march + 3
        } else {
            from_march - 9
        };
        let year = era * 400 + year_of_era + u64::from(month <= 2);
        Self {
            year: u16::try_from(year).unwrap_or(u16::MAX),
            month: u8::try_from(month).unwrap_or(12),
            day: u8::try_from(day).unwrap_or(31),
        }
    }
}

impl FromStr for Date {
    type Err = InvalidDate;

    fn from_str(text: &str) -> Result<Self, InvalidDate> {
        let shaped = text.len() == 10
            && text
                .bytes()
                .enumerate()
                .all(|(at, byte)| matches!((at, byte), (4 | 7, b'-') | (_, b'0'..=b'9')));
        if !shaped {
            return Err(InvalidDate);
        }
        let number = |part: &str| part.parse::<u16>().ok();
        let two = |part: &str| part.parse::<u8>().ok();
        number(&text[..4])
            .zip(two(&text[5..7]))
            .zip(two(&text[8..]))
            .and_then(|((year, month), day)| Self::new(year, month, day))
            .ok_or(InvalidDate)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_that_does_not_exist_is_refused() {
        for good in ["2026-11-21", "2024-02-29", "2000-02-29", "0001-01-01"] {
            assert_eq!(good.parse::<Date>().unwrap().to_string(), good);
        }
        for bad in [
            "2026-02-29",
            "1900-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-04-31",
            "2026-1-1",
            "2026-11-21T00:00:00Z",
            "26-11-21",
            "",
            "2026/11/21",
            "2026-11-2x",
            "٢٠٢٦-١١-٢",
        ] {
            assert_eq!(bad.parse::<Date>(), Err(InvalidDate), "{bad}");
        }
    }

    #[test]
    fn date_of_day_number_matches_the_calendar() {
        // date -u -d @$((DAYS * 86400)) +%F
        for (days, date) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_454, "2026-01-01"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(Date::of_day(days).to_string(), date);
        }
        let mut before = Date::of_day(0);
        for day in 1..60_000 {
            let next = Date::of_day(day);
            assert!(before < next && Date::new(next.year, next.month, next.day) == Some(next));
            before = next;
        }
    }
}

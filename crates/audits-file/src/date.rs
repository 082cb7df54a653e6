//! A calendar day in UTC in the format of RFC 3339: `2026-11-21`.

use std::fmt;
use std::str::FromStr;

use jiff::{Timestamp, civil, tz::TimeZone};

/// An existing day. Ordered by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date(civil::Date);

/// An invalid date; its text follows "expected".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a day that exists, as `2026-11-21`")]
pub struct InvalidDate;

impl Date {
    /// Today.
    pub fn today() -> Self {
        Self(TimeZone::UTC.to_datetime(Timestamp::now()).date())
    }
}

impl FromStr for Date {
    type Err = InvalidDate;

    fn from_str(text: &str) -> Result<Self, InvalidDate> {
        let date: civil::Date = text.parse().map_err(|_| InvalidDate)?;
        // The library accepts other forms too, and years of six digits.
        let is_plain = text.len() == 10 && date.to_string() == text;
        is_plain.then_some(Self(date)).ok_or(InvalidDate)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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
            "2026-11-21T00:00:00",
            "20261121",
            "-000001-01-01",
            "26-11-21",
            "",
            "2026/11/21",
            "2026-11-2x",
            "٢٠٢٦-١١-٢",
        ] {
            assert_eq!(bad.parse::<Date>(), Err(InvalidDate), "{bad}");
        }
    }
}

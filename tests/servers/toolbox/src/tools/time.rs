//! The `time_*` tools: the clock, and arithmetic on UTC times in RFC 3339 without a time zone
//! database. Only `time_now` reads the clock.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::schema::{choice, integer, object, string};
use super::{Answer, Arguments, Failure, Tool};

const DAY: i64 = 86_400;
/// `0001-01-01T00:00:00Z`.
const FIRST: i64 = -62_135_596_800;
/// `9999-12-31T23:59:59Z`.
const LAST: i64 = 253_402_300_799;

const UNITS: [(&str, i64); 5] = [
    ("seconds", 1),
    ("minutes", 60),
    ("hours", 3600),
    ("days", DAY),
    ("weeks", 7 * DAY),
];

pub(super) fn tools() -> Vec<Tool> {
    let moment = object(
        json!({
            "rfc3339": {"type": "string", "description": "The time in UTC, such as `2024-02-29T12:00:00Z`"},
            "unix": {"type": "integer", "description": "Seconds since 1970-01-01T00:00:00Z"},
        }),
        &["rfc3339", "unix"],
    );
    vec![
        Tool {
            name: "time_now",
            title: "Current time",
            description: "Tells the current time in UTC, as RFC 3339 text and as unix seconds.",
            input: object(json!({}), &[]),
            output: Some(moment.clone()),
            run: now,
        },
        Tool {
            name: "time_convert",
            title: "Convert a time",
            description: "Converts unix seconds to an RFC 3339 time in UTC, or an RFC 3339 time with any offset to unix seconds. Fractions of a second are dropped.",
            input: object(
                json!({
                    "value": {
                        "type": ["integer", "string"],
                        "description": "Unix seconds as an integer, or an RFC 3339 time as a string",
                    },
                    "to": choice("What to convert to", &["rfc3339", "unix"]),
                }),
                &["value", "to"],
            ),
            output: None,
            run: convert,
        },
        Tool {
            name: "time_add",
            title: "Add to a time",
            description: "Adds a span to an RFC 3339 time, or takes it away when the amount is negative; answers with the time in UTC.",
            input: object(
                json!({
                    "time": string("An RFC 3339 time, such as `2024-02-28T12:00:00+01:00`"),
                    "amount": integer("How many units to add", -1_000_000_000_000, 1_000_000_000_000),
                    "unit": choice("The unit of the amount", &UNITS.map(|(name, _)| name)),
                }),
                &["time", "amount", "unit"],
            ),
            output: Some(moment),
            run: add,
        },
    ]
}

fn now(_: &Arguments<'_>) -> Result<Answer, Failure> {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_secs()).ok())
        .ok_or_else(|| Failure::new("the clock of this machine is set before 1970"))?;
    moment(seconds)
}

fn convert(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let seconds = match arguments.value("value") {
        Some(Value::String(text)) => parse(text)?,
        _ => arguments.integer("value")?.unwrap_or_default(),
    };
    let time = format(seconds)?;
    Ok(Answer::Text(match arguments.text("to")? {
        "unix" => seconds.to_string(),
        _ => time,
    }))
}

fn add(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let start = parse(arguments.text("time")?)?;
    let amount = arguments.integer("amount")?.unwrap_or_default();
    let unit = arguments.text("unit")?;
    let seconds = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .and_then(|(_, length)| amount.checked_mul(*length))
        .and_then(|span| start.checked_add(span))
        .ok_or_else(out_of_range)?;
    moment(seconds)
}

fn moment(seconds: i64) -> Result<Answer, Failure> {
    Ok(Answer::Structured(
        json!({"rfc3339": format(seconds)?, "unix": seconds}),
    ))
}

fn format(seconds: i64) -> Result<String, Failure> {
    if !(FIRST..=LAST).contains(&seconds) {
        return Err(out_of_range());
    }
    let (year, month, day) = civil(seconds.div_euclid(DAY));
    let clock = seconds.rem_euclid(DAY);
    Ok(format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        clock / 3600,
        clock / 60 % 60,
        clock % 60
    ))
}

fn parse(text: &str) -> Result<i64, Failure> {
    read(text).ok_or_else(|| {
        Failure::new(format!(
            "`{}` is not an RFC 3339 time such as `2024-02-29T12:00:00Z`",
            text.chars().take(40).collect::<String>().escape_debug()
        ))
    })
}

fn read(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = bytes.get(from..to)?;
        digits.iter().try_fold(0, |sum, byte| {
            byte.is_ascii_digit()
                .then(|| sum * 10 + i64::from(byte - b'0'))
        })
    };
    let mark = |at: usize, allowed: &[u8]| bytes.get(at).filter(|byte| allowed.contains(byte));
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    mark(4, b"-").and(mark(7, b"-"))?;
    mark(10, b"Tt ")?;
    mark(13, b":").and(mark(16, b":"))?;
    let days = days_from_civil(year, month, day);
    let in_range = year >= 1 && hour < 24 && minute < 60 && second < 60;
    // An invalid day is normalised to another one.
    if !in_range || civil(days) != (year, month, day) {
        return None;
    }
    let mut at = 19;
    if mark(at, b".").is_some() {
        let digits = bytes[at + 1..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if digits == 0 {
            return None;
        }
        at += 1 + digits;
    }
    let offset = match bytes.get(at)? {
        b'Z' | b'z' if bytes.len() == at + 1 => 0,
        sign @ (b'+' | b'-') if bytes.len() == at + 6 => {
            mark(at + 3, b":")?;
            let (hours, minutes) = (number(at + 1, at + 3)?, number(at + 4, at + 6)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let offset = hours * 3600 + minutes * 60;
            if *sign == b'-' { -offset } else { offset }
        }
        _ => return None,
    };
    Some(days * DAY + hour * 3600 + minute * 60 + second - offset)
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    // Counted from 0000-03-01, so that a leap day is the last day of its year.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}

fn out_of_range() -> Failure {
    Failure::new("the time is outside the years 1 to 9999")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{refusal, structured, text};
    use super::*;

    #[test]
    fn time_convert_of_known_times_works_both_ways() {
        for (unix, rfc3339) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_208_000, "2024-02-29T12:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (FIRST, "0001-01-01T00:00:00Z"),
            (LAST, "9999-12-31T23:59:59Z"),
        ] {
            let forth = json!({"value": unix, "to": "rfc3339"});
            assert_eq!(text("time_convert", forth), rfc3339);
            let back = json!({"value": rfc3339, "to": "unix"});
            assert_eq!(text("time_convert", back), unix.to_string());
        }
    }

    #[test]
    fn civil_date_of_every_day_converts_back() {
        for day in -80_000..80_000 {
            let (year, month, date) = civil(day);
            assert_eq!(days_from_civil(year, month, date), day);
        }
    }

    #[test]
    fn time_with_offset_and_fraction_is_parsed() {
        let time = json!({"value": "2024-02-29t13:30:00.999+01:30", "to": "unix"});
        assert_eq!(text("time_convert", time), "1709208000");
    }

    #[test]
    fn time_that_is_invalid_is_refused() {
        for wrong in [
            "",
            "2024-02-30T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-00-10T00:00:00Z",
            "2024-01-00T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:60Z",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00+0100",
            "2024-01-01T00:00:00Zjunk",
            "0000-01-01T00:00:00Z",
            "２024-01-01T00:00:00Z",
        ] {
            let message = refusal("time_convert", json!({"value": wrong, "to": "unix"}));
            assert!(message.contains("is not an RFC 3339 time"), "{wrong}");
        }
        let late = json!({"value": LAST + 1, "to": "rfc3339"});
        assert_eq!(
            refusal("time_convert", late),
            "the time is outside the years 1 to 9999"
        );
    }

    #[test]
    fn time_add_adds_and_subtracts() {
        let later = json!({"time": "2024-02-28T12:00:00Z", "amount": 2, "unit": "days"});
        assert_eq!(
            structured("time_add", later),
            json!({"rfc3339": "2024-03-01T12:00:00Z", "unix": 1_709_294_400})
        );
        let earlier = json!({"time": "2024-01-01T00:00:00Z", "amount": -90, "unit": "minutes"});
        assert_eq!(
            structured("time_add", earlier)["rfc3339"],
            "2023-12-31T22:30:00Z"
        );
        let never = json!({"time": "2024-01-01T00:00:00Z", "amount": 1_000_000_000_000_i64, "unit": "weeks"});
        assert_eq!(
            refusal("time_add", never),
            "the time is outside the years 1 to 9999"
        );
    }

    #[test]
    fn time_now_gives_both_forms_of_one_moment() {
        let now = structured("time_now", json!({}));
        let unix = parse(now["rfc3339"].as_str().unwrap()).unwrap();
        assert_eq!(now["unix"], unix);
        assert!(unix > 1_700_000_000);
    }
}

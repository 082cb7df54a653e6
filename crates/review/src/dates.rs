//! The current date in texts of servers: such a text differs from its lock from the next day on, although two launches on one
//! day agree.

use broker_drift::Report;
use broker_model::json::child_pointer;
use broker_model::path::NodePath;
use jiff::civil::Date;
use jiff::{Zoned, tz::TimeZone};
use serde_json::Value;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Returns the current date, here and in UTC, in the usual forms of texts.
pub fn today() -> Vec<String> {
    let here = Zoned::now();
    let dates = [here.date(), here.with_time_zone(TimeZone::UTC).date()];
    let mut forms: Vec<_> = dates.into_iter().flat_map(forms).collect();
    forms.sort();
    forms.dedup();
    forms
}

fn forms(date: Date) -> Vec<String> {
    let (year, number, day) = (date.year(), date.month(), date.day());
    let Some(month) = usize::try_from(number - 1)
        .ok()
        .and_then(|at| MONTHS.get(at))
    else {
        return Vec::new();
    };
    let mut forms = vec![
        format!("{year}-{number:02}-{day:02}"),
        format!("{year}/{number:02}/{day:02}"),
        format!("{number:02}/{day:02}/{year}"),
        format!("{day:02}/{number:02}/{year}"),
        format!("{day:02}.{number:02}.{year}"),
    ];
    for month in [*month, &month[..3]] {
        forms.push(format!("{month} {day}, {year}"));
        forms.push(format!("{month} {day:02}, {year}"));
        forms.push(format!("{month} {day:02} {year}"));
        forms.push(format!("{day} {month} {year}"));
        forms.push(format!("{day:02} {month} {year}"));
    }
    forms
}

/// The pointer for `volatile` to a place of a tool, or of the instructions of a source.
pub fn volatile_pointer(tool: Option<&str>, pointer: &str) -> String {
    match tool {
        Some(name) => format!("{}{pointer}", child_pointer("/tools", name)),
        None => "/instructions".to_owned(),
    }
}

/// Says how to leave a text with a date out of the lock.
pub fn remedy(source: &NodePath, volatile: &str) -> String {
    format!(
        "Add `\"{volatile}\"` to `volatile` of `{source}` in the config, then run `broker-gen lock --source {source}`."
    )
}

/// Names `volatile` as the remedy of each changed text that differs from the reviewed one only in dates.
pub fn name_volatile(report: &mut Report) {
    for drift in &mut report.tools {
        for finding in &mut drift.findings {
            let texts = (finding.old.as_ref().and_then(Value::as_str))
                .zip(finding.new.as_ref().and_then(Value::as_str));
            if texts.is_some_and(|(old, new)| differ_in_dates(old, new)) {
                let pointer = volatile_pointer(Some(&drift.tool), &finding.pointer);
                finding.message = format!("{}: only a date differs", finding.message);
                finding.remedy = remedy(&drift.source, &pointer);
            }
        }
    }
}

/// Whether two texts are equal except for their dates.
fn differ_in_dates(old: &str, new: &str) -> bool {
    old != new && without_dates(old) == without_dates(new)
}

/// The text with a NUL for each date.
fn without_dates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_in_word = false;
    while let Some(first) = rest.chars().next() {
        let date = if is_in_word { None } else { date_at(rest) };
        let length = match date {
            Some(length) => {
                out.push('\0');
                length
            }
            None => {
                out.push(first);
                first.len_utf8()
            }
        };
        is_in_word = first.is_alphanumeric();
        rest = &rest[length..];
    }
    out
}

/// The length of the date at the start of a text: `2026-03-05`, `2026/03/05`, `05.03.2026`, `March 5, 2026`, `5 March 2026`.
fn date_at(text: &str) -> Option<usize> {
    let after = number(text, 4, 4)
        .and_then(|rest| number(separator(rest, &["-", "/"])?, 2, 2))
        .and_then(|rest| number(separator(rest, &["-", "/"])?, 2, 2));
    let numbers = || {
        let rest = separator(number(text, 1, 2)?, &[".", "/"])?;
        number(separator(number(rest, 1, 2)?, &[".", "/"])?, 4, 4)
    };
    let month_first = || {
        let rest = number(month(text)?.strip_prefix(' ')?, 1, 2)?;
        number(separator(rest, &[", ", " "])?, 4, 4)
    };
    let day_first = || {
        let rest = month(number(text, 1, 2)?.strip_prefix(' ')?)?;
        number(separator(rest, &[", ", " "])?, 4, 4)
    };
    let after = after
        .or_else(numbers)
        .or_else(month_first)
        .or_else(day_first)?;
    Some(text.len() - after.len())
}

/// The text after a number of so many digits.
fn number(text: &str, least: usize, most: usize) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    (least..=most)
        .contains(&(text.len() - rest.len()))
        .then_some(rest)
}

fn separator<'a>(text: &'a str, known: &[&str]) -> Option<&'a str> {
    known.iter().find_map(|known| text.strip_prefix(known))
}

/// The text after the name of a month, whole or its first three letters.
fn month(text: &str) -> Option<&str> {
    let mut months = MONTHS.iter();
    months.find_map(|month| {
        text.strip_prefix(month)
            .or_else(|| text.strip_prefix(&month[..3]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_has_the_forms_of_texts() {
        let forms = forms(jiff::civil::date(2026, 3, 5));
        for form in [
            "2026-03-05",
            "March 5, 2026",
            "Mar 05, 2026",
            "5 March 2026",
            "05.03.2026",
        ] {
            assert!(forms.contains(&form.to_owned()), "{form}");
        }
    }

    #[test]
    fn texts_that_are_equal_except_for_dates_differ_in_dates() {
        let new = "Today is 2026-03-05; use it.";
        for (old, differs) in [
            ("Today is 2026-03-04; use it.", true),
            ("Today is March 4, 2026; use it.", true),
            ("Today is 4 Mar 2026; use it.", true),
            ("Today is 04.03.2026; use it.", true),
            (new, false),
            ("Today is 2026-03-04; use this.", false),
            ("Today is; use it.", false),
            ("Today is 2026-03-041; use it.", false),
            ("Today is 7; use it.", false),
        ] {
            assert_eq!(differ_in_dates(old, new), differs, "{old}");
        }
        assert!(!differ_in_dates("版本é 1.2.3", "版本é 1.2.4"));
    }

    #[test]
    fn volatile_pointer_escapes_the_name_of_the_tool() {
        assert_eq!(
            volatile_pointer(Some("a/b"), "/description"),
            "/tools/a~1b/description"
        );
    }
}

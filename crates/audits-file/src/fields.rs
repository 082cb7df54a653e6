//! Deserializes fields of entries that have fewer valid values than their type.

use broker_model::filter::ToolFilter;
use broker_model::utc::UtcTime;
use serde::de::{Deserialize, Deserializer, Error};
use toml::value::Datetime;

use crate::Date;

/// A text that is not blank.
pub fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.trim().is_empty() {
        return Err(D::Error::custom("expected a text, got an empty one"));
    }
    Ok(text)
}

/// A text that is not blank, in a member that may be absent.
pub fn optional_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    text(deserializer).map(Some)
}

/// A day of TOML, with or without quotes, as text: `2026-11-21`.
pub fn day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = day_text(deserializer)?;
    match UtcTime::parse(&format!("{text}T00:00:00Z")) {
        Some(_) => Ok(text),
        None => Err(D::Error::custom(format!(
            "expected a day that exists, as `2026-11-21`, got `{text}`"
        ))),
    }
}

/// Reads the text of a day, without a check that it is a day.
pub fn day_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(untagged, expecting = "expected a day, as `2026-11-21`")]
    enum Written {
        Text(String),
        Date(Datetime),
    }
    Ok(match Written::deserialize(deserializer)? {
        Written::Text(text) => text,
        Written::Date(date) => date.to_string(),
    })
}

/// A glob that names what an entry is about.
pub fn glob<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ToolFilter, D::Error> {
    let text = glob_text(deserializer)?;
    compiled(&text, &text)
}

/// [`glob`] in a member that may be absent.
pub fn optional_glob<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ToolFilter>, D::Error> {
    glob(deserializer).map(Some)
}

/// Makes the filter that denies what a glob names. It also denies look-alikes of these names, and admits all others.
pub fn deny_glob<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ToolFilter, D::Error> {
    let text = glob_text(deserializer)?;
    compiled(&text, &format!("!{text}"))
}

/// Does the same as [`deny_glob`], for a member that may be absent.
pub fn optional_deny_glob<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ToolFilter>, D::Error> {
    deny_glob(deserializer).map(Some)
}

fn glob_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = text(deserializer)?;
    // A filter would read `!x` as everything except `x`.
    if text.trim_start().starts_with('!') {
        let message = format!("expected a glob without `!`, got `{text}`");
        return Err(D::Error::custom(message));
    }
    Ok(text)
}

fn compiled<E: Error>(text: &str, pattern: &str) -> Result<ToolFilter, E> {
    ToolFilter::compile(&[pattern]).map_err(|errors| {
        let why: Vec<_> = errors.into_iter().map(|error| error.reason).collect();
        E::custom(format!(
            "expected a glob ({}), got `{text}`",
            why.join("; ")
        ))
    })
}

/// A list of texts that are not blank.
pub(super) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(serde::Deserialize)]
    struct Text(#[serde(deserialize_with = "text")] String);
    let texts = Vec::deserialize(deserializer)?;
    Ok(texts.into_iter().map(|Text(text)| text).collect())
}

/// A date of TOML, with or without quotes.
pub(super) fn date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Date, D::Error> {
    let text = day_text(deserializer)?;
    text.parse()
        .map_err(|error| D::Error::custom(format!("expected {error}, got `{text}`")))
}

/// [`date`] in a member that may be absent.
pub(super) fn optional_date<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Date>, D::Error> {
    date(deserializer).map(Some)
}

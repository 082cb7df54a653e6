//! Deserializes fields of entries whose type alone does not say which values are valid.

use broker_model::filter::ToolFilter;
use serde::de::{Deserialize, Deserializer, Error};

use super::Date;
use crate::audits_file::fields::day_text;
pub(super) use crate::audits_file::fields::{optional_text, text};

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

pub(super) fn optional_date<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Date>, D::Error> {
    date(deserializer).map(Some)
}

pub(super) fn glob<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ToolFilter, D::Error> {
    let text = text(deserializer)?;
    // A filter would read `!x` as everything except `x`.
    if text.starts_with('!') {
        let message = format!("expected a glob, which cannot deny, got `{text}`");
        return Err(D::Error::custom(message));
    }
    ToolFilter::compile(&[&text]).map_err(|errors| {
        let why: Vec<_> = errors.into_iter().map(|error| error.reason).collect();
        D::Error::custom(format!(
            "expected a glob ({}), got `{text}`",
            why.join("; ")
        ))
    })
}

pub(super) fn optional_glob<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ToolFilter>, D::Error> {
    glob(deserializer).map(Some)
}

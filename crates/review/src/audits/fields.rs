//! Deserializes fields of entries that have fewer valid values than their type.

use serde::de::{Deserialize, Deserializer, Error};

use super::Date;
use broker_build::audits_file::fields::day_text;
pub(super) use broker_build::audits_file::fields::{glob, optional_glob, optional_text, text};

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

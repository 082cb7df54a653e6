//! The query of a request for jobs.

use std::collections::BTreeMap;

use broker_model::CallCode;
use percent_encoding::percent_decode_str;

use crate::pipeline::Refusal;

/// The parameters of a query, decoded. The first of a name counts.
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads a query. Parameters that are not UTF-8 are left out.
    pub(super) fn read(query: Option<&str>) -> Self {
        let mut parameters = BTreeMap::new();
        for pair in query.unwrap_or_default().split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = |text| percent_decode_str(text).decode_utf8();
            if let (Ok(name), Ok(value)) = (decoded(name), decoded(value)) {
                parameters
                    .entry(name.into_owned())
                    .or_insert_with(|| value.into_owned());
            }
        }
        Self(parameters)
    }

    /// Returns the value of a parameter that is not empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Returns the number of a parameter, from 0 to `max`.
    pub(super) fn number(&self, name: &str, max: u64) -> Result<Option<u64>, Refusal> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let number = text.parse().ok().filter(|number| *number <= max);
        number.map(Some).ok_or_else(|| {
            let message = match max {
                u64::MAX => format!("`{name}` must be a number"),
                max => format!("`{name}` must be a number up to {max}"),
            };
            Refusal::new(CallCode::FieldInvalid, message)
        })
    }
}

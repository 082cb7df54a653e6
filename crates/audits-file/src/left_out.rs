//! Entries that accept what a lock leaves out. An entry counts for one part, one reason and one digest.

use broker_model::digest::Digest;
use broker_model::lock::LeftOutPart;
use broker_model::{LeftOutCode, NodePath};
use serde::Deserialize;

use crate::fields;

/// A person accepted that a part is left out or kept.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table: `[[left_out]]`")]
pub struct LeftOutAudit {
    pub source: NodePath,
    /// The key of the tool or item; `None` for the whole source, and for an object without a readable name.
    #[serde(default, deserialize_with = "fields::optional_text")]
    pub tool: Option<String>,
    /// The code of the reason.
    #[serde(deserialize_with = "fields::text")]
    pub reason: String,
    pub digest: Digest,
    #[serde(deserialize_with = "fields::text")]
    pub who: String,
    #[serde(deserialize_with = "fields::day")]
    pub date: String,
    #[serde(default, deserialize_with = "fields::optional_text")]
    pub notes: Option<String>,
}

impl LeftOutAudit {
    /// Whether it accepts the part.
    pub fn accepts(&self, part: &LeftOutPart<'_>) -> bool {
        self.source == *part.source && self.accepts_elsewhere(part)
    }

    /// Whether it accepts a part like this one, of any source.
    pub fn accepts_elsewhere(&self, part: &LeftOutPart<'_>) -> bool {
        // What a violation refuses is settled by the violation alone.
        part.code != LeftOutCode::Violation
            && self.tool == part.tool
            && self.reason == part.code.as_str()
            && self.digest == part.digest
    }
}

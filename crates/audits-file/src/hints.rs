//! Entries that confirm hints of the config: they claim more safety than the server's hints.
//!
//! An entry counts for one definition of the tool and for all hints that the config sets for it. It does not expire, so
//! that the same files always build.

use broker_model::NodePath;
use broker_model::access::Hint;
use broker_model::digest::Digest;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::fields;

/// A person confirmed the hints of the config for one definition of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table: `[[hints]]`")]
pub struct HintAudit {
    pub source: NodePath,
    /// The server's name of the tool.
    #[serde(deserialize_with = "fields::text")]
    pub tool: String,
    pub digest: Digest,
    pub values: HintValues,
    #[serde(deserialize_with = "fields::text")]
    pub who: String,
    #[serde(deserialize_with = "fields::day")]
    pub date: String,
    #[serde(default, deserialize_with = "fields::optional_text")]
    pub notes: Option<String>,
}

/// The hints that a config sets for a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HintValues(Map<String, Value>);

impl HintValues {
    /// Copies the hints of an override.
    pub fn new(annotations: &Map<String, Value>) -> Self {
        Self(annotations.clone())
    }

    /// An inline table, with the hints in the order of the specification.
    pub fn to_toml(&self) -> String {
        let set = Hint::ALL.into_iter().filter_map(|hint| {
            let value = self.0.get(hint.key())?;
            Some(format!("{} = {value}", hint.key()))
        });
        format!("{{ {} }}", set.collect::<Vec<_>>().join(", "))
    }
}

impl<'de> Deserialize<'de> for HintValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The members, so that others are refused.
        #[derive(Deserialize)]
        #[serde(
            deny_unknown_fields,
            rename_all = "camelCase",
            expecting = "a table of hints: `{ readOnlyHint = true }`"
        )]
        struct Members {
            read_only_hint: Option<bool>,
            destructive_hint: Option<bool>,
            idempotent_hint: Option<bool>,
            open_world_hint: Option<bool>,
        }
        let members = Members::deserialize(deserializer)?;
        let values = Hint::ALL.into_iter().filter_map(|hint| {
            let value = match hint {
                Hint::ReadOnly => members.read_only_hint,
                Hint::Destructive => members.destructive_hint,
                Hint::Idempotent => members.idempotent_hint,
                Hint::OpenWorld => members.open_world_hint,
            };
            Some((hint.key().to_owned(), value?.into()))
        });
        Ok(Self(values.collect()))
    }
}

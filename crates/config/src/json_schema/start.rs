//! The reactions of a lock and of a broker to what is not sound, is not audited, differs from the lock or cannot be reached.

use schemars::JsonSchema;

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum TextDrift {
    Serve,
    Withdraw,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StartDrift {
    Refuse,
    Withdraw,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum SchemaPolicy {
    AsIs,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unreachable {
    Refuse,
    Serve,
}

/// Whether every tool needs an audit, or the number of people who must have accepted it.
#[derive(JsonSchema)]
#[serde(untagged)]
pub(super) enum AuditsRequired {
    Whether(bool),
    People(#[schemars(range(min = 1, max = 10))] u8),
}

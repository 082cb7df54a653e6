//! The reactions of a lock and of a broker to what is not sound, differs from the lock or cannot be reached.

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

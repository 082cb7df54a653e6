//! The JSON Schema of the config.
//!
//! The types here describe the config only: its reader keeps the place of every value and is not made from types.

use broker_model::json_schema::{Contract, generate};
use serde_json::Value;

#[expect(
    dead_code,
    reason = "the fields describe a file; nothing is read into them"
)]
mod access;
#[expect(
    dead_code,
    reason = "the fields describe a file; nothing is read into them"
)]
mod config;
#[expect(
    dead_code,
    reason = "the fields describe a file; nothing is read into them"
)]
mod identities;
#[expect(
    dead_code,
    reason = "the fields describe a file; nothing is read into them"
)]
mod limits;
#[expect(
    dead_code,
    reason = "the fields describe a file; nothing is read into them"
)]
mod start;
#[expect(
    dead_code,
    reason = "the fields describe a file; nothing is read into them"
)]
mod surfaces;

/// Returns the schema of the config that an operator writes.
pub fn config() -> Value {
    config::with_entries(generate::<config::Config>(Contract::Deserialize))
}

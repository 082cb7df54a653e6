//! JSON Schemas of the files that people and programs read: config, lock and report.
//!
//! The types below describe the wire and nothing else: the domain types are never serialized by
//! derive, so that a renamed field cannot change a file. `schemas/` holds what this makes, kept
//! current by a test.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use crate::json::to_review_text;

#[expect(
    dead_code,
    reason = "the fields describe a file; nothing is read into them"
)]
mod config;
#[expect(
    dead_code,
    reason = "the fields describe a file; nothing is read into them"
)]
mod lock;
#[expect(
    dead_code,
    reason = "the fields describe a file; nothing is read into them"
)]
mod report;

/// What has a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// The config that an operator writes.
    Config,
    /// The lock beside it.
    Lock,
    /// The drift report.
    Report,
}

impl Document {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Config, Self::Lock, Self::Report];

    /// The name of its schema file.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Config => "config.schema.json",
            Self::Lock => "lock.schema.json",
            Self::Report => "report.schema.json",
        }
    }

    /// Its schema, draft 7: what editors understand.
    pub fn schema(self) -> Value {
        match self {
            Self::Config => config::with_entries(generate::<config::Config>()),
            Self::Lock => generate::<lock::Lock>(),
            Self::Report => generate::<report::Report>(),
        }
    }

    /// The content of its schema file.
    pub fn text(self) -> String {
        to_review_text(&self.schema())
    }
}

fn generate<T: JsonSchema>() -> Value {
    let schema: Schema = SchemaSettings::draft07()
        .into_generator()
        .into_root_schema_for::<T>();
    let mut value = schema.to_value();
    tidy(&mut value);
    value
}

/// What an `Option` adds and our files never hold, `null`, is taken out; so are the names of Rust's
/// number types, which no reader knows.
fn tidy(value: &mut Value) {
    let null = json!({"type": "null"});
    if let Value::Object(members) = value {
        let is_format = members.get("format").is_some_and(Value::is_string);
        if is_format && members.contains_key("type") {
            members.remove("format");
        }
        let mut single = None;
        if let Some(Value::Array(types)) = members.get_mut("type") {
            types.retain(|name| name != "null");
            single = (types.len() == 1).then(|| types[0].clone());
        }
        if let Some(name) = single {
            members.insert("type".to_owned(), name);
        }
        if let Some(Value::Array(alternatives)) = members.get_mut("anyOf")
            && alternatives.contains(&null)
        {
            alternatives.retain(|alternative| *alternative != null);
            if alternatives.len() == 1
                && let Some(alternatives) = members.remove("anyOf")
            {
                members.insert("allOf".to_owned(), alternatives);
            }
        }
    }
    match value {
        Value::Object(members) => members.values_mut().for_each(tidy),
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

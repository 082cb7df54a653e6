//! JSON Schemas of the files that people and programs read: config and lock.
//!
//! The types below describe the files only: domain types are never serialized by derive, so that a
//! renamed field cannot change a file. `schemas/` contains the output; a test checks it.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

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

/// The schema of the config that an operator writes.
pub fn config() -> Value {
    config::with_entries(generate::<config::Config>())
}

/// The schema of the lock beside it.
pub fn lock() -> Value {
    generate::<lock::Lock>()
}

/// The schema of a type, draft 7 (which editors understand), as the schemas of this project are written.
pub fn generate<T: JsonSchema>() -> Value {
    let schema: Schema = SchemaSettings::draft07()
        .into_generator()
        .into_root_schema_for::<T>();
    let mut value = schema.to_value();
    tidy(&mut value);
    value
}

/// Removes `null`, which an `Option` adds and these files never contain, and the names of Rust's number
/// types, which readers of the schema do not know.
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

//! JSON Schemas of the files that people and programs read, in the form of this project; and the schema of the lock.
//!
//! The schema of the lock is made from the types that read and write it. `schemas/` contains the output; a test
//! checks it.

pub use schemars::generate::Contract;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

/// Returns the schema of the lock.
pub fn lock() -> Value {
    generate::<crate::lock::wire::LockWire>(Contract::Deserialize)
}

/// Returns the schema of a type that is read or written, in the form of this project's schemas: draft 7, since editors
/// understand it.
pub fn generate<T: JsonSchema>(contract: Contract) -> Value {
    let mut settings = SchemaSettings::draft07();
    settings.contract = contract;
    let schema: Schema = settings.into_generator().into_root_schema_for::<T>();
    let mut value = schema.to_value();
    tidy(&mut value);
    value
}

/// Removes the names of Rust's number types, since readers of the schema do not know them, the descriptions of
/// variants, and the `null` of members that are absent instead.
fn tidy(value: &mut Value) {
    if let Value::Object(members) = value {
        let is_format = members.get("format").is_some_and(Value::is_string);
        if is_format && members.contains_key("type") {
            members.remove("format");
        }
        let variants = members.get("oneOf").and_then(Value::as_array);
        let names =
            variants.and_then(|all| all.iter().map(|one| one.get("const").cloned()).collect());
        if let Some(Value::Array(names)) = names {
            members.remove("oneOf");
            members.insert("type".to_owned(), "string".into());
            members.entry("enum").or_insert(names.into());
        }
        let required = members.get("required").and_then(Value::as_array).cloned();
        let required = required.unwrap_or_default();
        let properties = members.get_mut("properties").and_then(Value::as_object_mut);
        for (name, property) in properties.into_iter().flatten() {
            if !required.contains(&json!(name)) {
                remove_null(property);
            }
        }
    }
    match value {
        Value::Object(members) => members.values_mut().for_each(tidy),
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// Removes the `null` that an `Option` adds.
fn remove_null(property: &mut Value) {
    let Some(members) = property.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(names)) = members.get_mut("type") {
        names.retain(|name| name != "null");
        if let [name] = &names[..] {
            let name = name.clone();
            members.insert("type".to_owned(), name);
        }
    }
    if let Some(Value::Array(alternatives)) = members.get_mut("anyOf") {
        alternatives.retain(|alternative| *alternative != json!({"type": "null"}));
        if alternatives.len() == 1
            && let Some(alternatives) = members.remove("anyOf")
        {
            members.insert("allOf".to_owned(), alternatives);
        }
    }
}

//! Tools, and names in the lock.

use serde_json::{Value, json};

/// A tool that takes an object.
pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}})
}

/// The names in a list of the lock.
pub(crate) fn names<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    let items = list.as_array().expect("a list").iter();
    items
        .map(|item| item[key].as_str().expect("a name"))
        .collect()
}

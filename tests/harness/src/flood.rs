//! Strings that act on a terminal, put into every place of a document, and a check of the printed output.

use serde_json::{Map, Value};

/// A text that clears the screen, moves the cursor, rings the bell, changes the text direction, hides
/// characters, and begins a new line.
pub const FLOOD: &str =
    "x\u{1b}[2J\r\u{7}\u{202e}\u{200b}\u{9b}\n::add-mask::z\n##[error]\nforged: all is well\ny";

/// The document once for each of its strings and names of members, with [`FLOOD`] added to that one.
pub fn flooded_places(document: &Value) -> Vec<Value> {
    let mut variants = Vec::new();
    collect(document, &mut |place| variants.push(place));
    variants
}

/// The document with [`FLOOD`] added to each of its strings, and to the names of members too.
pub fn flooded(document: &Value, names: bool) -> Value {
    match document {
        Value::String(text) => Value::from(format!("{text}{FLOOD}")),
        Value::Array(items) => items.iter().map(|item| flooded(item, names)).collect(),
        Value::Object(members) => {
            let flood = |(name, value): (&String, &Value)| {
                let name = if names {
                    format!("{name}{FLOOD}")
                } else {
                    name.clone()
                };
                (name, flooded(value, names))
            };
            Value::Object(members.iter().map(flood).collect())
        }
        other => other.clone(),
    }
}

fn collect(document: &Value, each: &mut dyn FnMut(Value)) {
    match document {
        Value::String(text) => each(Value::from(format!("{text}{FLOOD}"))),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                collect(item, &mut |changed| {
                    let mut items = items.clone();
                    items[at] = changed;
                    each(Value::Array(items));
                });
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                let renamed = members.iter().map(|(key, value)| {
                    let key = if key == name {
                        format!("{key}{FLOOD}")
                    } else {
                        key.clone()
                    };
                    (key, value.clone())
                });
                each(Value::Object(renamed.collect::<Map<_, _>>()));
                collect(value, &mut |changed| {
                    let mut members = members.clone();
                    members.insert(name.clone(), changed);
                    each(Value::Object(members));
                });
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Asserts that no part of [`FLOOD`] was printed unescaped. `what` names the run.
#[track_caller]
pub fn assert_inert(what: &str, printed: &str) {
    let raw = printed.chars().find(|c| {
        matches!(
            c,
            '\u{1b}' | '\r' | '\u{7}' | '\u{202e}' | '\u{200b}' | '\u{9b}'
        )
    });
    assert!(raw.is_none(), "{what}: {raw:?} in {printed:?}");
    let forged = printed.lines().find(|line| line.starts_with("forged:"));
    assert!(forged.is_none(), "{what}: a forged line in\n{printed}");
}

/// Asserts that a text for people has no command of a CI runner: `::NAME` at the start of a line, or `##[NAME`.
#[track_caller]
pub fn assert_no_commands(what: &str, printed: &str) {
    let is_command = |line: &&str| line.trim_start().starts_with("::") || line.contains("##[");
    let found = printed.lines().find(is_command);
    assert!(found.is_none(), "{what}: {found:?} in\n{printed}");
}

//! Reads members of the `http` part of a script, strictly: an unknown name or a wrong type is an error.

use serde_json::{Map, Value};

/// Calls `set` for each member of an object; an error names the member.
pub(crate) fn members(
    value: &Value,
    mut set: impl FnMut(&str, &Value) -> Result<(), String>,
) -> Result<(), String> {
    let members: &Map<String, Value> = value.as_object().ok_or("must be an object")?;
    for (name, value) in members {
        set(name, value).map_err(|error| format!("`{name}`: {error}"))?;
    }
    Ok(())
}

pub(crate) fn unknown() -> Result<(), String> {
    Err("is not known".to_owned())
}

pub(crate) fn number(value: &Value) -> Result<u64, String> {
    value.as_u64().ok_or("must be a number from 0".to_owned())
}

pub(crate) fn size(value: &Value) -> Result<usize, String> {
    usize::try_from(number(value)?).map_err(|error| error.to_string())
}

pub(crate) fn flag(value: &Value) -> Result<bool, String> {
    value
        .as_bool()
        .ok_or_else(|| "must be true or false".to_owned())
}

pub(crate) fn text(value: &Value) -> Result<String, String> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| "must be a string".to_owned())
}

pub(crate) fn texts(value: &Value) -> Result<Vec<String>, String> {
    let list = value.as_array().ok_or("must be a list of strings")?;
    list.iter().map(text).collect()
}

/// A status has three digits, also those that no standard has.
pub(crate) fn status(value: &Value) -> Result<u16, String> {
    let status = number(value)?;
    let status = u16::try_from(status)
        .ok()
        .filter(|status| (100..=999).contains(status));
    status.ok_or_else(|| "must be a status from 100 to 999".to_owned())
}

/// The bytes of a text: characters up to U+00FF are one byte each, so that a script can write any byte.
pub(crate) fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for char in text.chars() {
        match u8::try_from(char) {
            Ok(byte) => bytes.push(byte),
            Err(_) => bytes.extend(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

//! Converts arguments that do not match the schema of their tool, where the config says `"coerce": true`: texts to
//! numbers and booleans, and null to absence, only at the places that fail. The result is checked as a whole, and what
//! was checked is what is sent.

use std::collections::BTreeMap;

use broker_memory::Charge;
use broker_model::json::{
    child_pointer, decimal_of, each_element, each_member, number_value, parse, string_text,
};
use broker_model::text::shown_line;
use broker_schema::{Budget, SchemaError, Validator, Verdict};
use bytes::Bytes;
use serde_json::Value;

/// The maximum number of failing places that one round looks for.
const MAX_PLACES: usize = 200;
/// The maximum number of rounds: a conversion may show further failing places.
const MAX_ROUNDS: usize = 8;
/// The maximum number of conversions that a warning names.
const MAX_NAMED: usize = 10;

/// Arguments after their conversion.
#[derive(Debug)]
pub(super) struct CoercedArgs {
    /// One JSON object, with the bytes of the caller everywhere but at the places that were converted.
    pub(super) text: Bytes,
    /// The same, parsed.
    pub(super) value: Value,
    /// The conversions, for the caller.
    pub(super) warning: String,
    /// The charge of the text.
    pub(super) charge: Charge,
}

/// The verdict on a conversion.
#[derive(Debug)]
pub(super) enum Coercion {
    /// The converted arguments match.
    Done(CoercedArgs),
    /// No conversion makes the arguments match.
    Impossible,
    /// The budget was spent before.
    OverBudget,
}

/// One conversion.
#[derive(Debug)]
enum Edit {
    Replace { text: String, kind: &'static str },
    Remove,
}

/// Converts arguments that do not match `schema`. `validator` was compiled from this schema.
pub(super) fn coerce(
    validator: &Validator,
    schema: &Value,
    text: &str,
    args: &Value,
    budget: &Budget<'_>,
) -> Coercion {
    let mut value = args.clone();
    let mut edits = BTreeMap::new();
    for _ in 0..MAX_ROUNDS {
        let explanation = validator.explain(schema, &value, MAX_PLACES, budget);
        if explanation.is_cut {
            return Coercion::OverBudget;
        }
        let before = edits.len();
        for place in &explanation.places {
            if !edits.contains_key(&place.pointer)
                && let Some(edit) = edit_at(schema, place, &mut value)
            {
                edits.insert(place.pointer.clone(), edit);
            }
        }
        if edits.len() == before {
            return Coercion::Impossible;
        }
        match validator.evaluate(&value, budget).verdict {
            Verdict::Invalid => {}
            Verdict::OverBudget { .. } => return Coercion::OverBudget,
            Verdict::Valid => return written(text, &edits),
        }
    }
    Coercion::Impossible
}

/// Applies all edits to the arguments. The result is read again, so that the checked value is the value of the text.
fn written(text: &str, edits: &BTreeMap<String, Edit>) -> Coercion {
    let mut out = String::with_capacity(text.len());
    write(&mut out, text.trim(), "", edits);
    match parse(&out) {
        Ok(value) => Coercion::Done(CoercedArgs {
            text: out.into(),
            value,
            warning: warning(edits),
            charge: Charge::default(),
        }),
        Err(_) => Coercion::Impossible,
    }
}

fn warning(edits: &BTreeMap<String, Edit>) -> String {
    let named = edits.iter().take(MAX_NAMED).map(|(pointer, edit)| {
        let pointer = shown_line(pointer, 120);
        match edit {
            Edit::Replace { kind, .. } => format!("`{pointer}` to {kind}"),
            Edit::Remove => format!("null at `{pointer}` to absence"),
        }
    });
    let named = named.collect::<Vec<_>>().join(", ");
    match edits.len().saturating_sub(MAX_NAMED) {
        0 => format!("converted before the call: {named}"),
        more => format!("converted before the call: {named} and {more} more"),
    }
}

/// Returns the conversion at a failing place, and makes it in `args` too.
fn edit_at(schema: &Value, place: &SchemaError, args: &mut Value) -> Option<Edit> {
    let target = args.pointer_mut(&place.pointer)?;
    if target.is_null() {
        let (parent, name) = place.pointer.rsplit_once('/')?;
        let name = name.replace("~1", "/").replace("~0", "~");
        args.pointer_mut(parent)?.as_object_mut()?.remove(&name)?;
        return Some(Edit::Remove);
    }
    let text = string_text(target)?.to_owned();
    let types = wanted_types(schema, place);
    let has = |name: &str| types.contains(&name);
    let (value, kind) = match text.as_str() {
        "true" | "false" if has("boolean") => (Value::Bool(text == "true"), "a boolean"),
        _ => {
            let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b'-';
            let (first, last) = (text.bytes().next()?, text.bytes().last()?);
            if !is_digit(first) || !last.is_ascii_digit() {
                return None;
            }
            let number = number_value(&text)?;
            let is_integer = decimal_of(&number)?.is_integer();
            match () {
                () if has("integer") && is_integer => (number, "an integer"),
                () if has("number") => (number, "a number"),
                () => return None,
            }
        }
    };
    *target = value;
    Some(Edit::Replace { text, kind })
}

/// Returns the types that a failing place wants; empty if it may want a text, or does not name types.
fn wanted_types<'s>(schema: &'s Value, place: &SchemaError) -> Vec<&'s str> {
    let types_of = |types: &'s Value| -> Option<Vec<&'s str>> {
        match types {
            Value::String(one) => Some(vec![one]),
            Value::Array(many) => many.iter().map(Value::as_str).collect(),
            _ => None,
        }
    };
    let found = schema.pointer(&place.schema_pointer);
    let types = match place.keyword.as_str() {
        "type" => found.and_then(types_of),
        "anyOf" | "oneOf" => found.and_then(Value::as_array).and_then(|branches| {
            let types = branches.iter().map(|branch| types_of(branch.get("type")?));
            let types: Option<Vec<_>> = types.collect();
            types.map(|types| types.concat())
        }),
        _ => None,
    };
    types
        .filter(|types| !types.contains(&"string"))
        .unwrap_or_default()
}

/// Writes the value at a pointer: as it is, unless there are edits in it.
fn write(out: &mut String, raw: &str, pointer: &str, edits: &BTreeMap<String, Edit>) {
    let is_below = |key: &String| {
        let rest = key.strip_prefix(pointer);
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    if let Some(Edit::Replace { text, .. }) = edits.get(pointer) {
        out.push_str(text);
        return;
    }
    if !edits.keys().any(is_below) {
        out.push_str(raw);
        return;
    }
    let mut is_first = true;
    let mut separate = |out: &mut String| {
        if !std::mem::replace(&mut is_first, false) {
            out.push(',');
        }
    };
    // The text was read as JSON before.
    if raw.starts_with('[') {
        out.push('[');
        let mut at = 0;
        let read = each_element::<()>(raw.as_bytes(), |element| {
            separate(out);
            write(
                out,
                element.get(),
                &child_pointer(pointer, &at.to_string()),
                edits,
            );
            at += 1;
            Ok(())
        });
        debug_assert!(read.is_ok());
        out.push(']');
        return;
    }
    out.push('{');
    let read = each_member(raw.as_bytes(), |name, value| {
        let place = child_pointer(pointer, &name);
        if !matches!(edits.get(&place), Some(Edit::Remove)) {
            separate(out);
            out.push_str(&Value::from(name.as_ref()).to_string());
            out.push(':');
            write(out, value.get(), &place, edits);
        }
    });
    debug_assert!(read.is_ok());
    out.push('}');
}

#[cfg(test)]
mod tests;

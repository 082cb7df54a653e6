//! Whether two subschemas with the same text certainly mean the same.

use serde_json::Value;

use super::document::SchemaLocation;
use super::node::{Conjunction, Node, Opaque};

/// Whether the node has the same assertion in the same form.
pub(super) fn has_opaque(node: &Node<'_>, wanted: &Opaque<'_>) -> bool {
    const IF: [&str; 3] = ["if", "then", "else"];
    const CONTAINS: [&str; 3] = ["contains", "minContains", "maxContains"];
    node.opaque.iter().any(|own| {
        if own.keyword != wanted.keyword {
            return false;
        }
        let (mine, theirs) = (own.location.value, wanted.location.value);
        let equal = match own.keyword {
            "if" => IF.iter().all(|k| mine.get(k) == theirs.get(k)),
            "contains" => CONTAINS.iter().all(|k| mine.get(k) == theirs.get(k)),
            _ => mine == theirs,
        };
        equal && same_meaning(&own.location, &wanted.location)
    })
}

/// Whether two subschemas of equal text certainly mean the same: the same dialect, and no reference with
/// different targets.
fn same_meaning(one: &SchemaLocation<'_>, other: &SchemaLocation<'_>) -> bool {
    let plain = |value: &Value| {
        let text = value.to_string();
        !text.contains("\"$ref\"") && !text.contains("Ref\"")
    };
    one.document.dialect == other.document.dialect
        && ((plain(one.value) && plain(other.value))
            || one.document.root() == other.document.root()
            || (one.document.definitions() == other.document.definitions()
                && one
                    .document
                    .definitions()
                    .into_iter()
                    .flatten()
                    .all(only_definitions)
                && only_definitions(one.value)
                && only_definitions(other.value)))
}

/// Whether every reference below leads into the definitions.
fn only_definitions(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().all(|(keyword, value)| match value {
            Value::String(target) if keyword == "$ref" => {
                target.starts_with("#/$defs/") || target.starts_with("#/definitions/")
            }
            _ if matches!(
                keyword.as_str(),
                "$dynamicRef" | "$recursiveRef" | "$id" | "id"
            ) =>
            {
                false
            }
            value => only_definitions(value),
        }),
        Value::Array(items) => items.iter().all(only_definitions),
        _ => true,
    }
}

/// Whether both have the same form and meaning. A narrowed writer is still covered.
pub(super) fn same_text(writer: &Conjunction<'_>, reader: &Conjunction<'_>) -> bool {
    reader.only.is_none()
        && reader.chosen.is_empty()
        && writer.locations.len() == reader.locations.len()
        && writer
            .locations
            .iter()
            .zip(&reader.locations)
            .all(|(x, y)| x.value == y.value && same_meaning(x, y))
}

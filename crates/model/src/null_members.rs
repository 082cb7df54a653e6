//! Members of listed objects that may be left out, so that their null means absence. Members of schemas and of `_meta`
//! have values that servers define; null is a value there.

use serde_json::{Map, Value};

/// The optional members of tools, prompts, templates and resources, except for the schema of a tool's arguments.
const OPTIONAL: [&str; 10] = [
    "title",
    "description",
    "outputSchema",
    "annotations",
    "icons",
    "execution",
    "_meta",
    "arguments",
    "mimeType",
    "size",
];
/// The optional members of values of these members, or of each element of a list there.
const INNER: [(&str, &[&str]); 4] = [
    (
        "annotations",
        &[
            "title",
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
            "audience",
            "priority",
            "lastModified",
        ],
    ),
    ("icons", &["mimeType", "sizes", "theme"]),
    ("execution", &["taskSupport"]),
    ("arguments", &["title", "description", "required"]),
];

/// Removes the optional members of a listed object whose value is null.
pub fn remove_nulls(object: &mut Map<String, Value>) {
    remove(object, &OPTIONAL);
    for (name, inner) in INNER {
        match object.get_mut(name) {
            Some(Value::Object(members)) => remove(members, inner),
            Some(Value::Array(elements)) => {
                let elements = elements.iter_mut().filter_map(Value::as_object_mut);
                elements.for_each(|members| remove(members, inner));
            }
            _ => {}
        }
    }
}

fn remove(members: &mut Map<String, Value>, names: &[&str]) {
    for name in names {
        if members.get(*name).is_some_and(Value::is_null) {
            members.remove(*name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn null_of_an_optional_member_is_removed_and_other_nulls_stay() {
        let mut object = json!({
            "name": null, "title": null, "description": null, "outputSchema": null, "unknown": null,
            "inputSchema": {"default": null, "description": null},
            "_meta": {"k": null},
            "annotations": {"readOnlyHint": null, "title": null, "mine": null},
            "icons": [{"src": null, "sizes": null}],
            "arguments": [{"name": "a", "required": null, "description": null}],
        });
        remove_nulls(object.as_object_mut().expect("an object"));
        assert_eq!(
            object,
            json!({
                "name": null, "unknown": null,
                "inputSchema": {"default": null, "description": null},
                "_meta": {"k": null},
                "annotations": {"mine": null},
                "icons": [{"src": null}],
                "arguments": [{"name": "a"}],
            })
        );
    }
}

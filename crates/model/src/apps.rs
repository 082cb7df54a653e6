//! Members of the extension MCP Apps (`io.modelcontextprotocol/ui`) that the broker reads, although it does not carry the
//! extension: who may see a tool, and what a page in a resource may do.

use serde_json::{Map, Value};

/// The member of `_meta` of a tool or a resource.
pub const UI: &str = "ui";

/// Whether a tool is for the pages of its server only: `_meta.ui.visibility` is present and does not have `model`. A value
/// that is not a list names no reader, so it hides the tool too; null is an absent value.
pub fn is_for_pages_only(tool: &Map<String, Value>) -> bool {
    let visibility = ui(tool).and_then(|ui| ui.get("visibility"));
    match visibility {
        None | Some(Value::Null) => false,
        Some(Value::Array(readers)) => !readers.iter().any(|reader| reader == "model"),
        Some(Value::String(reader)) => reader != "model",
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => true,
    }
}

/// The member `_meta.ui` of a listed tool or resource.
pub fn ui(listed: &Map<String, Value>) -> Option<&Value> {
    listed.get("_meta")?.get(UI)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tool_is_for_pages_only_if_its_visibility_lacks_the_model() {
        for (meta, expected) in [
            (json!({}), false),
            (json!({"ui": {}}), false),
            (json!({"ui": null}), false),
            (json!({"ui": {"visibility": null}}), false),
            (json!({"ui": {"visibility": ["model", "app"]}}), false),
            (json!({"ui": {"visibility": ["model"]}}), false),
            (json!({"ui": {"visibility": "model"}}), false),
            (json!({"ui": {"visibility": ["app"]}}), true),
            (json!({"ui": {"visibility": []}}), true),
            (json!({"ui": {"visibility": ["Model", 1]}}), true),
            (json!({"ui": {"visibility": "app"}}), true),
            (json!({"ui": {"visibility": {"model": true}}}), true),
            (json!({"visibility": ["app"]}), false),
        ] {
            let tool = json!({"name": "t", "_meta": meta});
            let tool = tool.as_object().unwrap();
            assert_eq!(is_for_pages_only(tool), expected, "{meta}");
        }
    }
}

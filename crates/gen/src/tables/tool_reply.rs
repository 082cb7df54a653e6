//! The `meta_desc` reply of a tool.

use std::ops::Range;

use broker_model::NodePath;
use broker_model::json::to_text;
use serde_json::Value;

use super::summary::tool_summary;
use super::{args_schema, head};
use crate::plan::ToolEntry;

/// The `meta_desc` reply of a tool.
pub(super) struct ToolReply {
    pub(super) text: String,
    /// The place of the argument schema in it.
    pub(super) args_schema: Range<usize>,
    /// The place of the schema of results, if the tool has one.
    pub(super) output_schema: Option<Range<usize>>,
}

impl ToolReply {
    pub(super) fn new(path: &NodePath, tool: &ToolEntry<'_>) -> Self {
        let raw = &tool.tool.raw;
        let description = tool.description().unwrap_or_default();
        let mut text = head(path, tool.tool.kind().as_str(), &tool_summary(tool));
        // Returns the place of the value.
        let mut member = |key: &str, value: String| {
            text.push_str(&format!(",\"{key}\":{value}"));
            text.len() - value.len()..text.len()
        };
        member("description", Value::from(description).to_string());
        let args_schema = member("args_schema", args_schema(tool));
        if let Some(example) = tool.said.and_then(|said| said.example_args.as_ref()) {
            member("example_args", to_text(example));
        }
        let output_schema = raw.get("outputSchema").filter(|schema| !schema.is_null());
        let output_schema = output_schema.map(|value| member("output_schema", to_text(value)));
        if let Some(value) = tool.annotations() {
            member("annotations", to_text(&value));
        }
        if tool.tool.unvalidated {
            member("unvalidated", "true".to_owned());
        }
        member("digest", Value::from(tool.tool.digest.as_str()).to_string());
        text.push('}');
        Self {
            text,
            args_schema,
            output_schema,
        }
    }
}

//! The part of the list entry of a tool, prompt, template or resource that the lock has.

use broker_model::access::Hint;
use broker_model::item::ItemKind;
use broker_model::json::to_text;
use broker_model::null_members::remove_nulls;
use serde_json::Value;

use crate::plan::ToolEntry;

/// The members of a tool's `tools/list` entry other than name and schemas; of a prompt, template or resource all
/// members of its list entry.
pub(super) fn list_head(tool: &ToolEntry<'_>) -> String {
    let raw = &tool.tool.raw;
    if tool.tool.kind() != ItemKind::Tool {
        return item_head(tool);
    }
    let title = raw.get("title").filter(|title| title.is_string());
    let members = [
        ("title", title.map(to_text)),
        (
            "description",
            tool.description().map(|text| Value::from(text).to_string()),
        ),
        (
            "annotations",
            tool.annotations()
                .and_then(listed_annotations)
                .map(|value| to_text(&value)),
        ),
    ];
    let members = members.into_iter();
    let members: Vec<_> = members
        .filter_map(|(key, value)| Some(format!("\"{key}\":{}", value?)))
        .collect();
    members.join(",")
}

/// Returns the annotations as clients read them: a client refuses a whole list because of a hint that is not a boolean,
/// or a title that is not a text. Such a member is left out.
fn listed_annotations(annotations: Value) -> Option<Value> {
    let Value::Object(mut members) = annotations else {
        return None;
    };
    members.retain(|key, value| match Hint::from_key(key) {
        Some(_) => value.is_boolean(),
        None => key != "title" || value.is_string(),
    });
    Some(Value::Object(members))
}

/// Returns the members of the list entry of a prompt, template or resource, as the server sent them; the description
/// may come from the config.
fn item_head(tool: &ToolEntry<'_>) -> String {
    let mut raw = tool.tool.raw.clone();
    raw.remove("inputSchema");
    remove_nulls(&mut raw);
    if let Some(description) = tool.description() {
        raw.insert("description".to_owned(), Value::from(description));
    }
    let members = to_text(&raw);
    let inner = members
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    inner.unwrap_or_default().to_owned()
}

//! Every text of a tool, and every text of a source itself: strings and names of members, each with its
//! place and its kind.

use serde_json::{Map, Value};

use broker_model::item::ItemKind;
use broker_model::json::{child_pointer, exact_number};
use broker_model::lock::{LockedSource, LockedTool};

/// The kind of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The tool's name or title.
    Name,
    /// The name of a property in the input schema.
    Parameter,
    /// The name of another member.
    Key,
    /// Prose for the reader.
    Prose,
    /// A value: of an enum, a default, a pattern.
    Data,
}

/// One text.
#[derive(Debug)]
pub(super) struct Text<'a> {
    /// A pointer into the raw tool, or into the source's snapshot; for a member's name, to the member.
    pub(super) pointer: String,
    pub(super) text: &'a str,
    pub(super) role: Role,
    /// The member, if this is its name.
    pub(super) member: Option<&'a Value>,
}

/// The interpretation of the members of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberContext {
    Schema {
        input: bool,
    },
    /// Names and their schemas.
    Schemas {
        input: bool,
    },
    Data,
    /// A text of the server about itself.
    Itself,
    Other,
}

/// The texts of a source itself: its instructions, every text of its `serverInfo`, and the names and texts
/// of its capabilities.
pub(super) fn texts_of_source(source: &LockedSource) -> Vec<Text<'_>> {
    let mut texts = Vec::new();
    if let Some(text) = &source.instructions {
        texts.push(Text {
            pointer: "/instructions".to_owned(),
            text,
            role: Role::Prose,
            member: None,
        });
    }
    let own = [
        (&source.server_info, "/server_info", MemberContext::Itself),
        (&source.capabilities, "/capabilities", MemberContext::Data),
    ];
    for (value, at, place) in own {
        below(value, at.to_owned(), place, Role::Prose, &mut texts);
    }
    texts
}

/// In the order of the tool. The name of a tool with an alias is not among them: no model reads it.
pub(super) fn texts_of(tool: &LockedTool) -> Vec<Text<'_>> {
    let mut texts = Vec::new();
    members(&tool.raw, "", MemberContext::Other, &mut texts);
    if tool.kind() == ItemKind::Tool && tool.exposed_name != tool.upstream_name {
        texts.retain(|text| text.pointer != "/name" || text.role != Role::Name);
    }
    texts
}

fn members<'a>(
    object: &'a Map<String, Value>,
    at: &str,
    place: MemberContext,
    texts: &mut Vec<Text<'a>>,
) {
    for (name, value) in object {
        let pointer = child_pointer(at, name);
        let role = match place {
            MemberContext::Schemas { input: true } => Role::Parameter,
            _ => Role::Key,
        };
        texts.push(Text {
            pointer: pointer.clone(),
            text: name,
            role,
            member: Some(value),
        });
        let inner = match (place, name.as_str()) {
            (MemberContext::Other, "inputSchema") if at.is_empty() => {
                MemberContext::Schema { input: true }
            }
            (MemberContext::Other, "outputSchema") if at.is_empty() => {
                MemberContext::Schema { input: false }
            }
            (MemberContext::Schemas { input }, _) => MemberContext::Schema { input },
            (MemberContext::Schema { input }, "properties") => MemberContext::Schemas { input },
            (
                MemberContext::Schema { .. },
                "enum" | "const" | "default" | "required" | "pattern" | "$ref" | "$schema" | "$id"
                | "format" | "type",
            ) => MemberContext::Data,
            (place, _) => place,
        };
        let role = match (inner, name.as_str()) {
            (MemberContext::Other, "name" | "title") if at.is_empty() => Role::Name,
            (MemberContext::Itself, "name" | "title") => Role::Name,
            (MemberContext::Data, _) => Role::Data,
            _ => Role::Prose,
        };
        below(value, pointer, inner, role, texts);
    }
}

fn below<'a>(
    value: &'a Value,
    at: String,
    place: MemberContext,
    role: Role,
    texts: &mut Vec<Text<'a>>,
) {
    match value {
        // Digits have no meaning for a model.
        Value::String(_) if exact_number(value).is_some() => {}
        Value::String(text) => texts.push(Text {
            pointer: at,
            text,
            role,
            member: None,
        }),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                below(item, format!("{at}/{index}"), place, role, texts);
            }
        }
        Value::Object(object) => members(object, &at, place, texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

//! One element of a list: its key, and the checks whether the broker can represent it.

use broker_model::LeftOutCode;
use broker_model::item::{ItemKind, LIVE, id_of, is_ambiguous, object_schema, prompt_schema};
use broker_model::json::{self, each_member, estimate};
use broker_model::snapshot::ListedTool;
use broker_model::uri_template::UriTemplate;
use serde_json::{Map, Value};

/// The maximum bytes of the text of one tool.
pub(super) const MAX_TOOL_BYTES: usize = 1 << 20;
/// The maximum bytes that one tool may take once it is parsed; a schema within the limits of a lock
/// takes less.
const MAX_PARSED_BYTES: u64 = 16 << 20;
/// The member of a tool with the schema of its arguments.
const SCHEMA: &str = "inputSchema";
/// The members of an object that are texts, if they are there.
const TEXTS: [&str; 2] = ["title", "description"];
/// The members of a tool that are schemas. Null means that the second one is absent.
const SCHEMAS: [(&str, bool); 2] = [(SCHEMA, false), ("outputSchema", true)];

/// The reason why an element cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: LeftOutCode,
    /// The JSON pointer of the place within the element.
    pub(super) place: String,
    pub(super) reason: String,
}

impl Refusal {
    fn new(code: LeftOutCode, reason: impl Into<String>) -> Self {
        Self {
            code,
            place: String::new(),
            reason: reason.into(),
        }
    }

    fn at_member(code: LeftOutCode, member: &str, reason: &str) -> Self {
        Self {
            place: json::child_pointer("", member),
            ..Self::new(code, reason)
        }
    }
}

/// Returns the key of an element whose text may be invalid otherwise: `None` unless it has one identifier, a string.
pub(super) fn key_of(raw: &str, kind: ItemKind) -> Option<String> {
    let (mut id, mut count) = (None, 0);
    let read = each_member(raw.as_bytes(), |member, value| {
        if member == kind.member() {
            count += 1;
            id = serde_json::from_str::<String>(value.get()).ok();
        }
    });
    let id = read
        .ok()
        .and(id)
        .filter(|id| count == 1 && !id.is_empty())?;
    let is_key = kind == ItemKind::Tool && is_ambiguous(&id);
    (!is_key).then(|| kind.key(&id))
}

/// Reads an element. Its parsed form is freed before the next one is parsed.
pub(super) fn read(raw: &str, kind: ItemKind) -> Result<ListedTool, Refusal> {
    if raw.len() > MAX_TOOL_BYTES {
        let bytes = raw.len();
        let reason = format!("it has {bytes} bytes, at most {MAX_TOOL_BYTES} are allowed");
        return Err(Refusal::new(LeftOutCode::TooLarge, reason));
    }
    let parsed = estimate(raw.as_bytes()).bytes;
    if parsed > MAX_PARSED_BYTES {
        let reason = format!(
            "it would take {parsed} bytes once parsed, at most {MAX_PARSED_BYTES} are allowed"
        );
        return Err(Refusal::new(LeftOutCode::TooLarge, reason));
    }
    let value = json::parse(raw)
        .map_err(|error| Refusal::new(LeftOutCode::JsonInvalid, error.to_string()))?;
    let Value::Object(members) = value else {
        return Err(Refusal::new(
            LeftOutCode::NotAnObject,
            format!("a {} is not an object", kind.as_str()),
        ));
    };
    let key = read_key(&members, kind)?;
    for name in TEXTS {
        let text = members.get(name);
        if text.is_some_and(|text| !text.is_string() && !text.is_null()) {
            let reason = format!("`{name}` is not a string");
            return Err(Refusal::at_member(
                LeftOutCode::MemberInvalid,
                name,
                &reason,
            ));
        }
    }
    match args_schema(kind, &members)? {
        None => Ok(ListedTool::new(key, raw)),
        Some(schema) => Ok(ListedTool::new(key, &with_schema(raw, &schema))),
    }
}

fn read_key(members: &Map<String, Value>, kind: ItemKind) -> Result<String, Refusal> {
    let member = kind.member();
    let wrong = |reason: String| {
        Err(Refusal::at_member(
            LeftOutCode::NameInvalid,
            member,
            &reason,
        ))
    };
    match members.get(member) {
        Some(Value::String(uri)) if kind == ItemKind::Resource && uri == LIVE => {
            wrong(format!("`{LIVE}` is not a URI"))
        }
        Some(Value::String(name)) if kind == ItemKind::Tool && is_ambiguous(name) => {
            wrong("its name is like the key of a prompt or resource".to_owned())
        }
        Some(Value::String(name)) if !name.is_empty() => Ok(kind.key(name)),
        Some(Value::String(_)) => wrong(format!("its `{member}` is empty")),
        _ => wrong(format!("`{member}` is not a string")),
    }
}

/// Returns the schema of the arguments that a prompt, template or resource takes; `None` for a tool, because it has the
/// server's schema.
fn args_schema(kind: ItemKind, raw: &Map<String, Value>) -> Result<Option<Value>, Refusal> {
    let wrong =
        |member: &str, reason: &str| Refusal::at_member(LeftOutCode::MemberInvalid, member, reason);
    if kind != ItemKind::Tool && raw.contains_key(SCHEMA) {
        let reason = format!("it has the member `{SCHEMA}`, which is one of tools");
        return Err(wrong(SCHEMA, &reason));
    }
    Ok(match kind {
        ItemKind::Tool => {
            for (name, may_be_null) in SCHEMAS {
                let schema = raw.get(name);
                let is_fine =
                    |schema: &Value| schema.is_object() || (may_be_null && schema.is_null());
                if schema.is_some_and(|schema| !is_fine(schema)) {
                    return Err(wrong(name, &format!("`{name}` is not an object")));
                }
            }
            None
        }
        ItemKind::Prompt => Some(prompt_schema(raw)),
        ItemKind::Template => {
            let template = UriTemplate::parse(id_of(kind, raw));
            let template = template.map_err(|error| wrong(kind.member(), &error.to_string()))?;
            Some(template.schema())
        }
        ItemKind::Resource => Some(object_schema(Map::new(), Vec::new())),
    })
}

/// Returns the text of an object with the schema of its arguments, so that it is comparable like a tool.
fn with_schema(raw: &str, schema: &Value) -> String {
    let inner = raw.trim().strip_suffix('}').unwrap_or(raw);
    format!(r#"{inner},"{SCHEMA}":{schema}}}"#)
}

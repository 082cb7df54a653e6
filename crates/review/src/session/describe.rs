//! A tool as text for a reviewer: what it may do, its description, its arguments and results. Every member is
//! in it: those without a form here follow as valid JSON. Text of a server is behind `| ` or in one line, so that it
//! cannot look like a line of this program: names of members that this file does not know are quoted.

use broker_model::json::to_text;
use broker_model::lock::LockedTool;
use broker_model::null_members::remove_nulls;
use broker_model::terminal::{Text, one_line};
use broker_terminal::{WIDTH, columns};
use serde_json::{Map, Value};

use crate::audits::Subject;

/// Levels of nested objects whose properties are listed; deeper ones are JSON.
const MAX_DEPTH: usize = 4;
/// Columns that the review puts before a line.
const MARGIN: usize = 2;
/// The annotations that [`may_do`] puts into words.
const HINTS: [&str; 4] = [
    "readOnlyHint",
    "destructiveHint",
    "idempotentHint",
    "openWorldHint",
];

/// The lines of the item.
pub(super) fn lines(subject: &Subject<'_>) -> Vec<String> {
    let mut out = Vec::new();
    match subject.tool {
        Some(tool) => describe_tool(&mut out, tool),
        None => {
            let source = subject.source;
            if let Some(name) = source.server_info.get("name") {
                out.push(format!("server: {}", one_line(&plain(name))));
            }
            if let Some(text) = &source.instructions {
                out.push("instructions:".to_owned());
                quote(&mut out, "", text);
            }
        }
    }
    out
}

fn describe_tool(out: &mut Vec<String>, tool: &LockedTool) {
    let mut raw = tool.raw.clone();
    remove_nulls(&mut raw);
    raw.remove("name");
    out.push(if tool.exposed_name == tool.upstream_name {
        format!("name: {}", one_line(&tool.upstream_name))
    } else {
        let [alias, name] = [&tool.exposed_name, &tool.upstream_name].map(|name| one_line(name));
        format!("name: {alias}; the server calls it {name}")
    });
    if let Some(title) = raw.remove("title") {
        out.push(format!("title: {}", one_line(&plain(&title))));
    }
    let mut annotations = raw.remove("annotations");
    out.push(format!("may do: {}", may_do(annotations.as_mut())));
    if let Some(rest) =
        annotations.filter(|rest| rest.as_object().is_none_or(|rest| !rest.is_empty()))
    {
        json(out, "", "annotations", &rest);
    }
    match raw.remove("description") {
        Some(Value::String(text)) => {
            out.push("description:".to_owned());
            quote(out, "", &text);
        }
        Some(other) => json(out, "", "description", &other),
        None => out.push("description: none".to_owned()),
    }
    for (member, title) in [("inputSchema", "arguments"), ("outputSchema", "results")] {
        if let Some(schema) = raw.remove(member) {
            let notes = broker_schema::notes(&schema);
            describe_schema(out, title, schema);
            out.extend(notes.iter().map(|note| {
                let place = one_line(&note.pointer);
                format!("{title}, at /{member}{place}: {}", note.text)
            }));
        }
    }
    if tool.unvalidated {
        out.push("validation: the invalid parts of the schemas are not enforced; the tool is served unvalidated".to_owned());
    }
    if !tool.search_hints.is_empty() {
        let hints: Vec<_> = tool
            .search_hints
            .iter()
            .map(|hint| one_line(hint))
            .collect();
        out.push(format!("search hints of the config: {}", hints.join("; ")));
    }
    for (member, value) in raw {
        // In quotes, since the name is a text of the server too.
        json(out, "", &compact(&member.into()), &value);
    }
}

/// The annotations in words, with the defaults of the specification; takes out those that it says.
fn may_do(annotations: Option<&mut Value>) -> String {
    let Some(Value::Object(annotations)) = annotations else {
        return "anything; the server gives no annotations".to_owned();
    };
    let mut said = false;
    let [read_only, destructive, idempotent, open_world] = HINTS.map(|hint| {
        let value = annotations.get(hint).and_then(Value::as_bool);
        if value.is_some() {
            annotations.remove(hint);
            said = true;
        }
        value
    });
    if !said {
        return "anything; no annotation of the server limits it".to_owned();
    }
    let mut words = vec![match (read_only, destructive) {
        (Some(true), _) => "read",
        (_, Some(false)) => "read and add, not overwrite or delete",
        _ => "read, add, overwrite and delete",
    }];
    if idempotent == Some(true) {
        words.push("a repeated call has no further effect");
    }
    words.push(if open_world == Some(false) {
        "only in a closed set of things"
    } else {
        "also in systems outside"
    });
    format!("{} (as the server claims)", words.join("; "))
}

/// Writes the properties of a schema as a list, and the rest as JSON.
fn describe_schema(out: &mut Vec<String>, title: &str, schema: Value) {
    let Value::Object(mut schema) = schema else {
        return json(out, "", title, &schema);
    };
    let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
    if is_object {
        schema.remove("type");
    }
    let mut list = Vec::new();
    properties(&mut list, "  ", &mut schema, 1);
    let none = if list.is_empty() { " none listed" } else { "" };
    out.push(format!("{title}:{none}"));
    out.append(&mut list);
    if !is_object || !schema.is_empty() {
        json(out, "", &format!("{title}, further rules"), &schema.into());
    }
}

/// Takes the listed properties out of a schema. A name in `required` that is not listed stays there.
fn properties(out: &mut Vec<String>, indent: &str, schema: &mut Map<String, Value>, depth: usize) {
    let listed = match schema.remove("properties") {
        Some(Value::Object(listed)) => listed,
        Some(other) => {
            schema.insert("properties".to_owned(), other);
            return;
        }
        None => return,
    };
    let mut required = match schema.remove("required") {
        Some(Value::Array(names)) => names,
        Some(other) => {
            schema.insert("required".to_owned(), other);
            Vec::new()
        }
        None => Vec::new(),
    };
    for (name, property) in listed {
        let before = required.len();
        required.retain(|one| one.as_str() != Some(&name));
        let is_required = before > required.len();
        describe_property(out, indent, (&name, property), is_required, depth);
    }
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
}

fn describe_property(
    out: &mut Vec<String>,
    indent: &str,
    (name, property): (&str, Value),
    is_required: bool,
    depth: usize,
) {
    let need = if is_required { ", required" } else { "" };
    let name = one_line(name);
    let Value::Object(mut schema) = property else {
        let property = compact(&property);
        return out.push(format!("{indent}- {name}: {property}{need}"));
    };
    let kind = match schema.remove("type") {
        Some(Value::String(kind)) => one_line(&kind),
        Some(other) => compact(&other),
        None => "any type".to_owned(),
    };
    out.push(format!("{indent}- {name}: {kind}{need}"));
    let inner = format!("{indent}  ");
    if let Some(Value::String(text)) = schema.get("description") {
        quote(out, &inner, text);
        schema.remove("description");
    }
    if depth < MAX_DEPTH && schema.get("properties").is_some_and(Value::is_object) {
        properties(out, &inner, &mut schema, depth + 1);
    }
    if !schema.is_empty() {
        json(out, &inner, "rules", &schema.into());
    }
}

/// The lines of a text of the server.
fn quote(out: &mut Vec<String>, indent: &str, text: &str) {
    out.extend(text.split('\n').map(|line| format!("{indent}| {line}")));
}

/// Adds a value as JSON: behind its title if both fit on a line, else in separate lines behind `| `.
fn json(out: &mut Vec<String>, indent: &str, title: &str, value: &Value) {
    let line = format!("{indent}{title}: {}", compact(value));
    if columns(&line) <= WIDTH - MARGIN {
        return out.push(line);
    }
    out.push(format!("{indent}{title}:"));
    quote(out, indent, Text::json(value).as_str().trim_end());
}

/// A value as JSON in one line, with invisible characters as `\u…`.
fn compact(value: &Value) -> String {
    let text = Text::json_text(&to_text(value));
    text.as_str().trim_end().to_owned()
}

/// A text without its quotes, any other value as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| compact(value), str::to_owned)
}

#[cfg(test)]
mod tests {
    use broker_model::digest::Digest;
    use serde_json::json;

    use super::*;

    fn described(raw: Value) -> Vec<String> {
        described_with_hints(raw, &[])
    }

    fn described_with_hints(raw: Value, hints: &[&str]) -> Vec<String> {
        let Value::Object(raw) = raw else { panic!() };
        let mut out = Vec::new();
        describe_tool(
            &mut out,
            &LockedTool {
                search_hints: hints.iter().map(|hint| (*hint).to_owned()).collect(),
                upstream_name: "x".to_owned(),
                exposed_name: "x".to_owned(),
                summary: None,
                digest: Digest::from_tool(&raw),
                unvalidated: false,
                raw,
            },
        );
        out
    }

    #[test]
    fn described_tool_has_the_search_hints_of_the_config() {
        let lines = described_with_hints(json!({"name": "x"}), &["one", "two"]);
        assert_eq!(
            lines.last().map(String::as_str),
            Some("search hints of the config: one; two")
        );
    }

    #[test]
    fn described_tool_names_every_member() {
        let lines = described(json!({
            "name": "x",
            "title": "X",
            "description": "First.\narguments: none",
            "annotations": {"readOnlyHint": true, "openWorldHint": false, "other": 1},
            "inputSchema": {
                "type": "object",
                "additionalProperties": false,
                "required": ["id", "ghost"],
                "properties": {
                    "id": {"type": "string", "description": "The id.", "minLength": 1},
                    "filter": {"type": "object", "properties": {"deep": true}},
                },
            },
            "_meta": {"k": "v"},
            "may do": "read",
        }));
        assert_eq!(
            lines,
            [
                "name: x",
                "title: X",
                "may do: read; only in a closed set of things (as the server claims)",
                "annotations: {\"other\":1}",
                "description:",
                "| First.",
                "| arguments: none",
                "arguments:",
                "  - filter: object",
                "    - deep: true",
                "  - id: string, required",
                "    | The id.",
                "    rules: {\"minLength\":1}",
                "arguments, further rules: {\"additionalProperties\":false,\"required\":[\"ghost\"]}",
                "\"_meta\": {\"k\":\"v\"}",
                "\"may do\": \"read\"",
            ]
        );
    }

    #[test]
    fn described_json_that_needs_several_lines_is_valid() {
        let schema =
            json!({"anyOf": [{"const": "a\u{202e}b"}, {"minimum": 1, "title": "x ".repeat(60)}]});
        let lines = described(json!({"name": "x", "inputSchema": schema}));
        let at = lines
            .iter()
            .position(|line| line == "arguments, further rules:")
            .expect("the title");
        let json: String = lines[at + 1..]
            .iter()
            .map(|line| line.strip_prefix("| ").expect("a quoted line"))
            .collect();
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), schema);
        assert!(json.contains("a\\u202eb"), "{json}");
    }

    #[test]
    fn described_schema_keeps_properties_that_are_no_object() {
        let lines = described(json!({"name": "x", "inputSchema": {"properties": ["a"]}}));
        assert_eq!(
            lines.last().unwrap(),
            "arguments, further rules: {\"properties\":[\"a\"]}"
        );
    }

    #[test]
    fn described_tool_without_annotations_may_do_anything() {
        let lines = described(json!({"name": "x", "inputSchema": {"type": "object"}}));
        assert_eq!(
            lines,
            [
                "name: x",
                "may do: anything; the server gives no annotations",
                "description: none",
                "arguments: none listed",
            ]
        );
    }
}

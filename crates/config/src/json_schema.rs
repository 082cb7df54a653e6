//! The JSON Schema of the config, made from the table of keys: draft 7, since editors understand it.

use serde_json::{Map, Value, json};

use super::keys::{self, Key, Table};

/// The levels that the schema has, and the definitions.
const DEFINITION: &str = "=";
/// The definition of a config with the servers of a client.
const SERVERS: &str = "ServersConfig";

/// Returns the schema of the config that an operator writes.
pub fn config() -> Value {
    from_table(keys::table())
}

/// Returns the schema of a config with these keys.
pub(super) fn from_table(table: &Table) -> Value {
    let mut definitions = Map::new();
    for row in &table.rows {
        if row.level == DEFINITION {
            definitions.insert(row.name.to_owned(), described(definition(row), row));
        } else if row.name.is_empty() && !row.kind.is_empty() {
            let keys = table.rows.iter();
            let keys = keys.filter(|key| key.level == row.level && !key.name.is_empty());
            definitions.insert(row.kind.to_owned(), described(object(keys), row));
        }
    }
    with_entries(json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Config",
        "description": "A config of mcp-broker: a tree of nodes with servers, or the `mcpServers` of other clients.",
        "anyOf": [{"$ref": "#/definitions/TreeConfig"}, {"$ref": "#/definitions/ServersConfig"}],
        "definitions": definitions,
    }))
}

/// Returns the schema of an object with these keys and no others.
fn object<'a>(keys: impl Iterator<Item = &'a Key>) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for key in keys {
        let mut schema = describe_kind(key.kind, key.range);
        if schema.get("$ref").is_some() && !key.text.is_empty() {
            schema = json!({"allOf": [schema]});
        }
        properties.insert(key.name.to_owned(), described(schema, key));
        if key.default == "required" {
            required.push(key.name);
        }
    }
    let mut schema =
        json!({"type": "object", "additionalProperties": false, "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Returns the schema of a definition.
fn definition(row: &Key) -> Value {
    let parts = || row.range.split('|');
    match row.kind {
        "choice" => json!({"type": "string", "enum": parts().collect::<Vec<_>>()}),
        "any" => {
            let alternatives = parts().map(|part| {
                let (kind, range) = part.split_once(' ').unwrap_or((part, ""));
                describe_kind(kind, range)
            });
            json!({"anyOf": alternatives.collect::<Vec<_>>()})
        }
        kind => describe_kind(kind, row.range),
    }
}

/// Returns the schema of the values of a kind within a range.
fn describe_kind(kind: &str, range: &str) -> Value {
    let inner = |kind: &str| describe_kind(&kind[1..kind.len() - 1], "");
    let (mut schema, [low, high]) = match kind {
        "boolean" => (json!({"type": kind}), [""; 2]),
        "object" => (json!({"type": kind, "additionalProperties": true}), [""; 2]),
        "string" => (json!({"type": kind}), ["minLength", "maxLength"]),
        "integer" | "number" => (json!({"type": kind}), ["minimum", "maximum"]),
        _ if kind.starts_with('[') => (
            json!({"type": "array", "items": inner(kind)}),
            ["minItems", "maxItems"],
        ),
        _ if kind.starts_with('{') => (
            json!({"type": "object", "additionalProperties": inner(kind)}),
            [""; 2],
        ),
        _ => (json!({"$ref": format!("#/definitions/{kind}")}), [""; 2]),
    };
    let (bounds, pattern) = match range.split_once('^') {
        Some((bounds, pattern)) => (bounds.trim(), Some(pattern)),
        None => (range, None),
    };
    let (least, most) = bounds.split_once("..").unwrap_or_default();
    for (name, bound) in [(low, least), (high, most)] {
        if let Ok(bound) = bound.parse::<u64>() {
            schema[name] = json!(bound);
        } else if let Ok(bound) = bound.parse::<f64>() {
            schema[name] = json!(bound);
        }
    }
    if let Some(pattern) = pattern {
        schema["pattern"] = json!(format!("^{pattern}"));
    }
    schema
}

/// Adds the text of a key, with its default.
fn described(mut schema: Value, key: &Key) -> Value {
    let text = match key.default {
        "" | "required" => key.text.to_owned(),
        default => format!("{} Default: {default}.", key.text),
    };
    let text = without_links(&text);
    if !text.is_empty() {
        schema["description"] = json!(text);
    }
    schema
}

/// Returns a text of a page without the targets of its links.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, target)) = rest.split_once("](") {
        let (label, after) = (before.rsplit_once('['), target.split_once(')'));
        let (Some((head, label)), Some((_, after))) = (label, after) else {
            break;
        };
        out.extend([head, label]);
        rest = after;
    }
    out + rest
}

/// An entry of `mcpServers`: a source that may have keys of other clients, and that may be disabled, with
/// any content.
fn with_entries(mut schema: Value) -> Value {
    let mut entry = schema["definitions"]["Source"].clone();
    if let Some(members) = entry.as_object_mut() {
        members.remove("additionalProperties");
        members.remove("required");
        members.remove("oneOf");
    }
    entry["description"] = "A server in the format of other clients; `command` is the program itself, neither split nor run by a shell. Keys of other clients are ignored.".into();
    let properties = &mut entry["properties"];
    for key in ["backend", "type"] {
        properties[key] = json!({"description": "The transport.", "enum": ["stdio", "http", "sse", "streamable-http", "streamableHttp", "streamable_http"], "type": "string"});
    }
    for key in ["httpUrl", "serverUrl"] {
        properties[key] =
            json!({"description": "The URL, in files of other clients.", "type": "string"});
    }
    properties["auth"] = json!({"description": "As in a source; other values are ignored."});
    let level = properties["trust"].take();
    properties["trust"] = json!({"anyOf": [level, {"description": "Ignored.", "type": "boolean"}]});
    properties["enabled"] =
        json!({"description": "`false` leaves the entry out.", "type": "boolean"});
    // Other clients count milliseconds: a value above the bound for seconds is ignored with a warning.
    if let Some(timeout) = properties["timeout"].as_object_mut() {
        timeout.remove("maximum");
    }
    let off = json!({"anyOf": [
        {"properties": {"disabled": {"const": true}}, "required": ["disabled"]},
        {"properties": {"enabled": {"const": false}}, "required": ["enabled"]},
    ]});
    let on = std::mem::replace(
        &mut entry,
        json!({"if": off, "then": {"type": "object"}, "else": {}}),
    );
    entry["description"] = on["description"].clone();
    entry["else"] = on;
    entry["else"]["anyOf"] = ["command", "url", "httpUrl", "serverUrl"]
        .map(|key| json!({"required": [key]}))
        .to_vec()
        .into();
    schema["definitions"]["Entry"] = entry;
    with_servers(&mut schema["definitions"]);
    schema
}

/// Adds the form of a config with the servers of a client, and the rules between keys.
fn with_servers(definitions: &mut Value) {
    let mut servers = definitions["TreeConfig"].clone();
    servers["description"] =
        json!("The format of other MCP clients; each entry becomes a node `/name`.");
    servers["required"] = json!(["mcpServers"]);
    servers["not"] = json!({"required": ["tree"]});
    if let Some(members) = servers.as_object_mut() {
        members.remove("additionalProperties");
    }
    let remove = |form: &mut Value, key: &str| {
        if let Some(properties) = form["properties"].as_object_mut() {
            properties.remove(key);
        }
    };
    remove(&mut servers, "tree");
    definitions[SERVERS] = servers;
    remove(&mut definitions["TreeConfig"], "mcpServers");
    definitions["Auth"]["minProperties"] = json!(1);
    definitions["Auth"]["maxProperties"] = json!(1);
    definitions["Source"]["oneOf"] = json!([{"required": ["command"]}, {"required": ["url"]}]);
}

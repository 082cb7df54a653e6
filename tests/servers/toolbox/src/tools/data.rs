//! The tools on JSON: `json_get`, `json_format` and the schema side of `data_table`.

use serde_json::{Value, json};

use super::schema::{choice, object, string};
use super::{Answer, Arguments, Failure, Tool, table};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool {
            name: "json_get",
            title: "Read from JSON",
            description: "Reads the value at a JSON pointer (RFC 6901) in a JSON object. The empty pointer is the whole document.",
            input: object(
                json!({
                    "document": {"type": "object", "description": "The object to read from; any members"},
                    "pointer": string("Where to read, such as `/users/0/name`"),
                }),
                &["document", "pointer"],
            ),
            output: Some(object(
                json!({"value": {"description": "The value at the pointer, of any type"}}),
                &["value"],
            )),
            run: get,
        },
        Tool {
            name: "json_format",
            title: "Format JSON",
            description: "Checks a JSON text and writes it again, pretty or compact, with the members of every object sorted by name.",
            input: object(
                json!({
                    "text": string("The JSON text"),
                    "style": choice("How to write it; pretty when left out", &["pretty", "compact"]),
                }),
                &["text"],
            ),
            output: None,
            run: format,
        },
        Tool {
            name: "data_table",
            title: "Sort and sum up rows",
            description: "Takes rows of named values, sorts them, cuts them to a limit, and works out sums, means and the like over all rows.",
            input: object(
                json!({
                    "rows": {
                        "type": "array",
                        "maxItems": table::MAX_ROWS,
                        "description": "The rows; each is an object from column name to value",
                        "items": {
                            "type": "object",
                            "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
                        },
                    },
                    "sort": {
                        "type": "object",
                        "description": "How to sort; the rows stay in order when left out",
                        "properties": {
                            "by": string("The column to sort by; rows without it come last"),
                            "order": choice("Ascending when left out", &["ascending", "descending"]),
                        },
                        "required": ["by"],
                        "additionalProperties": false,
                    },
                    "limit": super::schema::integer("Answer with at most this many rows", 0, 10_000),
                    "aggregate": {
                        "type": "array",
                        "maxItems": table::MAX_AGGREGATES,
                        "description": "What to work out over all rows, before the limit",
                        "items": object(
                            json!({
                                "column": string("The column to read; only its numbers count"),
                                "function": choice("What to work out", &["count", "sum", "mean", "min", "max"]),
                            }),
                            &["column", "function"],
                        ),
                    },
                }),
                &["rows"],
            ),
            output: Some(object(
                json!({
                    "columns": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "All column names, sorted",
                    },
                    "rows": {
                        "type": "array",
                        "items": {"type": "object"},
                        "description": "The rows after sorting and limit",
                    },
                    "total": {"type": "integer", "minimum": 0, "description": "Rows before the limit"},
                    "aggregates": {
                        "type": "array",
                        "description": "One value for each aggregate asked for, in that order; null where the column has no number",
                        "items": object(
                            json!({
                                "column": {"type": "string"},
                                "function": {"type": "string", "enum": ["count", "sum", "mean", "min", "max"]},
                                "value": {"type": ["number", "null"]},
                            }),
                            &["column", "function", "value"],
                        ),
                    },
                }),
                &["columns", "rows", "total", "aggregates"],
            )),
            run: table::run,
        },
    ]
}

fn get(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let pointer = arguments.text("pointer")?;
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(Failure::new(
            "argument `pointer` must be empty or begin with `/`",
        ));
    }
    let document = arguments.value("document").unwrap_or(&Value::Null);
    let value = document.pointer(pointer).ok_or_else(|| {
        Failure::new(format!(
            "the document has nothing at `{}`",
            pointer.escape_debug()
        ))
    })?;
    Ok(Answer::Structured(json!({"value": value})))
}

fn format(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let value: Value = serde_json::from_str(arguments.text("text")?)
        .map_err(|error| Failure::new(format!("the text is not JSON: {error}")))?;
    let written = match arguments.find("style")? {
        Some("compact") => serde_json::to_string(&sorted(value)),
        _ => serde_json::to_string_pretty(&sorted(value)),
    };
    written
        .map(Answer::Text)
        .map_err(|error| Failure::new(format!("the value cannot be written: {error}")))
}

/// Sorts the members, since the build decides whether `serde_json` keeps their order.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().collect();
            members.sort_by(|left, right| left.0.cmp(&right.0));
            let members = members.into_iter();
            Value::Object(members.map(|(key, value)| (key, sorted(value))).collect())
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{refusal, structured, text};
    use super::*;

    #[test]
    fn json_get_reads_nested_values() {
        let document = json!({"a": [{"b/c": {"d~e": null}}]});
        let at = |pointer: &str| json!({"document": document, "pointer": pointer});
        assert_eq!(
            structured("json_get", at("/a/0/b~1c/d~0e")),
            json!({"value": null})
        );
        assert_eq!(structured("json_get", at("")), json!({"value": document}));
        assert_eq!(
            refusal("json_get", at("/a/1")),
            "the document has nothing at `/a/1`"
        );
        assert!(refusal("json_get", at("a")).contains("begin with `/`"));
    }

    #[test]
    fn json_format_sorts_members_in_both_styles() {
        let compact =
            json!({"text": "{ \"b\":[1,{\"d\":1.0,\"c\":2}], \"a\":null}", "style": "compact"});
        assert_eq!(
            text("json_format", compact),
            r#"{"a":null,"b":[1,{"c":2,"d":1.0}]}"#
        );
        let pretty = json!({"text": "{\"a\":[1]}"});
        assert_eq!(text("json_format", pretty), "{\n  \"a\": [\n    1\n  ]\n}");
    }

    #[test]
    fn json_format_of_invalid_json_is_refused_with_the_place() {
        let message = refusal("json_format", json!({"text": "{\"a\": }"}));
        assert!(message.contains("line 1 column 7"), "{message}");
    }
}

//! The tool `json_format`.

use serde_json::{Value, json};

use super::schema::{choice, object, string};
use super::{Answer, Arguments, Failure, Tool};

pub(super) fn tools() -> Vec<Tool> {
    vec![Tool {
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
    }]
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
    use super::super::tests::{refusal, text};
    use super::*;

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

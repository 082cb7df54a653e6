//! Arguments against a tool's untouched schema, before anything is sent. Never shows a value.

use std::sync::OnceLock;

use broker_model::CallCode;
use broker_model::redact::is_secret_name;
use broker_model::schema::{self, SchemaError, Validator};
use broker_model::text::shown_line;
use serde_json::{Map, Value, json};

use super::error::CoreError;
use crate::catalog::{Catalog, Tool};

/// Values in arguments past which only the first error is looked for: collecting costs memory in
/// proportion to errors times values.
const MAX_VALUES: usize = 2000;
/// Errors in one reply.
const MAX_ERRORS: usize = 20;
/// The longest schema that a reply includes whole, in bytes; also for its failing parts together.
const MAX_SCHEMA_BYTES: usize = 8 << 10;

/// A tool's validator, compiled when it is first needed.
#[derive(Debug, Default)]
pub(super) struct LazyValidator(OnceLock<Option<Validator>>);

impl LazyValidator {
    /// Whether `args` may be sent. What cannot be checked is refused.
    pub(super) fn check(
        &self,
        catalog: &Catalog,
        tool: &Tool,
        args: &Value,
    ) -> Result<(), Box<CoreError>> {
        let path = catalog.entry(tool.entry).path;
        let validator = self.0.get_or_init(|| compile(catalog, tool));
        match validator {
            Some(validator) if validator.is_valid(args) => Ok(()),
            Some(validator) => Err(refused(
                validator,
                catalog.text(tool.args_schema),
                path,
                args,
            )),
            None => Err(Box::new(
                CoreError::new(
                    CallCode::Internal,
                    format!("the schema of `{path}` cannot be compiled"),
                )
                .path(path),
            )),
        }
    }
}

fn compile(catalog: &Catalog, tool: &Tool) -> Option<Validator> {
    let text = catalog.text(tool.args_schema);
    let problem = match serde_json::from_str::<Value>(text) {
        Ok(schema) => match schema::compile(&schema) {
            Ok(validator) => return Some(validator),
            Err(problem) => problem.message,
        },
        Err(problem) => problem.to_string(),
    };
    tracing::error!(
        path = catalog.entry(tool.entry).path,
        problem,
        "a schema that the lock admitted does not compile; calls of the tool are refused"
    );
    None
}

fn refused(validator: &Validator, schema: &str, path: &str, args: &Value) -> Box<CoreError> {
    let max = if holds_more_values_than(args, MAX_VALUES) {
        1
    } else {
        MAX_ERRORS
    };
    let (errors, more) = validator.errors(args, max);
    let shown: Vec<_> = errors.iter().map(|error| show(error, args)).collect();
    let mut details = Map::new();
    details.insert("errors".to_owned(), shown.into());
    details.insert("more".to_owned(), more.into());
    if schema.len() <= MAX_SCHEMA_BYTES {
        // It compiled, so it parses.
        let schema = serde_json::from_str(schema).unwrap_or(Value::Null);
        details.insert("args_schema".to_owned(), schema);
    } else {
        details.insert(
            "args_schema_parts".to_owned(),
            failing_parts(schema, &errors),
        );
    }
    let message = match errors.first() {
        Some(first) if first.pointer.is_empty() => {
            format!("the arguments do not match: expected {}", first.expected)
        }
        Some(first) => format!(
            "the arguments do not match at `{}`: expected {}",
            shown_line(&first.pointer, 120),
            first.expected
        ),
        None => "the arguments do not match the tool's schema".to_owned(),
    };
    Box::new(
        CoreError::new(CallCode::ArgsInvalid, message)
            .path(path)
            .details(details.into())
            .maybe_executed(false),
    )
}

/// One error as callers see it. The type alone is shown of what was there, less for a member whose
/// name says that it is secret: its length would tell something.
fn show(error: &SchemaError, args: &Value) -> Value {
    let secret = error.pointer.split('/').any(is_secret_name);
    let got = match args.pointer(&error.pointer) {
        Some(value) if secret => type_of(value).to_owned(),
        _ => shown_line(&error.got, 80),
    };
    json!({
        "pointer": shown_line(&error.pointer, 300),
        "keyword": error.keyword,
        "expected": error.expected,
        "got": got,
    })
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The subschemas that failed, by their pointers, as many as fit.
fn failing_parts(schema: &str, errors: &[SchemaError]) -> Value {
    let schema: Value = serde_json::from_str(schema).unwrap_or(Value::Null);
    let mut room = MAX_SCHEMA_BYTES;
    let mut parts = Map::new();
    for error in errors {
        // The keyword's own pointer is the last token's; what a caller needs is what it stands in.
        let Some((part, keyword)) = error.schema_pointer.rsplit_once('/') else {
            continue;
        };
        let whole = schema.pointer(part);
        let candidates = [
            whole.map(|value| (part.to_owned(), value.clone())),
            whole.and_then(|value| {
                let value = value.get(keyword)?.clone();
                Some((error.schema_pointer.clone(), value))
            }),
        ];
        for (pointer, value) in candidates.into_iter().flatten() {
            if parts.contains_key(&pointer) {
                break;
            }
            let cost = pointer.len() + value.to_string().len();
            if cost <= room {
                room -= cost;
                parts.insert(pointer, value);
                break;
            }
        }
    }
    parts.into()
}

/// Whether `value` holds more than `max` values, itself included. Looks no further than that.
fn holds_more_values_than(value: &Value, max: usize) -> bool {
    fn count(value: &Value, room: &mut usize) -> bool {
        if *room == 0 {
            return false;
        }
        *room -= 1;
        match value {
            Value::Array(items) => items.iter().all(|item| count(item, room)),
            Value::Object(members) => members.values().all(|member| count(member, room)),
            _ => true,
        }
    }
    let mut room = max;
    !count(value, &mut room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(schema: Value, args: Value) -> Value {
        let validator = schema::compile(&schema).unwrap();
        assert!(!validator.is_valid(&args));
        let error = refused(&validator, &schema.to_string(), "/a/t", &args);
        assert_eq!(error.code, CallCode::ArgsInvalid);
        error.details.unwrap()
    }

    #[test]
    fn http_14_failing_pointers_and_the_schema_but_no_value() {
        let schema = json!({"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string"}, "days": {"type": "integer", "maximum": 3}, "api_key": {"maxLength": 2}}});
        let details = refuse(
            schema.clone(),
            json!({"days": "canary-1", "api_key": "canary-2"}),
        );
        assert_eq!(details["args_schema"], schema);
        assert_eq!(details["more"], false);
        let errors = details["errors"].as_array().unwrap();
        assert_eq!(errors.len(), 3);
        let at = |pointer: &str| errors.iter().find(|e| e["pointer"] == pointer).unwrap();
        assert_eq!(at("/days")["keyword"], "type");
        assert_eq!(at("/days")["expected"], "integer");
        assert_eq!(at("/api_key")["got"], "string");
        assert_eq!(at("")["keyword"], "required");
        assert!(!details.to_string().contains("canary"));
    }

    #[test]
    fn http_14_at_most_twenty_errors_and_one_for_large_arguments() {
        let schema = json!({"additionalProperties": {"type": "string"}});
        let of = |count: usize| -> Value {
            let members: Map<_, _> = (0..count).map(|n| (format!("m{n}"), n.into())).collect();
            members.into()
        };
        let details = refuse(schema.clone(), of(30));
        assert_eq!(details["errors"].as_array().unwrap().len(), 20);
        assert_eq!(details["more"], true);
        let details = refuse(schema, of(MAX_VALUES));
        assert_eq!(details["errors"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn a_large_schema_is_shown_by_its_failing_parts() {
        let schema = json!({"description": "x".repeat(MAX_SCHEMA_BYTES), "properties": {
            "n": {"type": "integer", "title": "count"},
            "big": {"description": "y".repeat(MAX_SCHEMA_BYTES), "type": "string"}}});
        let details = refuse(schema, json!({"n": "1", "big": 2}));
        assert_eq!(
            details["args_schema_parts"],
            json!({"/properties/n": {"type": "integer", "title": "count"}, "/properties/big/type": "string"})
        );
        assert!(details.get("args_schema").is_none());
    }

    #[test]
    fn values_are_counted_with_everything_inside() {
        let value = json!({"a": [1, 2], "b": {}});
        assert!(!holds_more_values_than(&value, 5));
        assert!(holds_more_values_than(&value, 4));
    }
}

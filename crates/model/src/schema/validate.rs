//! The validator: `jsonschema` over the untouched schema, with one fixed set of options.
//!
//! The dialect is the schema's own, 2020-12 where it names none (the MCP rule). Formats are notes,
//! never asserted. Backtracking is bounded, and a pattern that passes the bound fails closed.

use std::fmt;

use jsonschema::{PatternOptions, ValidationError, error::ValidationErrorKind};
use serde_json::Value;

use crate::codes::DiagnosticCode;
use crate::diagnostic::Diagnostic;
use crate::text::shown_line;

/// Steps that one pattern may backtrack before the value counts as not matching.
const BACKTRACK_LIMIT: usize = 10_000;

/// A compiled schema. Thread-safe.
pub struct Validator(jsonschema::Validator);

/// One way in which a value does not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// Into the value.
    pub pointer: String,
    /// The keyword that failed, `required`, `type`, ….
    pub keyword: String,
    /// Into the schema.
    pub schema_pointer: String,
    /// What the schema wants, in words.
    pub expected: String,
    /// What was there: its JSON type, never its value.
    pub got: String,
}

/// Compiles a schema. What cannot be compiled is refused with the place in the schema.
pub fn compile(schema: &Value) -> Result<Validator, Box<Diagnostic>> {
    jsonschema::options()
        .should_validate_formats(false)
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT))
        .build(schema)
        .map(Validator)
        .map_err(|error| Box::new(refused(&error)))
}

fn refused(error: &ValidationError<'_>) -> Diagnostic {
    let code = match error.kind() {
        ValidationErrorKind::Format { format } if format == "regex" => {
            DiagnosticCode::SchemaPattern
        }
        ValidationErrorKind::Pattern { .. } => DiagnosticCode::SchemaPattern,
        ValidationErrorKind::Referencing(_) => DiagnosticCode::SchemaRef,
        _ => DiagnosticCode::SchemaInvalid,
    };
    Diagnostic::error(code, shown_line(&error.to_string(), 300))
        .at(error.instance_path().to_string())
}

impl Validator {
    /// Whether the value matches.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }

    /// At most `max` errors, and whether there are others. Collecting is dear on large values; with
    /// `max` 1 only the first is looked for.
    pub fn errors(&self, value: &Value, max: usize) -> (Vec<SchemaError>, bool) {
        if max <= 1 {
            return match self.0.validate(value) {
                Ok(()) => (Vec::new(), false),
                Err(error) => (vec![SchemaError::from(&error)], true),
            };
        }
        let mut found = self.0.iter_errors(value);
        let errors = found
            .by_ref()
            .take(max)
            .map(|error| SchemaError::from(&error))
            .collect();
        (errors, found.next().is_some())
    }
}

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Validator")
    }
}

impl From<&ValidationError<'_>> for SchemaError {
    fn from(error: &ValidationError<'_>) -> Self {
        Self {
            pointer: error.instance_path().to_string(),
            keyword: error.kind().keyword().to_owned(),
            schema_pointer: error.schema_path().to_string(),
            expected: expected(error.kind()),
            got: got(error.instance()),
        }
    }
}

/// What the schema wants. Names only what stands in the schema, or names of members.
fn expected(kind: &ValidationErrorKind) -> String {
    use ValidationErrorKind as Kind;
    let names = |list: &[String]| {
        list.iter()
            .map(|name| format!("`{}`", shown_line(name, 80)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let text = match kind {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("no member {}", names(unexpected))
        }
        Kind::AdditionalItems { limit } => format!("at most {limit} items"),
        Kind::AnyOf { .. } => "a match of at least one of the alternatives".to_owned(),
        Kind::OneOfNotValid { .. } => "a match of one of the alternatives".to_owned(),
        Kind::OneOfMultipleValid { .. } => "a match of only one of the alternatives".to_owned(),
        Kind::Constant { expected_value } => format!("{expected_value}"),
        Kind::Enum { options } => format!("one of {options}"),
        Kind::Contains => "an item that matches `contains`".to_owned(),
        Kind::Maximum { limit } => format!("at most {limit}"),
        Kind::Minimum { limit } => format!("at least {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Kind::MaxItems { limit } => format!("at most {limit} items"),
        Kind::MinItems { limit } => format!("at least {limit} items"),
        Kind::MaxLength { limit } => format!("at most {limit} characters"),
        Kind::MinLength { limit } => format!("at least {limit} characters"),
        Kind::MaxProperties { limit } => format!("at most {limit} members"),
        Kind::MinProperties { limit } => format!("at least {limit} members"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::Pattern { pattern } => format!("a string that matches `{pattern}`"),
        Kind::Required { property } => format!("the member {property}"),
        Kind::Type {
            kind: jsonschema::error::TypeKind::Single(one),
        } => one.to_string(),
        Kind::Type {
            kind: jsonschema::error::TypeKind::Multiple(many),
        } => many
            .iter()
            .map(|one| one.to_string())
            .collect::<Vec<_>>()
            .join(" or "),
        Kind::UniqueItems => "items that differ".to_owned(),
        Kind::UnevaluatedItems { .. } => "no further items".to_owned(),
        Kind::Not { .. } => "no match of the `not` schema".to_owned(),
        Kind::FalseSchema => "nothing here".to_owned(),
        Kind::PropertyNames { .. } => "member names that match `propertyNames`".to_owned(),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "a string that the pattern can be tried on within its bound".to_owned()
        }
        other => format!("a match of `{}`", other.keyword()),
    };
    shown_line(&text, 300)
}

fn got(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "boolean".to_owned(),
        Value::Number(number) if number.is_f64() => "number".to_owned(),
        Value::Number(_) => "integer".to_owned(),
        Value::String(text) => format!("string of {} characters", text.chars().count()),
        Value::Array(items) => format!("array of {} items", items.len()),
        Value::Object(members) => format!("object of {} members", members.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_name_place_keyword_and_want_but_no_value() {
        let schema = json!({"type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {"a": {}, "n": {"type": ["integer", "null"]}, "e": {"enum": ["x", "y"]}}});
        let validator = compile(&schema).unwrap();
        assert!(validator.is_valid(&json!({"a": 1})));
        let (errors, more) = validator.errors(&json!({"n": "hunter2", "e": "z", "zz": 0}), 20);
        let shown: Vec<_> = errors
            .iter()
            .map(|e| {
                (
                    e.pointer.as_str(),
                    e.keyword.as_str(),
                    e.expected.as_str(),
                    e.got.as_str(),
                )
            })
            .collect();
        assert!(
            shown.contains(&("", "required", "the member \"a\"", "object of 3 members")),
            "{shown:?}"
        );
        assert!(
            shown.contains(&(
                "/e",
                "enum",
                "one of [\"x\",\"y\"]",
                "string of 1 characters"
            )),
            "{shown:?}"
        );
        assert!(
            shown.contains(&(
                "",
                "additionalProperties",
                "no member `zz`",
                "object of 3 members"
            )),
            "{shown:?}"
        );
        assert!(
            shown
                .iter()
                .any(|e| e.0 == "/n" && e.1 == "type" && e.2.contains("integer")),
            "{shown:?}"
        );
        assert!(!more && !format!("{errors:?}").contains("hunter2"));
        assert_eq!(validator.errors(&json!({"n": 1.5, "e": 1}), 2).0.len(), 2);
        assert!(validator.errors(&json!({"n": 1.5, "e": 1}), 2).1);
    }

    #[test]
    fn sch_04_patterns() {
        let slow = compile(&json!({"type": "string", "pattern": "^(?:(a|aa)+)(?=c)$"})).unwrap();
        assert!(
            !slow.is_valid(&json!("a".repeat(60))),
            "past the bound it fails closed"
        );
        assert!(
            compile(&json!({"pattern": "(a+)+$"}))
                .unwrap()
                .is_valid(&json!("aaaa"))
        );
        assert_eq!(
            compile(&json!({"pattern": "("})).unwrap_err().code,
            DiagnosticCode::SchemaPattern
        );
    }

    #[test]
    fn sch_05_anything_goes_where_the_schema_says_so() {
        for schema in [json!(true), json!({})] {
            assert!(compile(&schema).unwrap().is_valid(&json!({"a": 1})));
        }
    }

    #[test]
    fn sch_06_keywords_mean_what_the_dialect_says() {
        let four = compile(&json!({"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 3, "exclusiveMaximum": true})).unwrap();
        assert!(!four.is_valid(&json!(3)));
        let seven = compile(&json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]})).unwrap();
        assert!(!seven.is_valid(&json!([1])));
        assert!(
            compile(&json!({"format": "uuid"}))
                .unwrap()
                .is_valid(&json!("no uuid"))
        );
    }

    #[test]
    fn references_to_the_network_do_not_compile() {
        assert!(compile(&json!({"$ref": "http://127.0.0.1:1/x.json"})).is_err());
    }
}

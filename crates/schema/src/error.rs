//! An error of a value that does not match a schema, without the value itself.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use broker_model::json::decimal_of;
use broker_model::text::shown_line;

use super::moves::Moves;

/// Maximum number of names in one error.
const MAX_NAMES: usize = 20;

/// One failure of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// The pointer into the value.
    pub pointer: String,
    /// The keyword that failed, `required`, `type`, ….
    pub keyword: String,
    /// The pointer into the schema.
    pub schema_pointer: String,
    /// The expectation of the schema, in words.
    pub expected: String,
    /// The JSON type of the value that was found, never the value.
    pub got: String,
}

impl SchemaError {
    /// An error for a value that takes more steps than the budget has, with the pointer to the place
    /// that was reached.
    pub fn over_budget(pointer: String) -> Self {
        Self {
            pointer,
            keyword: "budget".to_owned(),
            schema_pointer: String::new(),
            expected: "a value that can be checked within the step budget".to_owned(),
            got: "a value that takes more steps".to_owned(),
        }
    }
}

impl SchemaError {
    /// Names the place in the schema as the server wrote it, and its pattern.
    pub(super) fn show_original(&mut self, schema: &Value, moves: &Moves) {
        self.schema_pointer = moves.original(&self.schema_pointer);
        let written = schema.pointer(&self.schema_pointer);
        if let ("pattern", Some(Value::String(pattern))) = (&*self.keyword, written) {
            self.expected = shown_line(&format!("a string that matches `{pattern}`"), 300);
        }
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

/// The expectation of the schema. It names only texts of the schema and names of members.
pub(super) fn expected(kind: &ValidationErrorKind) -> String {
    use ValidationErrorKind as Kind;
    let text = match kind {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            no_members(unexpected.iter())
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
        // A keyword of the module `exact`, which names its number.
        Kind::Custom { message, .. } => message.clone(),
        other => format!("a match of `{}`", other.keyword()),
    };
    shown_line(&text, 300)
}

/// The type of a value and its size, never the value.
pub(super) fn got(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "boolean".to_owned(),
        Value::Number(number) if number.is_f64() => "number".to_owned(),
        Value::Number(_) => "integer".to_owned(),
        Value::String(text) => match decimal_of(value) {
            Some(number) if number.is_integer() => "integer".to_owned(),
            Some(_) => "number".to_owned(),
            None => format!("string of {} characters", text.chars().count()),
        },
        Value::Array(items) => format!("array of {} items", items.len()),
        Value::Object(members) => format!("object of {} members", members.len()),
    }
}

/// The expectation that members of these names are absent.
pub(super) fn no_members<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<_> = names
        .take(MAX_NAMES)
        .map(|name| format!("`{}`", shown_line(name, 80)))
        .collect();
    shown_line(&format!("no member {}", names.join(", ")), 300)
}

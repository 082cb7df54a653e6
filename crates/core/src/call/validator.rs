//! Validates arguments against a tool's unchanged schema before anything is sent. Errors never contain
//! a value.

use std::sync::OnceLock;

use broker_model::CallCode;
use broker_model::json::{self, MAX_VALUES};
use broker_model::redact::is_secret_name;
use broker_model::text::shown_line;
use broker_schema::{Budget, SchemaError, Validator, Verdict, count_values};
use serde_json::{Map, Value, json};

use super::coerce::{CoercedArgs, Coercion, coerce};
use crate::catalog::{Catalog, Item};
use crate::errors::error::CoreError;

/// The maximum number of errors in one reply.
const MAX_ERRORS: usize = 20;
/// The longest schema that a reply includes whole, in bytes; also for its failing parts together.
const MAX_SCHEMA_BYTES: usize = 8 << 10;

/// The longest schema that a surface shows where callers pay for each byte; also for its failing parts together.
const MAX_SHORT_SCHEMA_BYTES: usize = 1536;

/// A tool's validator, compiled when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct LazyValidator(OnceLock<Option<Validator>>);

/// Why arguments are not sent.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The arguments do not match, and the error gives every reason.
    Final(Box<CoreError>),
    /// The budget was spent on the verdict or on its explanation: with a larger budget the outcome may differ. The
    /// error is the answer if a larger budget does not exist.
    OverBudget(Box<CoreError>),
}

impl Refusal {
    pub(crate) fn into_error(self) -> Box<CoreError> {
        match self {
            Self::Final(error) | Self::OverBudget(error) => error,
        }
    }
}

impl LazyValidator {
    /// Converts arguments that [`Self::check`] refused with `refusal`. Returns the refusal if no conversion makes them
    /// match.
    pub(super) fn coerce(
        &self,
        catalog: &Catalog,
        tool: &Item,
        text: &str,
        args: &Value,
        budget: &Budget<'_>,
        refusal: Box<CoreError>,
    ) -> Result<CoercedArgs, Refusal> {
        let schema = json::parse(catalog.text(tool.args_schema));
        let (Some(Some(validator)), Ok(schema)) = (self.0.get(), schema) else {
            return Err(Refusal::Final(refusal));
        };
        match coerce(validator, &schema, text, args, budget) {
            Coercion::Done(converted) => Ok(converted),
            Coercion::Impossible => Err(Refusal::Final(refusal)),
            Coercion::OverBudget => Err(Refusal::OverBudget(refusal)),
        }
    }

    /// Whether `args` may be sent. Arguments that cannot be checked within `budget` are refused.
    pub(crate) fn check(
        &self,
        catalog: &Catalog,
        tool: &Item,
        args: &Value,
        budget: &Budget<'_>,
    ) -> Result<(), Refusal> {
        let path = catalog.entry(tool.entry).path;
        let values = count_values(args);
        if values > MAX_VALUES {
            return Err(Refusal::Final(too_many_values(path, values)));
        }
        let Some(validator) = self.0.get_or_init(|| compile(catalog, tool)) else {
            let message = format!("the schema of `{path}` cannot be compiled");
            let error = CoreError::new(CallCode::Internal, message).path(path);
            return Err(Refusal::Final(Box::new(error)));
        };
        match validator.evaluate(args, budget).verdict {
            Verdict::Valid => Ok(()),
            Verdict::Invalid => {
                let schema = catalog.text(tool.args_schema);
                Err(refused(validator, schema, path, args, budget))
            }
            Verdict::OverBudget { pointer } => {
                Err(Refusal::OverBudget(over_budget(path, &pointer)))
            }
        }
    }
}

pub(crate) fn too_many_values(path: &str, values: u64) -> Box<CoreError> {
    let message = format!(
        "the arguments have {values} values, at most {MAX_VALUES} are allowed: send fewer in one call"
    );
    let error = json!({
        "pointer": "",
        "keyword": "budget",
        "expected": format!("at most {MAX_VALUES} values"),
        "got": format!("{values} values"),
    });
    args_invalid(path, message, json!({"errors": [error], "more": false}))
}

/// Returns the error for a tool's schema that is too costly on these arguments. No value is shown, and the matching
/// values are unknown.
pub(crate) fn over_budget(path: &str, pointer: &str) -> Box<CoreError> {
    let place = if pointer.is_empty() {
        String::new()
    } else {
        format!(" at `{}`", shown_line(pointer, 120))
    };
    let message = format!(
        "the check of the arguments against the tool's schema took too many steps and was stopped{place}: \
         send fewer or less deeply nested values"
    );
    let error = show(&SchemaError::over_budget(pointer.to_owned()), &Value::Null);
    args_invalid(path, message, json!({"errors": [error], "more": true}))
}

fn args_invalid(path: &str, message: String, details: Value) -> Box<CoreError> {
    Box::new(
        CoreError::new(CallCode::ArgsInvalid, message)
            .path(path)
            .details(details)
            .maybe_executed(false),
    )
}

fn compile(catalog: &Catalog, tool: &Item) -> Option<Validator> {
    let text = catalog.text(tool.args_schema);
    let compile = match tool.unvalidated {
        true => broker_schema::compile_as_is,
        false => broker_schema::compile,
    };
    let problem = match json::parse(text) {
        Ok(schema) => match compile(&schema) {
            Ok(validator) => return Some(validator),
            Err(problem) => problem.message,
        },
        Err(problem) => problem.to_string(),
    };
    tracing::error!(
        path = catalog.entry(tool.entry).path,
        problem,
        "a schema of the lock does not compile; calls of the tool are refused"
    );
    None
}

fn refused(
    validator: &Validator,
    schema: &str,
    path: &str,
    args: &Value,
    budget: &Budget<'_>,
) -> Refusal {
    // The schema compiled, so it parses.
    let tree = json::parse(schema).unwrap_or(Value::Null);
    let explanation = validator.explain(&tree, args, MAX_ERRORS, budget);
    let errors = explanation.places;
    let mut details = Map::new();
    details.insert("errors".to_owned(), shown_errors(&errors, args));
    details.insert("more".to_owned(), explanation.more.into());
    let short_parts = (schema.len() > MAX_SHORT_SCHEMA_BYTES)
        .then(|| failing_parts(&tree, &errors, MAX_SHORT_SCHEMA_BYTES));
    if schema.len() <= MAX_SCHEMA_BYTES {
        details.insert("args_schema".to_owned(), tree);
    } else {
        let parts = failing_parts(&tree, &errors, MAX_SCHEMA_BYTES);
        details.insert("args_schema_parts".to_owned(), parts);
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
    let mut error = args_invalid(path, message, details.into());
    error.schema_parts = short_parts;
    if explanation.is_cut {
        Refusal::OverBudget(error)
    } else {
        Refusal::Final(error)
    }
}

/// Returns errors as callers see them.
pub(crate) fn shown_errors(errors: &[SchemaError], args: &Value) -> Value {
    errors.iter().map(|error| show(error, args)).collect()
}

/// Returns one error as callers see it. Of a value only the type is shown, and less for a member whose name marks it as
/// secret: its length would reveal something.
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
        Value::String(_) if json::exact_number(value).is_some() => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns the subschemas that failed, by their pointers, as many as fit into `room` bytes.
fn failing_parts(schema: &Value, errors: &[SchemaError], mut room: usize) -> Value {
    let mut parts = Map::new();
    for error in errors {
        // The pointer ends with the keyword; a caller needs the schema that contains it.
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
            let cost = pointer.len() + json::to_text(&value).len();
            if cost <= room {
                room -= cost;
                parts.insert(pointer, value);
                break;
            }
        }
    }
    parts.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(schema: Value, args: Value) -> Value {
        refusal(schema, args).details.unwrap()
    }

    fn refusal(schema: Value, args: Value) -> Box<CoreError> {
        let validator = broker_schema::compile(&schema).unwrap();
        assert!(!validator.is_valid(&args));
        let budget = Budget::from_values(count_values(&args));
        let refusal = refused(&validator, &schema.to_string(), "/a/t", &args, &budget);
        let Refusal::Final(error) = refusal else {
            panic!("{refusal:?}");
        };
        assert_eq!(error.code, CallCode::ArgsInvalid);
        error
    }

    #[test]
    fn args_error_for_a_schema_over_one_and_a_half_kib_has_short_parts_too() {
        let of = |length| {
            let n = json!({"type": "integer"});
            let schema = json!({"description": "x".repeat(length), "properties": {"n": n}});
            refusal(schema, json!({"n": "1"}))
        };
        assert_eq!(of(MAX_SHORT_SCHEMA_BYTES - 100).schema_parts, None);
        let error = of(MAX_SHORT_SCHEMA_BYTES);
        let parts = json!({"/properties/n": {"type": "integer"}});
        assert_eq!(error.schema_parts, Some(parts));
        assert!(
            error.details.unwrap()["args_schema"].is_object(),
            "the object is unchanged"
        );
    }

    #[test]
    fn args_error_has_pointers_and_schema_but_no_value() {
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
    fn args_errors_are_limited_to_twenty() {
        let schema = json!({"additionalProperties": {"type": "string"}});
        let of = |count: usize| -> Value {
            let members: Map<_, _> = (0..count).map(|n| (format!("m{n}"), n.into())).collect();
            members.into()
        };
        let details = refuse(schema.clone(), of(30));
        assert_eq!(details["errors"].as_array().unwrap().len(), 20);
        assert_eq!(details["more"], true);
        let details = refuse(schema, of(3000));
        assert_eq!(details["errors"].as_array().unwrap().len(), 20);
    }

    #[test]
    fn args_error_for_a_large_schema_shows_its_failing_parts() {
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
}

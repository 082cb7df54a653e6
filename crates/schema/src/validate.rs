//! The validator: `jsonschema` over the reading of a schema, with one fixed set of options.
//!
//! The dialect is the schema's, 2020-12 if it names none (the MCP rule). Formats are annotations, never asserted.
//! Backtracking is bounded; a value that exceeds the bound does not match.

use std::fmt;
use std::sync::OnceLock;

use jsonschema::{ValidationError, error::ValidationErrorKind};
use serde_json::Value;

use super::budget::{Budget, Evaluation, Verdict, count_values};
use super::enforceable;
use super::error::SchemaError;
use super::exact::{
    exact_options, has_exact_number, needs_exact_form, with_originals, with_stand_ins,
};
use super::explain::{Explanation, explain};
use super::meter::{Form, Meter, Metered, MeteredNode};
use super::moves::Moves;
use super::options::{first_place, options};
use super::reading::Reading;
use super::weights::Weights;
use broker_model::codes::DiagnosticCode;
use broker_model::diagnostic::Diagnostic;
use broker_model::json::{child_pointer, parse, to_text};
use broker_model::text::shown_line;

/// A compiled schema. Thread-safe.
pub struct Validator {
    compiled: jsonschema::Validator<Metered>,
    exact: ExactForm,
    weights: Weights,
    /// The form from which it was compiled, if that is not the schema itself.
    reading: Option<Box<Reading>>,
    /// Whether only objects match, whatever the schema says.
    objects_only: bool,
}

/// The form of a validator for exact numbers.
struct ExactForm {
    /// The schema, until it is compiled. Most validators never meet an exact number.
    schema: String,
    /// Whether every value needs it.
    always: bool,
    compiled: OnceLock<Option<jsonschema::Validator<Metered>>>,
}

impl ExactForm {
    fn new(schema: &Value) -> Self {
        Self {
            schema: to_text(schema),
            always: needs_exact_form(schema),
            compiled: OnceLock::new(),
        }
    }

    fn get(&self) -> Option<&jsonschema::Validator<Metered>> {
        let compile = || {
            let schema = parse(&self.schema).ok()?;
            exact_options().build(&with_originals(&schema)).ok()
        };
        self.compiled.get_or_init(compile).as_ref()
    }
}

/// Compiles a schema. An invalid one is refused with the place in the schema.
pub fn compile(schema: &Value) -> Result<Validator, Box<Diagnostic>> {
    let reading = Reading::checked(schema)?;
    Validator::new(schema, reading, false).map_err(|(problem, moves)| {
        let pointer = problem.pointer.as_deref().map(|at| moves.original(at));
        Box::new(Diagnostic {
            pointer,
            ..*problem
        })
    })
}

/// Compiles the part of a schema that is valid, for arguments: only objects match. A schema over a bound is refused.
/// The module `enforceable` has the rules.
pub fn compile_as_is(schema: &Value) -> Result<Validator, Box<Diagnostic>> {
    let reading = enforceable::reading(schema)?;
    Validator::new(schema, reading, true).map_err(|(problem, _)| problem)
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
    fn new(
        schema: &Value,
        reading: Reading,
        objects_only: bool,
    ) -> Result<Self, (Box<Diagnostic>, Moves)> {
        match forms_of(&reading.schema) {
            Ok((compiled, exact, weights)) => Ok(Self {
                compiled,
                exact,
                weights,
                reading: (reading.schema != *schema).then(|| Box::new(reading)),
                objects_only,
            }),
            Err(problem) => Err((problem, reading.moves)),
        }
    }

    /// Whether the value matches, within the budget.
    pub fn evaluate(&self, value: &Value, budget: &Budget<'_>) -> Evaluation {
        if self.objects_only && !value.is_object() {
            return Evaluation {
                verdict: Verdict::Invalid,
                steps: 0,
            };
        }
        if self.exact.always {
            return self.evaluate_exactly(value, budget, budget.total());
        }
        let meter = Meter::new(budget, budget.total(), &self.weights, Form::Plain);
        let valid = self.compiled.is_valid(MeteredNode::new(value, &meter));
        if meter.met_exact() {
            return self.evaluate_exactly(value, budget, meter.left());
        }
        verdict_of(valid, value, budget, &meter)
    }

    /// The evaluation with the second form. A schema that has none accepts no value.
    fn evaluate_exactly(&self, value: &Value, budget: &Budget<'_>, left: u64) -> Evaluation {
        let meter = Meter::new(budget, left, &self.weights, Form::Exact);
        let valid = self
            .exact
            .get()
            .is_some_and(|compiled| compiled.is_valid(MeteredNode::new(value, &meter)));
        verdict_of(valid, value, budget, &meter)
    }

    /// Whether the value certainly matches, within the whole budget. For values of this program, not of a caller
    /// or a server.
    pub fn is_valid(&self, value: &Value) -> bool {
        let budget = Budget::from_values(count_values(value));
        self.evaluate(value, &budget).verdict == Verdict::Valid
    }

    /// At most `max` places at which a value fails `schema`, from which this was compiled, within the
    /// whole budget. Where that is spent, the place that was reached counts as one.
    pub fn failures(&self, schema: &Value, value: &Value, max: usize) -> Vec<SchemaError> {
        let budget = Budget::from_values(count_values(value));
        match self.evaluate(value, &budget).verdict {
            Verdict::Valid => Vec::new(),
            Verdict::Invalid => self.explain(schema, value, max, &budget).places,
            Verdict::OverBudget { pointer } => vec![SchemaError::over_budget(pointer)],
        }
    }

    /// The reasons why a value does not match `schema`, from which this was compiled: at most `max` places.
    pub fn explain(
        &self,
        schema: &Value,
        value: &Value,
        max: usize,
        budget: &Budget<'_>,
    ) -> Explanation {
        if self.objects_only && !value.is_object() {
            return Explanation::refuse_non_object(value);
        }
        let read = self.reading.as_ref().map_or(schema, |read| &read.schema);
        let is_exact = self.exact.always || has_exact_number(value);
        let (form, originals) = match is_exact {
            true => (Form::Exact, Some(with_originals(read))),
            false => (Form::Plain, None),
        };
        let read = originals.as_ref().unwrap_or(read);
        let (mut explanation, left) = explain(read, value, max, budget, &self.weights, form);
        if explanation.places.is_empty() && max > 0 {
            // A schema that is too large to be compiled in parts. One budget bounds both searches.
            let meter = Meter::new(budget, left, &self.weights, form);
            let compiled = match form {
                Form::Plain => Some(&self.compiled),
                Form::Exact => self.exact.get(),
            };
            let first = compiled.and_then(|compiled| first_place(compiled, value, &meter));
            explanation.more |= first.is_none();
            explanation.places.extend(first);
        }
        if let Some(reading) = &self.reading {
            for place in &mut explanation.places {
                place.show_original(schema, &reading.moves);
            }
        }
        explanation
    }
}

/// The two forms of a validator of a schema that was read, and the weights of its parts.
fn forms_of(
    schema: &Value,
) -> Result<(jsonschema::Validator<Metered>, ExactForm, Weights), Box<Diagnostic>> {
    let weights = Weights::new(schema)?;
    let compiled = options()
        .build(&with_stand_ins(schema))
        .map_err(|error| Box::new(refused(&error)))?;
    let exact = ExactForm::new(schema);
    if exact.always && exact.get().is_none() {
        let message = "its numbers cannot be compiled".to_owned();
        let problem = Diagnostic::error(DiagnosticCode::SchemaInvalid, message);
        return Err(Box::new(problem));
    }
    Ok((compiled, exact, weights))
}

fn verdict_of(valid: bool, value: &Value, budget: &Budget<'_>, meter: &Meter<'_>) -> Evaluation {
    let verdict = if meter.is_spent() {
        let pointer = pointer_to(value, meter.reached()).unwrap_or_default();
        Verdict::OverBudget { pointer }
    } else if valid {
        Verdict::Valid
    } else {
        Verdict::Invalid
    };
    Evaluation {
        verdict,
        steps: budget.total() - meter.left(),
    }
}

/// The pointer to the value at an address within `value`.
fn pointer_to(value: &Value, address: usize) -> Option<String> {
    if std::ptr::from_ref(value) as usize == address {
        return Some(String::new());
    }
    match value {
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            pointer_to(item, address).map(|below| format!("/{index}{below}"))
        }),
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            pointer_to(member, address).map(|below| child_pointer("", name) + &below)
        }),
        _ => None,
    }
}

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Validator")
    }
}

#[cfg(test)]
mod tests {
    use super::super::budget::MIN_STEPS;
    use super::*;
    use serde_json::json;

    #[test]
    fn validation_error_has_place_keyword_and_type_but_no_value() {
        let schema = json!({"type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {"a": {}, "n": {"type": ["integer", "null"]}, "e": {"enum": ["x", "y"]}}});
        let validator = compile(&schema).unwrap();
        assert!(validator.is_valid(&json!({"a": 1})));
        let explain = |value: Value, max| {
            let explanation = validator.explain(&schema, &value, max, &Budget::steps(MIN_STEPS));
            assert!(!explanation.is_cut);
            (explanation.places, explanation.more)
        };
        let (errors, more) = explain(json!({"n": "hunter2", "e": "z", "zz": 0}), 20);
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
        assert_eq!(explain(json!({"n": 1.5, "e": 1}), 2).0.len(), 2);
        assert!(explain(json!({"n": 1.5, "e": 1}), 2).1);
    }

    #[test]
    fn pattern_over_its_step_limit_fails_closed() {
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
    fn schema_true_or_empty_accepts_any_value() {
        for schema in [json!(true), json!({})] {
            assert!(compile(&schema).unwrap().is_valid(&json!({"a": 1})));
        }
    }

    #[test]
    fn schema_keywords_follow_their_dialect() {
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
    fn schema_reference_to_the_network_does_not_compile() {
        assert!(compile(&json!({"$ref": "http://127.0.0.1:1/x.json"})).is_err());
    }
}

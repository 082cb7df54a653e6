//! Schemas of rules that narrow the arguments of calls.

use std::sync::{Arc, OnceLock};

use broker_model::CallCode;
use broker_model::access::{claim_names, fill_claims};
use broker_model::json::{parse, to_text};
use broker_schema::{Budget, Validator, Verdict};
use serde_json::{Value, json};

use super::class::ClaimValues;
use super::recent::Recent;
use crate::call::validator::{Refusal, over_budget, shown_errors};
use crate::errors::error::CoreError;

/// The maximum number of errors in one reply.
const MAX_ERRORS: usize = 20;

/// A rule that narrows arguments.
#[derive(Debug)]
pub(super) struct NarrowRule {
    schema: Value,
    has_claims: bool,
    /// The schema of a rule without claims,
    compiled: OnceLock<Arc<NarrowSchema>>,
    /// and the schemas of a rule with claims, by the claims of the callers that called last.
    of_claims: Recent<Arc<str>, NarrowSchema>,
}

/// A schema with the caller's claims filled in.
#[derive(Debug)]
pub(crate) struct NarrowSchema {
    schema: Value,
    /// `None` if it does not compile: then no arguments match.
    validator: Option<Validator>,
}

impl NarrowSchema {
    fn compile(schema: Value) -> Self {
        let validator = broker_schema::compile(&schema).map_err(|problem| {
            // The build compiles every schema, but not with the values of claims.
            tracing::error!(
                problem = problem.message,
                "a schema of `access` does not compile; calls that it narrows are refused"
            );
        });
        Self {
            validator: validator.ok(),
            schema,
        }
    }
}

impl NarrowRule {
    pub(super) fn new(schema: Value) -> Self {
        Self {
            has_claims: !claim_names(&schema).is_empty(),
            schema,
            compiled: OnceLock::new(),
            of_claims: Recent::default(),
        }
    }

    /// Returns the names of the claims that it reads.
    pub(super) fn claims(&self) -> impl Iterator<Item = &str> {
        claim_names(&self.schema).into_iter()
    }

    /// Whether a caller has the claims that it reads.
    pub(super) fn applies(&self, claims: Option<&ClaimValues>) -> bool {
        let can_fill = |claims: &ClaimValues| fill_claims(&self.schema, &claims.values).is_some();
        !self.has_claims || claims.is_some_and(can_fill)
    }

    /// Returns the schema with the claims of a caller.
    pub(super) fn filled(&self, claims: Option<&ClaimValues>) -> Option<Arc<NarrowSchema>> {
        if !self.has_claims {
            let compile = || Arc::new(NarrowSchema::compile(self.schema.clone()));
            return Some(Arc::clone(self.compiled.get_or_init(compile)));
        }
        let claims = claims?;
        let key: Arc<str> = claims.text.as_str().into();
        if let Some(known) = self.of_claims.find(&key) {
            return Some(known);
        }
        let filled = fill_claims(&self.schema, &claims.values)?;
        Some(self.of_claims.keep(key, NarrowSchema::compile(filled)))
    }
}

/// The narrowing schemas: the arguments of a call must match one of them besides the tool's schema.
#[derive(Clone, Debug)]
pub(crate) struct NarrowedArgs(Arc<[Arc<NarrowSchema>]>);

impl NarrowedArgs {
    pub(super) fn new(schemas: Vec<Arc<NarrowSchema>>) -> Self {
        Self(schemas.into())
    }

    /// Whether the schemas are the same.
    pub(crate) fn has_schemas_of(&self, other: &Self) -> bool {
        let own = self.0.iter().map(|narrow| &narrow.schema);
        own.eq(other.0.iter().map(|narrow| &narrow.schema))
    }

    /// Refuses arguments that do not match any of the schemas.
    pub(crate) fn check(
        &self,
        path: &str,
        args: &Value,
        budget: &Budget<'_>,
    ) -> Result<(), Refusal> {
        let mut first = None;
        for narrow in self.0.iter() {
            let Some(validator) = &narrow.validator else {
                continue;
            };
            match validator.evaluate(args, budget).verdict {
                Verdict::Valid => return Ok(()),
                Verdict::Invalid => {
                    first.get_or_insert((validator, &narrow.schema));
                }
                Verdict::OverBudget { pointer } => {
                    return Err(Refusal::OverBudget(over_budget(path, &pointer)));
                }
            }
        }
        let message = format!("the caller may not call `{path}` with these arguments");
        let mut error = CoreError::new(CallCode::Forbidden, message).path(path);
        if let Some((validator, schema)) = first {
            let explanation = validator.explain(schema, args, MAX_ERRORS, budget);
            let errors = shown_errors(&explanation.places, args);
            error = error.details(json!({"errors": errors, "more": explanation.more}));
        }
        Err(Refusal::Final(Box::new(error.maybe_executed(false))))
    }

    /// Returns the schema of a tool as the caller must match it.
    pub(crate) fn apply(&self, args_schema: &str) -> String {
        let own = match parse(args_schema) {
            Ok(Value::Object(members)) => members,
            // `false`, a schema without matching arguments, and `true`.
            Ok(other) => [("allOf".to_owned(), json!([other]))].into_iter().collect(),
            Err(_) => serde_json::Map::new(),
        };
        let narrowing = match &*self.0 {
            [one] => one.schema.clone(),
            several => {
                let schemas = several.iter().map(|narrow| narrow.schema.clone());
                json!({"anyOf": schemas.collect::<Vec<_>>()})
            }
        };
        to_text(&with_condition(own, narrowing))
    }
}

/// Returns a schema with one more condition. References within the schema stay valid.
fn with_condition(
    mut own: serde_json::Map<String, Value>,
    condition: Value,
) -> serde_json::Map<String, Value> {
    // Before draft 2019-09 other members next to `$ref` are ignored.
    if let Some(reference) = own.remove("$ref") {
        let mut all = vec![json!({"$ref": reference})];
        if let Some(Value::Array(known)) = own.remove("allOf") {
            all.extend(known);
        }
        all.push(condition);
        own.insert("allOf".to_owned(), all.into());
        return own;
    }
    match own.get_mut("allOf") {
        Some(Value::Array(all)) => all.push(condition),
        _ => {
            own.insert("allOf".to_owned(), json!([condition]));
        }
    }
    own
}

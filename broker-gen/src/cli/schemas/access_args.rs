//! The checks of `args` of access rules that need a validator: whether it compiles, and whether any arguments of a tool
//! can match it.

use broker_build::plan::tool_facts;
use broker_build::plan::{self, Entry};
use broker_config::Config;
use broker_model::access::claim_names;
use broker_model::lock::LockedSource;
use broker_model::{Diagnostic, DiagnosticCode};
use broker_schema::{Coverage, compile, covers, inspect};
use serde_json::{Value, json};

use crate::cli::schemas::compiles;

/// Returns every access rule whose `args` do not compile, or cannot match any arguments of a tool. Only for sources
/// whose schemas are accepted.
pub(in crate::cli) fn check(config: &Config, sources: &[LockedSource]) -> Vec<Diagnostic> {
    let (Some(access), Ok(plan)) = (&config.access, plan::plan(config, sources)) else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    for rule in &access.rules {
        let Some(args) = &rule.args else {
            continue;
        };
        let any_claim = without_claims(args);
        let pointer = format!("{}/args", rule.pointer);
        if let Err(problem) = inspect(&any_claim).and_then(|()| compiles(&any_claim)) {
            let place = problem.pointer.as_deref().unwrap_or_default();
            let message = format!("`args` is refused: {}, at `{place}`", problem.message);
            let found = Diagnostic::error(DiagnosticCode::AccessArgsInvalid, message);
            problems.push(config.place(found.at(pointer)));
            continue;
        }
        for (path, entry) in &plan.entries {
            let Entry::Tool(tool) = entry else {
                continue;
            };
            let Some(schema) = tool.tool.raw.get("inputSchema") else {
                continue;
            };
            if !rule.matches(&tool_facts(path, tool)) {
                continue;
            }
            if tool.tool.unvalidated {
                let message = format!(
                    "`{path}` is served unvalidated, so `args` cannot be checked against its schema"
                );
                let found = Diagnostic::error(DiagnosticCode::AccessArgsInvalid, message);
                let help = "Give the rule other paths, or leave `args` out.";
                problems.push(config.place(found.at(&pointer).help(help)));
            } else if never_match(schema, &any_claim) {
                let message = format!("no arguments of `{path}` match both its schema and `args`");
                let found = Diagnostic::error(DiagnosticCode::AccessArgsNever, message);
                problems.push(config.place(found.at(&pointer)));
            }
        }
    }
    problems
}

/// Returns a schema that permits any value for each claim.
fn without_claims(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let has_claim = |value: &Value| !claim_names(value).is_empty();
            let kept = members.iter().filter(|(key, value)| {
                !(matches!(key.as_str(), "const" | "enum") && has_claim(value))
            });
            kept.map(|(key, value)| (key.clone(), without_claims(value)))
                .collect()
        }
        Value::Array(items) => items.iter().map(without_claims).collect(),
        other => other.clone(),
    }
}

/// Whether it is certain that no arguments match both schemas: no value does, or no value of a property that one of
/// them requires.
fn never_match(schema: &Value, args: &Value) -> bool {
    if is_empty_together(schema, args) {
        return true;
    }
    let required = [schema, args].into_iter().flat_map(|one| {
        let names = one.get("required").and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str)
    });
    let property = |schema: &Value, name: &str| Some(schema.get("properties")?.get(name)?.clone());
    required.into_iter().any(|name| {
        let both = property(schema, name).zip(property(args, name));
        both.is_some_and(|(own, narrowing)| {
            have_other_types(&own, &narrowing)
                || values_never_match(&own, &narrowing)
                || values_never_match(&narrowing, &own)
                || is_empty_together(&own, &narrowing)
        })
    })
}

/// Whether it is proven that no value matches both schemas.
fn is_empty_together(one: &Value, other: &Value) -> bool {
    let both = json!({"allOf": [one, other]});
    matches!(covers(&both, &json!(false)), Coverage::Covered)
}

/// Whether both have types, and do not share one. An integer is a number.
fn have_other_types(one: &Value, other: &Value) -> bool {
    let types = |schema: &Value| -> Option<Vec<String>> {
        let names: Vec<&str> = match schema.get("type")? {
            Value::String(name) => vec![name],
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            _ => return None,
        };
        let general = |name: &str| match name {
            "integer" => "number".to_owned(),
            name => name.to_owned(),
        };
        Some(names.into_iter().map(general).collect())
    };
    let both = types(one).zip(types(other));
    both.is_some_and(|(one, other)| !one.iter().any(|name| other.contains(name)))
}

/// Whether `listed` has only certain values, and `schema` refuses all of them.
fn values_never_match(listed: &Value, schema: &Value) -> bool {
    let values = match (listed.get("const"), listed.get("enum")) {
        (Some(value), _) => std::slice::from_ref(value),
        (None, Some(Value::Array(values))) => values,
        _ => return false,
    };
    // Alone, a schema that refers to the rest of the tool's schema does not compile.
    let Ok(validator) = compile(schema) else {
        return false;
    };
    !values.iter().any(|value| validator.is_valid(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn args_that_no_arguments_of_a_tool_match_are_found() {
        let schema = json!({
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "to": {"enum": ["upper", "lower"]},
                "n": {"type": "integer", "minimum": 1},
            },
            "required": ["text"],
        });
        let args = |properties: Value, required: &[&str]| json!({"properties": properties, "required": required});
        for (never, args) in [
            (true, args(json!({"text": {"type": "integer"}}), &[])),
            (true, args(json!({"text": {"const": 7}}), &[])),
            (true, args(json!({"to": {"const": "title"}}), &["to"])),
            (true, args(json!({"n": {"enum": [0, "1"]}}), &["n"])),
            // It may be left out.
            (false, args(json!({"to": {"const": "title"}}), &[])),
            (false, args(json!({"to": {"const": "upper"}}), &["to"])),
            (false, args(json!({"n": {"type": "number"}}), &["n"])),
            (false, args(json!({"text": {"maxLength": 3}}), &["text"])),
        ] {
            assert_eq!(never_match(&schema, &args), never, "{args}");
        }
    }
}

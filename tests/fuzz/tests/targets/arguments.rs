//! Arguments against schemas that recur: every verdict and every explanation stays within its steps,
//! and the values of the text are counted as the parser makes them.

use broker_model::json::{estimate, parse};
use broker_schema::{
    Budget, MIN_STEPS, STEPS_PER_VALUE, Validator, Verdict, compile, count_values,
};
use fuzz::behaviour;
use serde_json::{Value, json};

/// The number of places that an explanation names.
const MAX_PLACES: usize = 20;

fn schemas() -> Vec<(Value, Validator)> {
    let next = json!({"$ref": "#/$defs/next"});
    let filter = json!({"properties": {"a": next}, "$defs": {"next": {"oneOf": [
        {"required": ["not"], "properties": {"not": next}},
        {"required": ["not", "b"], "properties": {"not": next, "b": {"type": "number"}}},
        {"required": ["eq"], "properties": {"eq": {"type": "string", "pattern": "^(?=.*a)(a|b)+$"}}}]}}});
    let twice = json!({"properties": {"a": next}, "$defs": {"next": {"type": ["object", "array", "string"],
        "allOf": [{"properties": {"not": next}}, {"additionalProperties": next}, {"items": next}]}}});
    let rest = json!({"$ref": "#/$defs/next", "unevaluatedProperties": false, "$defs": {"next": {
        "anyOf": [{"properties": {"a": next}}, {"patternProperties": {"^n": next}}, {"uniqueItems": true}],
        "propertyNames": {"maxLength": 3}}}});
    let schemas = [filter, twice, rest];
    let compiled = |schema: Value| {
        let validator = compile(&schema).expect("it compiles");
        (schema, validator)
    };
    schemas.into_iter().map(compiled).collect()
}

#[test]
fn arguments_against_recursive_schemas_stay_within_their_steps() {
    let words = [
        "{\"not\":",
        "{\"a\":",
        "{\"eq\":\"ab\"}",
        "{\"eq\":1}",
        "\"b\":1",
        "[[],[[]]]",
        "}",
        "]",
        "[",
        "\"\"",
        "null",
        "1.0",
        "{\"n\":",
        ",",
        "{}",
    ];
    let schemas = schemas();
    fuzz::run("arguments", &words, |bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Ok(0);
        };
        let Ok(value) = parse(text) else {
            return Ok(1);
        };
        let values = count_values(&value);
        if estimate(bytes).values != values {
            return Err(format!(
                "{values} values, estimated {}",
                estimate(bytes).values
            ));
        }
        let budget = Budget::from_values(values);
        let bound = MIN_STEPS.max(values * STEPS_PER_VALUE);
        let mut seen = Vec::new();
        for (schema, validator) in &schemas {
            let evaluation = validator.evaluate(&value, &budget);
            let mut places = 0;
            if evaluation.verdict != Verdict::Valid {
                let explanation = validator.explain(schema, &value, MAX_PLACES, &budget);
                places = explanation.places.len();
                if places > MAX_PLACES || explanation.steps > bound {
                    return Err(format!("{places} places in {} steps", explanation.steps));
                }
                if places == 0 && !explanation.more {
                    return Err("no place of what does not match".to_owned());
                }
            }
            if evaluation.steps > bound {
                return Err(format!("{} steps of {bound}", evaluation.steps));
            }
            let kind = match evaluation.verdict {
                Verdict::Valid => 0,
                Verdict::Invalid => 1,
                Verdict::OverBudget { .. } => 2,
            };
            seen.push((kind, evaluation.steps.max(1).ilog2(), places.min(3)));
        }
        Ok(behaviour(seen))
    });
}

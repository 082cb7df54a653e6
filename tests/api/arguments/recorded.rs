//! Arguments of the shapes that recorded tools take never reach the step budget, valid or not, small
//! or as long as a body may be.

use std::fs;
use std::path::Path;

use broker_schema::{Budget, MIN_STEPS, STEPS_PER_VALUE, Verdict, compile, count_values};
use serde_json::{Map, Value, json};

#[path = "../../corpus-broker/tests/types/samples.rs"]
mod samples;

/// Tools that were recorded.
const TOOLS: usize = 1455;
/// Values of a tool that are tried in each shape.
const MOST: usize = 40;
/// Items that every list is made to hold in the long shape.
const ITEMS: usize = 300;

/// Bytes of every string in the long shape. A pattern of one tool refers back: what it costs grows
/// with the square.
const BYTES: usize = 1000;

/// Every list is repeated, and every string is long: more to look at in each place.
fn longer(value: &Value) -> Value {
    match value {
        Value::Array(items) if !items.is_empty() => {
            let items = items.iter().cycle().take(ITEMS.max(items.len()));
            // Lists within lists are repeated on their first level alone.
            items.cloned().collect()
        }
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, member)| (name.clone(), longer(member)));
            Value::Object(members.collect())
        }
        Value::String(text) if !text.is_empty() => {
            Value::String(text.repeat(1 + BYTES / text.len()))
        }
        other => other.clone(),
    }
}

/// Every scalar has another type.
fn wrong(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(wrong).collect(),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, member)| (name.clone(), wrong(member)));
            let strange = ("strange".to_owned(), json!([{}]));
            members.chain([strange]).collect::<Map<_, _>>().into()
        }
        Value::String(_) => json!(7),
        _ => json!("wrong"),
    }
}

#[test]
fn validation_of_recorded_tools_never_reaches_the_budget() {
    let servers = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus-broker/servers");
    let (mut tools, mut valid, mut invalid) = (0, 0, 0);
    let mut dearest = (0, String::new());
    let mut share: f64 = 0.0;
    let mut explained = (0, String::new());
    for file in fs::read_dir(servers).expect("the recordings are there") {
        let text = fs::read(file.expect("readable").path()).expect("readable");
        let recorded: Value = serde_json::from_slice(&text).expect("JSON");
        for tool in recorded["tools"].as_array().expect("a list") {
            tools += 1;
            let schema = &tool["inputSchema"];
            let validator = compile(schema).expect("it compiles");
            let plain = samples::of(schema);
            let plain: Vec<_> = plain.into_iter().take(MOST).collect();
            let shapes: [fn(&Value) -> Value; 3] = [Value::clone, longer, wrong];
            for shape in shapes {
                for value in plain.iter().map(shape) {
                    let values = count_values(&value);
                    let budget = Budget::from_values(values);
                    let evaluation = validator.evaluate(&value, &budget);
                    let name = || format!("{} with {values} values", tool["name"]);
                    match evaluation.verdict {
                        Verdict::Valid => valid += 1,
                        Verdict::Invalid => {
                            invalid += 1;
                            // Some, since compiling takes time: the first of each shape.
                            if value == shape(&plain[0]) {
                                let explanation = validator.explain(schema, &value, 20, &budget);
                                assert!(!explanation.is_cut, "{}", name());
                                assert!(!explanation.places.is_empty(), "{}", name());
                                let found = explanation.steps;
                                explained = explained.clone().max((found, name()));
                            }
                        }
                        Verdict::OverBudget { pointer } => panic!("{} at {pointer}", name()),
                    }
                    let bound = MIN_STEPS.max(values * STEPS_PER_VALUE);
                    share = share.max(evaluation.steps as f64 / bound as f64);
                    dearest = dearest.max((evaluation.steps, name()));
                }
            }
        }
    }
    // There is room for shapes that were not thought of.
    assert!(share < 0.25, "{share}: {dearest:?}");
    let figures = format!(
        "{tools} tools, {valid} valid, {invalid} not, {share}, {dearest:?}, explained {explained:?}"
    );
    assert!(
        tools == TOOLS && valid > 3000 && invalid > 3000,
        "{figures}"
    );
    if std::env::var_os("SHOW_STEPS").is_some() {
        panic!("{figures}");
    }
}

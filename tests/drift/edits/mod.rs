//! Random edits of real schemas: a change that is called safe never refuses a value that was good. In a quarter of
//! the trials, both sides have a form of one combination of keywords.
//!
//! The values come from a separate generator, so that it does not share a blind spot of the
//! classifier. `DRIFT_EDITS` sets how many edits are tried, `DRIFT_SEED` where to begin.

mod combination;
mod edit;
mod instance;
mod random;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use broker_config::Config;
use broker_drift::{Class, ToolDrift, classify};
use broker_model::snapshot::Snapshot;
use broker_model::trust::Exposure;
use broker_schema::{compile, inspect};
use combination::Combination;
use random::Random;
use serde_json::{Value, json};

/// Larger schemas are many small ones side by side.
const MAX_BYTES: usize = 4000;
/// Values of each side.
const VALUES: usize = 40;

fn corpus() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus-broker/servers");
    let mut schemas = Vec::new();
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the corpus is there")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    files.sort();
    for file in files {
        let text = fs::read(&file).expect("a readable file");
        let document: Value = serde_json::from_slice(&text).expect("JSON");
        collect(&document, &mut schemas);
    }
    schemas.retain(|schema| {
        schema.to_string().len() <= MAX_BYTES
            && schema.to_string().len() > 60
            && compile(schema).is_ok()
    });
    schemas
}

fn collect(value: &Value, schemas: &mut Vec<Value>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                if matches!(name.as_str(), "inputSchema" | "outputSchema") {
                    schemas.push(value.clone());
                } else {
                    collect(value, schemas);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, schemas)),
        _ => {}
    }
}

fn snapshot(schema: &Value) -> Snapshot {
    let tool = json!({"name": "t", "inputSchema": schema, "outputSchema": schema});
    Snapshot {
        resources: Vec::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
        server_info: json!({}),
        protocol_version: String::new(),
        capabilities: json!({}),
        instructions: None,
        tools: vec![tool.as_object().expect("an object").clone().into()],
    }
}

/// The worst class of one side's findings.
fn class_of(drift: &ToolDrift, side: &str) -> Class {
    let own = drift
        .findings
        .iter()
        .filter(|one| one.rule.starts_with(side));
    own.map(|one| one.class).max().unwrap_or(Class::Same)
}

#[test]
fn schema_change_classified_safe_refuses_no_valid_value() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let (edits, seed) = (number("DRIFT_EDITS", 2500), number("DRIFT_SEED", 1));
    let config = json!({"tree": [{"path": "/s", "type": "node", "source": {"command": "server"}}]});
    let config = Config::parse("c.json", config.to_string().as_bytes())
        .expect("a config")
        .config;
    let source = config.sources().next().expect("one source");
    let corpus = corpus();
    assert!(corpus.len() > 500, "only {} schemas", corpus.len());
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut tried = 0;
    for trial in 0.. {
        if tried == edits {
            break;
        }
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(trial));
        let mut old = corpus[random.below(corpus.len())].clone();
        let mut did = Vec::new();
        let combination = random.one_in(4).then(|| Combination::of(&old, &mut random));
        if let Some(combination) = &combination {
            did.push(combination.put(&mut old, &mut random));
        }
        let mut new = old.clone();
        let edits_of_trial = match &combination {
            Some(combination) => {
                did.push(combination.put(&mut new, &mut random));
                random.below(2)
            }
            None => 1 + random.below(3),
        };
        for _ in 0..edits_of_trial {
            did.push(edit::apply(&mut new, &mut random));
        }
        // An edit may do nothing, or make what no server could send.
        let (Ok(old_validator), Ok(new_validator)) = (compile(&old), compile(&new)) else {
            continue;
        };
        if old == new || inspect(&new).is_err() {
            continue;
        }
        tried += 1;
        let locked = source.to_locked(&snapshot(&old));
        let report = classify(&locked, &snapshot(&new), &Exposure::expose_all());
        let drift = report.tools.first();
        let class = |side| drift.map_or(Class::Same, |drift| class_of(drift, side));
        let (input, output) = (class("input"), class("output"));
        *counts
            .entry(format!("input {}", input.as_str()))
            .or_default() += 1;
        *counts
            .entry(format!("output {}", output.as_str()))
            .or_default() += 1;
        let (mut good, mut answers) = (0, 0);
        for (from, validators) in [
            (&old, [&old_validator, &new_validator]),
            (&new, [&old_validator, &new_validator]),
        ] {
            for _ in 0..VALUES {
                let mut value = instance::of(from, from, &mut random, 0);
                if random.one_in(3) {
                    instance::disturb(&mut value, &mut random);
                }
                if !value.is_object() {
                    continue;
                }
                let [before, after] = validators.map(|validator| validator.is_valid(&value));
                let explain = || {
                    format!(
                        "seed {seed}, trial {trial}, {did:?}\nold {old}\nnew {new}\nvalue {value}\n{drift:#?}"
                    )
                };
                if before && !input.withdraws() && instance::is_practical(&old, &old, &value, None)
                {
                    good += 1;
                    assert!(
                        after,
                        "called {input:?}, and a call is refused: {}",
                        explain()
                    );
                }
                if after
                    && !output.withdraws()
                    && instance::is_practical(&new, &new, &value, Some(&old))
                {
                    answers += 1;
                    assert!(
                        before,
                        "called {output:?}, and an answer cannot be read: {}",
                        explain()
                    );
                }
                if matches!(input, Class::Equivalent) || matches!(output, Class::Equivalent) {
                    assert_eq!(before, after, "called equivalent: {}", explain());
                }
            }
        }
        *counts
            .entry("calls checked against a safe change".to_owned())
            .or_default() += good;
        *counts
            .entry("answers checked against a safe change".to_owned())
            .or_default() += answers;
    }
    eprintln!("{tried} edits: {counts:#?}");
    let count = |name: &str| counts.get(name).copied().unwrap_or_default();
    assert!(
        count("calls checked against a safe change") as u64 > edits,
        "{counts:#?}"
    );
    assert!((count("input unknown") as u64) < edits / 4, "{counts:#?}");
}

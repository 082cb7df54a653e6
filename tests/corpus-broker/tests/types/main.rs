//! Types of a complete catalog: they compile, and every sample that fits its schema survives a round
//! trip.

// Clippy would check the generated code of 1455 tools, which allows every lint of clippy.
#![cfg(not(clippy))]
#![deny(warnings)]

mod samples;

use broker_model::json::to_canonical;
use broker_model::lock::Lock;
use broker_schema as schema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A value read as a type and written again.
type Round = fn(Value) -> Result<Value, String>;

struct Typed {
    path: &'static str,
    args: Round,
    output: Option<Round>,
}

include!(concat!(env!("OUT_DIR"), "/types.rs"));

fn round<T: DeserializeOwned + Serialize>(value: Value) -> Result<Value, String> {
    let typed: T = serde_json::from_value(value).map_err(|error| error.to_string())?;
    serde_json::to_value(typed).map_err(|error| error.to_string())
}

#[test]
fn typed_sample_that_is_valid_is_written_back_unchanged() {
    let lock = Lock::parse("config.lock.json", include_str!("../../config.lock.json")).unwrap();
    let (mut checked, mut invalid, mut schemas, mut changed) = (0, 0, 0, Vec::new());
    for source in &lock.sources {
        for tool in &source.exposed {
            let path = source.path.join(&tool.exposed_name).unwrap();
            let Some(typed) = TOOLS.iter().find(|typed| typed.path == path.as_str()) else {
                continue;
            };
            let sides = [
                ("inputSchema", Some(typed.args)),
                ("outputSchema", typed.output),
            ];
            for (member, round) in sides {
                let (Some(schema), Some(round)) = (tool.raw.get(member), round) else {
                    continue;
                };
                schemas += 1;
                let validator = schema::compile(schema).unwrap();
                for sample in samples::of(schema) {
                    if !sample.is_object() || !validator.is_valid(&sample) {
                        invalid += 1;
                        continue;
                    }
                    checked += 1;
                    match round(sample.clone()) {
                        Ok(back) if back == sample => {}
                        Ok(back) => changed.push(format!(
                            "{path} {member}:\n  {}\n  {}",
                            String::from_utf8_lossy(&to_canonical(&sample)),
                            String::from_utf8_lossy(&to_canonical(&back))
                        )),
                        Err(error) => changed.push(format!("{path} {member}: {error}\n  {sample}")),
                    }
                }
            }
        }
    }
    assert!(
        schemas >= TOOLS.len() && TOOLS.len() > 200,
        "{schemas} schemas"
    );
    assert!(
        checked > 5 * schemas,
        "{checked} samples over {schemas} schemas"
    );
    assert!(invalid < 2 * checked, "{invalid} samples were no samples");
    let shown: Vec<_> = changed
        .iter()
        .take(20)
        .map(|text| text.chars().take(2000).collect::<String>())
        .collect();
    assert!(
        changed.is_empty(),
        "{} of {checked}: {}",
        changed.len(),
        shown.join("\n")
    );
    println!("{schemas} schemas, {checked} valid samples, {invalid} invalid");
}

//! Values that a schema may accept: the smallest, the largest, nulls, empty lists, unknown members,
//! every alternative. The validator decides whether they are valid.

use serde_json::{Map, Value, json};

/// The maximum depth of samples; the smallest value is used below.
const DEPTH: usize = 7;
/// Variants of one place.
const MAX_SAMPLES: usize = 24;

/// Samples for a root schema.
pub(crate) fn of(root: &Value) -> Vec<Value> {
    let mut samples = values(root, root, 0);
    samples.push(json!({}));
    samples.dedup();
    samples
}

fn values(schema: &Value, root: &Value, depth: usize) -> Vec<Value> {
    let Some(members) = schema.as_object() else {
        return vec![json!(null), json!({"any": [1, 2.5, "x"]})];
    };
    if depth > DEPTH {
        return vec![];
    }
    if let Some(target) = members.get("$ref").and_then(Value::as_str) {
        let pointer = target.trim_start_matches('#').replace("%24", "$");
        let Some(target) = root.pointer(&pointer) else {
            return vec![];
        };
        return values(target, root, depth + 1);
    }
    if let Some(value) = members.get("const") {
        return vec![value.clone()];
    }
    if let Some(Value::Array(list)) = members.get("enum") {
        return list.iter().take(MAX_SAMPLES).cloned().collect();
    }
    let mut out = Vec::new();
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for part in members
            .get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            out.extend(values(part, root, depth + 1).into_iter().take(6));
        }
    }
    let kinds: Vec<&str> = match members.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ if members.contains_key("properties") => vec!["object"],
        _ if out.is_empty() => vec!["null", "string", "number", "object", "array", "boolean"],
        _ => vec![],
    };
    for kind in kinds {
        out.extend(of_kind(kind, members, root, depth));
    }
    out.truncate(MAX_SAMPLES);
    out
}

fn of_kind(kind: &str, members: &Map<String, Value>, root: &Value, depth: usize) -> Vec<Value> {
    match kind {
        "null" => vec![Value::Null],
        "boolean" => vec![json!(true), json!(false)],
        "string" => strings(members),
        "integer" => numbers(
            members,
            &[
                json!(1),
                json!(0),
                json!(-7),
                json!(9_007_199_254_740_993_i64),
            ],
        ),
        "number" => numbers(
            members,
            &[
                json!(3),
                json!(2.5),
                json!(-1),
                json!(3.0),
                json!(u64::MAX),
                json!(1e300),
            ],
        ),
        "array" => arrays(members, root, depth),
        "object" => objects(members, root, depth),
        _ => vec![],
    }
}

fn strings(members: &Map<String, Value>) -> Vec<Value> {
    let mut out = vec![
        json!("x"),
        json!(""),
        json!("a longer text, with \u{202e} and 名"),
        json!("3"),
    ];
    if let Some(least) = members.get("minLength").and_then(Value::as_u64) {
        out.push(json!("y".repeat(least.min(1000) as usize)));
    }
    for text in [
        "2024-02-29T12:00:00Z",
        "0F8FAD5B-D9CB-469F-A165-70867728950E",
        "https://example.com/a",
        "2024-02-29",
        "appABCDEFGHIJKLMN",
        "tblABCDEFGHIJKLMN",
        "1",
        "A1",
        "a@b.co",
    ] {
        out.push(json!(text));
    }
    out
}

fn numbers(members: &Map<String, Value>, usual: &[Value]) -> Vec<Value> {
    let bounds = ["minimum", "maximum"]
        .iter()
        .filter_map(|key| members.get(*key).cloned());
    let inner = members
        .get("exclusiveMinimum")
        .and_then(Value::as_i64)
        .map(|least| json!(least + 1));
    bounds.chain(inner).chain(usual.iter().cloned()).collect()
}

fn arrays(members: &Map<String, Value>, root: &Value, depth: usize) -> Vec<Value> {
    let any = json!(true);
    let items = values(members.get("items").unwrap_or(&any), root, depth + 1);
    let least = members
        .get("minItems")
        .and_then(Value::as_u64)
        .unwrap_or(1)
        .clamp(1, 8) as usize;
    let mut out = vec![json!([])];
    for item in items.iter().take(8) {
        out.push(Value::Array(vec![item.clone(); least]));
    }
    out.push(items.into_iter().take(8).collect());
    out
}

fn objects(members: &Map<String, Value>, root: &Value, depth: usize) -> Vec<Value> {
    let empty = Map::new();
    let properties = members
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let required: Vec<&str> = members
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let choices: Vec<(&String, Vec<Value>)> = properties
        .iter()
        .map(|(name, schema)| (name, values(schema, root, depth + 1)))
        .collect();
    let pick = |round: usize, all: bool| -> Map<String, Value> {
        let mut object = Map::new();
        for (name, values) in &choices {
            if (all || required.contains(&name.as_str())) && !values.is_empty() {
                object.insert((*name).clone(), values[round % values.len()].clone());
            }
        }
        for name in &required {
            object.entry(*name).or_insert(json!("undeclared"));
        }
        object
    };
    let mut out = Vec::new();
    for round in 0..if depth == 0 { 16 } else { 6 } {
        out.push(pick(round, false));
        out.push(pick(round, true));
    }
    // Each member separately, so that one without a valid sample affects only its samples.
    if depth == 0 {
        for (name, values) in &choices {
            for (index, value) in values.iter().enumerate() {
                let mut object = pick(index, false);
                object.insert((*name).clone(), value.clone());
                out.push(object);
            }
        }
    }
    let mut strange = pick(0, false);
    strange.insert("a stranger".to_owned(), json!({"n": [1, 2.0, null]}));
    strange.insert("extra".to_owned(), json!(7));
    out.push(strange);
    if let Some(other) = members
        .get("additionalProperties")
        .filter(|other| other.is_object())
    {
        for value in values(other, root, depth + 1).into_iter().take(6) {
            let mut object = pick(0, false);
            object.insert("another".to_owned(), value);
            out.push(object);
        }
    }
    out.into_iter().map(Value::Object).collect()
}

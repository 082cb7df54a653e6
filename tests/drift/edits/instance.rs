//! Values of a schema, by chance and without looking at the other side; and whether a caller would
//! send one in use.

use serde_json::{Map, Value, json};

use super::random::Random;

const TYPES: [&str; 7] = [
    "string", "integer", "number", "boolean", "array", "object", "null",
];

/// A value that the schema probably takes.
pub(crate) fn of(root: &Value, schema: &Value, random: &mut Random, depth: usize) -> Value {
    let Some(members) = schema.as_object() else {
        return json!("anything");
    };
    if let Some(target) = members.get("$ref").and_then(Value::as_str) {
        let found = target
            .strip_prefix('#')
            .and_then(|pointer| root.pointer(pointer));
        return match found {
            Some(found) if depth < 12 => of(root, found, random, depth + 1),
            _ => Value::Null,
        };
    }
    for group in ["anyOf", "oneOf"] {
        if let Some(Value::Array(list)) = members.get(group)
            && !list.is_empty()
        {
            let branch = random.pick(list);
            let mut value = of(root, branch, random, depth + 1);
            // The keywords next to the alternatives apply as well.
            if let (Value::Object(value), true) = (&mut value, members.contains_key("properties")) {
                fill(root, members, value, random, depth);
            }
            return value;
        }
    }
    if let Some(value) = members.get("const") {
        return value.clone();
    }
    if let Some(Value::Array(list)) = members.get("enum")
        && !list.is_empty()
    {
        return random.pick(list).clone();
    }
    if let Some(Value::Array(list)) = members.get("allOf")
        && let Some(first) = list.first()
    {
        return of(root, first, random, depth + 1);
    }
    let named = match members.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) if !names.is_empty() => {
            random.pick(names).as_str().unwrap_or("null").to_owned()
        }
        _ if members.contains_key("properties") => "object".to_owned(),
        _ if members.contains_key("items") => "array".to_owned(),
        _ => (*random.pick(&TYPES)).to_owned(),
    };
    let limit = |keyword: &str| members.get(keyword).and_then(Value::as_i64);
    let small = |random: &mut Random, end: usize| i64::try_from(random.below(end)).expect("small");
    match named.as_str() {
        "string" => text(members, random),
        "integer" => {
            let low =
                limit("minimum").or(limit("exclusiveMinimum").map(|low| low.saturating_add(1)));
            let high =
                limit("maximum").or(limit("exclusiveMaximum").map(|high| high.saturating_sub(1)));
            let step = limit("multipleOf").unwrap_or(1).max(1);
            let value = match (low, high) {
                (Some(low), _) => low.saturating_add(small(random, 4)),
                (None, Some(high)) => high.saturating_sub(small(random, 4)),
                _ => small(random, 12) - 4,
            };
            if random.one_in(8) {
                json!(value.saturating_mul(step).saturating_mul(1000))
            } else {
                json!(value.saturating_mul(step))
            }
        }
        "number" => {
            let base = limit("minimum").or(limit("maximum")).unwrap_or(0);
            #[expect(clippy::cast_precision_loss, reason = "bounds of schemas are small")]
            let near = base as f64 + *random.pick(&[0.5, -0.5, 0.0, 1.0, 7.25, -3.0]);
            json!(near)
        }
        "boolean" => json!(random.one_in(2)),
        "array" => {
            let low = usize::try_from(limit("minItems").unwrap_or(0)).unwrap_or(0);
            let count = if depth > 6 {
                low
            } else {
                low + random.below(3)
            };
            (0..count.min(20))
                .map(|index| {
                    let item = item_schema(schema, index);
                    item.map_or_else(|| json!("item"), |item| of(root, item, random, depth + 1))
                })
                .collect()
        }
        "object" => {
            let mut value = Map::new();
            fill(root, members, &mut value, random, depth);
            value.into()
        }
        _ => Value::Null,
    }
}

/// The schema of the item at this position, in the form of any dialect.
fn item_schema(schema: &Value, index: usize) -> Option<&Value> {
    let items = schema.get("items");
    if let Some(Value::Array(tuple)) = items {
        return tuple.get(index).or(schema.get("additionalItems"));
    }
    let tuple = schema.get("prefixItems");
    tuple.and_then(|tuple| tuple.get(index)).or(items)
}

fn text(members: &Map<String, Value>, random: &mut Random) -> Value {
    let limit = |keyword: &str| {
        members
            .get(keyword)
            .and_then(Value::as_u64)
            .and_then(|n| usize::try_from(n).ok())
    };
    let low = limit("minLength").unwrap_or(0).min(2000);
    let high = limit("maxLength").unwrap_or(low + 10).min(3000);
    let count = low + random.below(high.saturating_sub(low).min(30) + 1);
    let fixed = *random.pick(&["", "x1", "abc", "xyz", "2026-01-01", "https://a.example/"]);
    if low == 0 && random.one_in(2) {
        json!(fixed)
    } else {
        json!("x".repeat(count))
    }
}

fn fill(
    root: &Value,
    members: &Map<String, Value>,
    value: &mut Map<String, Value>,
    random: &mut Random,
    depth: usize,
) {
    let required = |name: &str| {
        let list = members.get("required").and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|one| one == name))
    };
    let declared = members.get("properties").and_then(Value::as_object);
    for (name, schema) in declared.into_iter().flatten() {
        if required(name) || (depth < 5 && random.one_in(2)) {
            value.insert(name.clone(), of(root, schema, random, depth + 1));
        }
    }
    if members.get("additionalProperties") != Some(&Value::Bool(false)) && random.one_in(2) {
        let name = *random.pick(&["zz", "a", "ab", "stranger", "added1"]);
        let schema = members
            .get("additionalProperties")
            .cloned()
            .unwrap_or_else(|| json!({}));
        if declared.is_none_or(|declared| !declared.contains_key(name)) {
            value.insert(name.to_owned(), of(root, &schema, random, depth + 1));
        }
    }
}

/// Puts another value somewhere, or takes one away.
pub(crate) fn disturb(value: &mut Value, random: &mut Random) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let names: Vec<String> = members.keys().cloned().collect();
            let name = random.pick(&names);
            if random.one_in(5) {
                members.remove(name);
            } else if let Some(one) = members.get_mut(name) {
                disturb(one, random);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let index = random.below(items.len());
            disturb(&mut items[index], random);
        }
        other => {
            let values = [
                json!("a"),
                json!(""),
                json!(3),
                json!(-7),
                json!(2.5),
                json!(true),
                Value::Null,
                json!([]),
                json!({}),
                json!(["a"]),
                json!({"a": 1}),
                json!(1.0),
                json!("x y"),
            ];
            *other = random.pick(&values).clone();
        }
    }
}

/// Whether the writer sends this in use: of an object that declares members no others, unless it
/// names a schema for them, and integers that are exact everywhere. An answer may hold others, but
/// none that only the `reviewed` schema declares.
pub(crate) fn is_practical(
    root: &Value,
    schema: &Value,
    value: &Value,
    reviewed: Option<&Value>,
) -> bool {
    let mut all = Vec::new();
    gather(root, schema, value, 0, &mut all);
    match value {
        Value::Object(members) => members.iter().all(|(name, value)| {
            let own: Vec<&Value> = all
                .iter()
                .filter_map(|one| one.get("properties")?.get(name))
                .collect();
            let others: Vec<&Value> = all
                .iter()
                .filter_map(|one| {
                    one.get("additionalProperties")
                        .or(one.get("unevaluatedProperties"))
                })
                .collect();
            let declares = all.iter().any(|one| {
                one.get("properties")
                    .and_then(Value::as_object)
                    .is_some_and(|map| !map.is_empty())
            });
            let no_arguments =
                std::ptr::eq(root, schema) && all.iter().any(|one| one.get("properties").is_some());
            let map = others.iter().any(|one| one.is_object());
            let no_call = no_arguments && others.is_empty();
            let free = !(declares || no_call);
            let allowed = match reviewed {
                None => !own.is_empty() || map || free,
                // By name anywhere in the document, which leaves out a few answers too many.
                Some(reviewed) => !own.is_empty() || !declares_anywhere(reviewed, name),
            };
            let places = if own.is_empty() { others } else { own };
            allowed
                && places
                    .iter()
                    .all(|place| is_practical(root, place, value, reviewed))
        }),
        Value::Array(items) => items.iter().enumerate().all(|(index, item)| {
            let places = all.iter().filter_map(|one| item_schema(one, index));
            places
                .into_iter()
                .all(|place| is_practical(root, place, item, reviewed))
        }),
        Value::Number(number) => {
            number.is_f64() && number.as_f64().is_some_and(|float| float.fract() != 0.0)
                || number
                    .as_f64()
                    .is_some_and(|float| float.abs() <= 9_007_199_254_740_991.0)
        }
        _ => true,
    }
}

fn declares_anywhere(schema: &Value, name: &str) -> bool {
    match schema {
        Value::Object(members) => {
            members
                .get("properties")
                .is_some_and(|map| map.get(name).is_some())
                || members.values().any(|value| declares_anywhere(value, name))
        }
        Value::Array(items) => items.iter().any(|item| declares_anywhere(item, name)),
        _ => false,
    }
}

/// Every subschema that speaks of the same value. An alternative that refuses the value declares nothing for it.
fn gather<'a>(
    root: &'a Value,
    schema: &'a Value,
    value: &Value,
    depth: usize,
    out: &mut Vec<&'a Value>,
) {
    if depth > 12 {
        return;
    }
    out.push(schema);
    let target = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|target| target.strip_prefix('#'));
    if let Some(found) = target.and_then(|pointer| root.pointer(pointer)) {
        gather(root, found, value, depth + 1, out);
    }
    for group in ["anyOf", "oneOf", "allOf"] {
        for branch in schema
            .get(group)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if group == "allOf" || !refuses(root, branch, value, depth + 1) {
                gather(root, branch, value, depth + 1, out);
            }
        }
    }
}

/// Whether a schema certainly refuses a value, by the keywords that tell alternatives apart.
fn refuses(root: &Value, schema: &Value, value: &Value, depth: usize) -> bool {
    if depth > 12 {
        return false;
    }
    let target = schema.get("$ref").and_then(Value::as_str);
    if let Some(pointer) = target.and_then(|target| target.strip_prefix('#')) {
        let found = root.pointer(pointer);
        return found.is_some_and(|found| refuses(root, found, value, depth + 1));
    }
    let is_type = |name: &Value| match name.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => value.is_number(),
    };
    let has_type = match schema.get("type") {
        Some(Value::Array(names)) => names.iter().any(is_type),
        Some(name) => is_type(name),
        None => true,
    };
    // Numbers have several forms.
    let is_listed = |one: &Value| one == value || (one.is_number() && value.is_number());
    let in_list = match (schema.get("const"), schema.get("enum")) {
        (Some(one), _) => is_listed(one),
        (None, Some(Value::Array(list))) => list.iter().any(is_listed),
        (None, _) => true,
    };
    let needs = schema.get("required").and_then(Value::as_array);
    let declares = schema.get("properties").and_then(Value::as_object);
    let refuses_members = value.as_object().is_some_and(|members| {
        let lacks = |name: &Value| {
            name.as_str()
                .is_some_and(|name| !members.contains_key(name))
        };
        needs.is_some_and(|names| names.iter().any(lacks))
            || declares.into_iter().flatten().any(|(name, schema)| {
                let member = members.get(name);
                member.is_some_and(|member| refuses(root, schema, member, depth + 1))
            })
    });
    !has_type || !in_list || refuses_members
}

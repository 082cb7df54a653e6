//! One random edit of a schema, of the kinds that releases make, and of some that they do not.

use serde_json::{Map, Value, json};

use super::random::Random;

const TYPES: [&str; 7] = [
    "string", "integer", "number", "boolean", "array", "object", "null",
];

/// Edits one place and says how.
pub(crate) fn apply(schema: &mut Value, random: &mut Random) -> String {
    let mut places = Vec::new();
    places_of(schema, String::new(), &mut places);
    let at = random.pick(&places).clone();
    let definition = format!("D{}", random.below(1000));
    let place = schema.pointer_mut(&at).expect("the place was just found");
    let Some(members) = place.as_object_mut() else {
        *place = json!(random.one_in(2));
        return format!("{at} flag");
    };
    let kind = random.below(32);
    let mut moved = None;
    change(members, kind, random);
    if kind == 31 && !at.is_empty() && !at.contains("$defs") {
        moved = Some(std::mem::replace(
            place,
            json!({"$ref": format!("#/$defs/{definition}")}),
        ));
    }
    if let (Some(moved), Some(root)) = (moved, schema.as_object_mut()) {
        let pool = root.entry("$defs").or_insert_with(|| json!({}));
        if let Some(pool) = pool.as_object_mut() {
            pool.insert(definition, moved);
        }
    }
    format!("{at} {kind}")
}

fn change(members: &mut Map<String, Value>, kind: usize, random: &mut Random) {
    let number = i64::try_from(random.below(6)).expect("small");
    match kind {
        0 => set(members, "type", json!(random.word(&TYPES))),
        1 => {
            let old = members.get("type").cloned();
            if let Some(Value::String(name)) = old {
                let other = random.word(&TYPES);
                members.insert(
                    "type".to_owned(),
                    if name == other {
                        json!([name])
                    } else {
                        json!([name, other])
                    },
                );
            }
        }
        2 => drop_one(members, "type"),
        3 => drop_item(members, "enum", random),
        4 => push(members, "enum", json!(random.word(&["x", "y", "other"]))),
        5 => set(members, "enum", json!(["a", "b", 1, null])),
        6 => set(
            members,
            random.word(&["minimum", "exclusiveMinimum"]),
            json!(number - 2),
        ),
        7 => set(
            members,
            random.word(&["maximum", "exclusiveMaximum"]),
            json!(number + 5),
        ),
        8 => set(
            members,
            random.word(&["minLength", "minItems", "minProperties"]),
            json!(number),
        ),
        9 => set(
            members,
            random.word(&["maxLength", "maxItems", "maxProperties"]),
            json!(number + 1),
        ),
        10 => {
            let limits = [
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "minLength",
                "maxLength",
                "minItems",
                "maxItems",
                "pattern",
                "multipleOf",
                "uniqueItems",
                "propertyNames",
            ];
            limits.iter().for_each(|keyword| drop_one(members, keyword));
        }
        11 => drop_item(members, "required", random),
        12 => {
            let names: Vec<String> = properties(members);
            if !names.is_empty() {
                let name = random.pick(&names).clone();
                if !members
                    .get("required")
                    .is_some_and(|list| list.to_string().contains(&format!("\"{name}\"")))
                {
                    push(members, "required", json!(name));
                }
            }
        }
        13 | 14 => {
            let names = properties(members);
            if let (false, Some(Value::Object(declared))) =
                (names.is_empty(), members.get_mut("properties"))
            {
                let name = random.pick(&names);
                declared.remove(name);
                if random.one_in(2)
                    && let Some(Value::Array(required)) = members.get_mut("required")
                {
                    required.retain(|one| one != name.as_str());
                }
            }
        }
        15 => {
            if let Some(Value::Object(declared)) = members.get_mut("properties") {
                let schema = json!({"type": random.word(&TYPES)});
                declared.insert(format!("added{number}"), schema);
            }
        }
        16 => set(members, "additionalProperties", json!(false)),
        17 => set(members, "additionalProperties", json!(true)),
        18 => drop_one(members, "additionalProperties"),
        19 => set(
            members,
            "additionalProperties",
            json!({"type": random.word(&TYPES)}),
        ),
        20 => {
            let held = Value::Object(std::mem::take(members));
            let other = json!({"type": random.word(&TYPES)});
            let group = random.word(&["anyOf", "oneOf"]);
            members.insert(group.to_owned(), json!([held, other]));
        }
        21 => {
            for group in ["anyOf", "oneOf", "allOf"] {
                drop_item(members, group, random);
            }
        }
        22 => {
            let held = Value::Object(std::mem::take(members));
            members.insert(
                "allOf".to_owned(),
                json!([held, {"maxLength": 20, "maximum": 100}]),
            );
        }
        23 => set(
            members,
            "pattern",
            json!(random.word(&["^[a-z]+$", "^x", "\\d"])),
        ),
        24 => set(members, "not", json!({"type": random.word(&TYPES)})),
        25 => set(members, "if", json!({"type": "string"})),
        26 => set(
            members,
            random.word(&["then", "else"]),
            json!({"minLength": 2, "minimum": 1}),
        ),
        27 => set(members, "items", json!({"type": random.word(&TYPES)})),
        28 => set(members, "uniqueItems", json!(random.one_in(2))),
        29 => set(
            members,
            random.word(&["multipleOf", "minContains", "maxContains"]),
            json!(number + 1),
        ),
        30 => match random.below(9) {
            0 => set(
                members,
                "$schema",
                json!("http://json-schema.org/draft-07/schema#"),
            ),
            1 => set(
                members,
                "$schema",
                json!("http://json-schema.org/draft-04/schema#"),
            ),
            2 => set(members, "propertyNames", json!({"maxLength": 6})),
            3 => set(members, "dependentRequired", json!({"a": ["b"]})),
            4 => set(members, "prefixItems", json!([{"type": "string"}])),
            5 => set(
                members,
                "patternProperties",
                json!({"^a": {"type": "integer"}}),
            ),
            6 => set(members, "unevaluatedProperties", json!(false)),
            7 => set(members, "contains", json!({"type": "string"})),
            _ => {
                if let Some(Value::Array(list)) = members.get("enum").cloned() {
                    members.remove("enum");
                    let branches = list.into_iter().map(|value| json!({"const": value}));
                    members.insert("anyOf".to_owned(), branches.collect());
                }
            }
        },
        _ => {}
    }
}

/// Every subschema, by its place.
pub(crate) fn places_of(schema: &Value, at: String, out: &mut Vec<String>) {
    let Some(members) = schema.as_object() else {
        return;
    };
    out.push(at.clone());
    for (keyword, value) in members {
        let below = format!("{at}/{}", keyword.replace('~', "~0").replace('/', "~1"));
        match (keyword.as_str(), value) {
            ("properties" | "$defs" | "definitions" | "x-types", Value::Object(map)) => {
                for (name, value) in map {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    places_of(value, format!("{below}/{name}"), out);
                }
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(list)) => {
                for (index, value) in list.iter().enumerate() {
                    places_of(value, format!("{below}/{index}"), out);
                }
            }
            (
                "items"
                | "additionalItems"
                | "additionalProperties"
                | "propertyNames"
                | "not"
                | "contains",
                value,
            ) => places_of(value, below, out),
            _ => {}
        }
    }
}

fn properties(members: &Map<String, Value>) -> Vec<String> {
    let declared = members.get("properties").and_then(Value::as_object);
    declared
        .into_iter()
        .flat_map(|map| map.keys().cloned())
        .collect()
}

fn set(members: &mut Map<String, Value>, keyword: &str, value: Value) {
    members.insert(keyword.to_owned(), value);
}

fn drop_one(members: &mut Map<String, Value>, keyword: &str) {
    members.remove(keyword);
}

fn drop_item(members: &mut Map<String, Value>, keyword: &str, random: &mut Random) {
    if let Some(Value::Array(list)) = members.get_mut(keyword)
        && list.len() > 1
    {
        let index = random.below(list.len());
        list.remove(index);
    }
}

fn push(members: &mut Map<String, Value>, keyword: &str, value: Value) {
    match members.get_mut(keyword) {
        Some(Value::Array(list)) if !list.contains(&value) => list.push(value),
        Some(_) => {}
        None if keyword == "required" => {
            members.insert(keyword.to_owned(), json!([value]));
        }
        None => {}
    }
}

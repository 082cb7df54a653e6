//! Keywords in combination, which real schemas rarely have: one form of a combination is put at a place of the old
//! schema, and another form of it at the same place of the new one.

use serde_json::{Map, Value, json};

use super::edit::places_of;
use super::random::Random;

/// The kinds of combinations.
const KINDS: usize = 4;

/// A place, and the combination that is put there.
pub(crate) struct Combination {
    kind: usize,
    at: String,
}

impl Combination {
    /// One of the kinds, at a place of the schema.
    pub(crate) fn of(schema: &Value, random: &mut Random) -> Self {
        let mut places = Vec::new();
        places_of(schema, String::new(), &mut places);
        // The whole schema stays an object.
        places.retain(|place| !place.is_empty());
        let at = match places.is_empty() {
            true => "/properties/combined".to_owned(),
            false => random.pick(&places).clone(),
        };
        let kind = random.below(KINDS);
        Self { kind, at }
    }

    /// Puts one form of it into the schema, and says where.
    pub(crate) fn put(&self, schema: &mut Value, random: &mut Random) -> String {
        let form = match self.kind {
            0 => step_beside_values(random),
            1 => union(random),
            2 => reference(schema, random),
            _ => old_tuple(schema, random),
        };
        match schema.pointer_mut(&self.at) {
            Some(place) => *place = form,
            None => {
                let members = schema.as_object_mut();
                let properties = members.map(|root| root.entry("properties").or_insert(json!({})));
                if let Some(Value::Object(properties)) = properties {
                    properties.insert("combined".to_owned(), form);
                }
            }
        }
        format!("{} combination {}", self.at, self.kind)
    }
}

/// `multipleOf` beside listed values, or in place of them, also below `anyOf`.
fn step_beside_values(random: &mut Random) -> Value {
    let step = random.below(3) + 1;
    let form = match random.below(6) {
        0 => json!({"enum": [3]}),
        1 => json!({"const": 4}),
        2 => json!({"enum": [2, 3, 4, 6], "multipleOf": step}),
        3 => json!({"const": 3, "multipleOf": step}),
        4 => json!({"type": "integer", "multipleOf": step, "minimum": 0}),
        _ => json!({"enum": [2, 4, "a"]}),
    };
    match random.one_in(3) {
        true => json!({"anyOf": [form, {"type": "string"}]}),
        false => form,
    }
}

/// Objects that a required member tells apart, or does not.
fn union(random: &mut Random) -> Value {
    let mut branch = || {
        let kind = match random.below(8) {
            0..3 => json!({"const": *random.pick(&["a", "b", "c"])}),
            3 => json!({"enum": ["a", "b"]}),
            4 => json!({"enum": ["c", "d"]}),
            5 => json!({"type": "string", "minLength": 1}),
            6 => json!({"type": "string", "minLength": 2}),
            _ => json!({"type": *random.pick(&["integer", "string"])}),
        };
        let mut members = Map::from_iter([("kind".to_owned(), kind)]);
        if random.one_in(3) {
            members.insert("size".to_owned(), json!({"type": "integer"}));
        }
        let required = match random.one_in(8) {
            true => json!([]),
            false => json!(["kind"]),
        };
        json!({"type": "object", "properties": members, "required": required})
    };
    let mut branches = vec![branch(), branch(), branch()];
    match random.below(3) {
        0 => branches.swap_remove(0),
        count => {
            branches.truncate(count + 1);
            json!({"oneOf": branches})
        }
    }
}

/// A reference to a place outside the definitions, whose target differs between the forms.
fn reference(schema: &mut Value, random: &mut Random) -> Value {
    let target = match random.below(5) {
        0 => json!({"type": "string"}),
        1 => json!({"type": "string", "minLength": 2}),
        2 => json!({"type": "integer", "multipleOf": 2}),
        3 => json!({"enum": ["a", "x"]}),
        _ => json!({"type": ["integer", "string"]}),
    };
    if let Some(root) = schema.as_object_mut() {
        root.insert("x-types".to_owned(), json!({"t": target}));
    }
    let reference = json!({"$ref": "#/x-types/t"});
    match random.below(4) {
        0 => json!({"not": reference}),
        1 => json!({"type": "array", "items": reference}),
        _ => reference,
    }
}

/// A tuple as before 2020-12.
fn old_tuple(schema: &mut Value, random: &mut Random) -> Value {
    if let Some(root) = schema.as_object_mut() {
        let dialect = json!("http://json-schema.org/draft-07/schema#");
        root.insert("$schema".to_owned(), dialect);
    }
    let mut item = || json!({"type": *random.pick(&["string", "integer", "number"])});
    let (first, second, more) = (item(), item(), item());
    let mut tuple = json!({"type": "array", "items": [first, second], "minItems": 1});
    match random.below(5) {
        0 => tuple["additionalItems"] = json!(false),
        1 => tuple["additionalItems"] = more,
        2 => tuple["items"] = json!([first]),
        3 => tuple["items"] = first,
        _ => {}
    }
    tuple
}

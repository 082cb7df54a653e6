//! Explains why a value does not match a schema: the search goes from the root to one failing place at a time,
//! without collecting values.
//!
//! Validators of the parts of the schema decide whether a part matches. Each is compiled when it is
//! needed, and charged by the size of its schema. The search does not enter the alternatives of `anyOf`
//! and `oneOf`, since the intended alternative is not known.

use serde_json::{Map, Value, json};

use super::budget::Budget;
use super::error::{SchemaError, got, no_members};
use super::exact::keyword_names;
use super::meter::Form;
use super::parts::{Parts, decoded_pointer};
use super::weights::Weights;
use broker_model::json::child_pointer;

/// Maximum number of subschemas on the way to one place.
const MAX_LEVELS: usize = 256;

/// Keywords that apply to the value itself, with those that modify them.
const ASSERTIONS: [&[&str]; 17] = [
    &["type"],
    &["enum"],
    &["const"],
    &["minLength"],
    &["maxLength"],
    &["pattern"],
    &["minimum", "exclusiveMinimum"],
    &["maximum", "exclusiveMaximum"],
    &["multipleOf"],
    &["minItems"],
    &["maxItems"],
    &["uniqueItems"],
    &["minProperties"],
    &["maxProperties"],
    &["dependentRequired"],
    &["contentMediaType", "contentEncoding"],
    &["contentEncoding"],
];
/// Keywords whose subschemas the search does not enter.
const CLOSED: [&str; 9] = [
    "anyOf",
    "oneOf",
    "not",
    "contains",
    "propertyNames",
    "$dynamicRef",
    "$recursiveRef",
    "unevaluatedProperties",
    "unevaluatedItems",
];

/// The failing places of one value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The places found.
    pub places: Vec<SchemaError>,
    /// Whether there may be more.
    pub more: bool,
    /// Whether the budget was used up before the end of the search.
    pub is_cut: bool,
    /// Steps taken.
    pub steps: u64,
}

impl Explanation {
    /// The explanation for a value that must be an object.
    pub(super) fn refuse_non_object(value: &Value) -> Self {
        let place = SchemaError {
            pointer: String::new(),
            keyword: "type".to_owned(),
            schema_pointer: String::new(),
            expected: "object".to_owned(),
            got: got(value),
        };
        Self {
            places: vec![place],
            ..Self::default()
        }
    }
}

/// The first `max` places at which `value`, which does not match, fails `schema`, and the remaining steps.
pub(super) fn explain(
    schema: &Value,
    value: &Value,
    max: usize,
    budget: &Budget<'_>,
    weights: &Weights,
    form: Form,
) -> (Explanation, u64) {
    let registry = Parts::registry(schema);
    let mut search = Search {
        parts: Parts::new(schema, registry.as_ref(), budget, weights, form),
        found: Explanation::default(),
        max,
    };
    let place = Mismatch {
        schema,
        schema_pointer: String::new(),
        value,
        pointer: String::new(),
        level: 0,
    };
    let ended = search.visit(&place).is_some();
    search.found.is_cut = search.parts.is_spent();
    search.found.steps = budget.total() - search.parts.left();
    search.found.more |= !ended;
    let left = search.parts.left();
    (search.found, left)
}

/// A subschema and a value that does not match it.
struct Mismatch<'a> {
    schema: &'a Value,
    schema_pointer: String,
    value: &'a Value,
    pointer: String,
    level: usize,
}

impl<'a> Mismatch<'a> {
    /// A subschema for the same value.
    fn same(&self, schema: &'a Value, path: &[&str]) -> Self {
        self.part(schema, path, self.value, None)
    }

    /// A subschema at `path` for a part of the value.
    fn part(&self, schema: &'a Value, path: &[&str], value: &'a Value, at: Option<&str>) -> Self {
        let below = |pointer: &str, token: &&str| child_pointer(pointer, token);
        Self {
            schema,
            schema_pointer: path
                .iter()
                .fold(self.schema_pointer.clone(), |to, token| below(&to, token)),
            value,
            pointer: at.map_or(self.pointer.clone(), |at| child_pointer(&self.pointer, at)),
            level: self.level + 1,
        }
    }

    fn error(&self, keyword: &str, expected: String) -> SchemaError {
        SchemaError {
            pointer: self.pointer.clone(),
            keyword: keyword.to_owned(),
            schema_pointer: child_pointer(&self.schema_pointer, keyword),
            expected,
            got: got(self.value),
        }
    }
}

/// `None` ends the search: there are enough places, or the budget is used up.
type Step = Option<()>;

struct Search<'a> {
    parts: Parts<'a>,
    found: Explanation,
    max: usize,
}

impl<'a> Search<'a> {
    fn add(&mut self, error: SchemaError) -> Step {
        if self.found.places.len() == self.max {
            self.found.more = true;
            return None;
        }
        self.found.places.push(error);
        Some(())
    }

    /// Enters a failing place.
    fn enter(&mut self, place: &Mismatch<'a>) -> Step {
        if self
            .parts
            .matches(&place.schema_pointer, place.schema, place.value)?
        {
            return Some(());
        }
        self.visit(place)
    }

    /// Adds every place at which a value that does not match fails.
    fn visit(&mut self, place: &Mismatch<'a>) -> Step {
        let before = self.found.places.len();
        let Value::Object(keywords) = place.schema else {
            let error = SchemaError {
                schema_pointer: place.schema_pointer.clone(),
                ..place.error("falseSchema", "nothing here".to_owned())
            };
            return self.add(error);
        };
        if place.level == MAX_LEVELS {
            let expected = "a match of the schema".to_owned();
            return self.add(place.error("$ref", expected));
        }
        let alone = keywords.contains_key("$ref") && self.parts.ref_stands_alone();
        self.reference(place, keywords)?;
        if !alone {
            self.assertions(place, keywords)?;
            self.in_place(place, keywords)?;
            self.members(place, keywords)?;
            self.items(place, keywords)?;
            self.closed(place, keywords, before)?;
        }
        if self.found.places.len() == before {
            // The failure is in a subschema that the search does not enter.
            let keyword = if alone { "$ref" } else { "allOf" };
            self.add(place.error(keyword, "a match of the schema".to_owned()))?;
        }
        Some(())
    }

    fn reference(&mut self, place: &Mismatch<'a>, keywords: &'a Map<String, Value>) -> Step {
        let Some(Value::String(target)) = keywords.get("$ref") else {
            return Some(());
        };
        let pointer = target.strip_prefix('#').map(decoded_pointer);
        let found =
            pointer.and_then(|pointer| Some((self.parts.root().pointer(&pointer)?, pointer)));
        match found {
            Some((schema, schema_pointer)) => self.enter(&Mismatch {
                schema_pointer,
                ..place.same(schema, &[])
            }),
            // An anchor or another base: the failure is known, its place is not.
            None => self.check_closed(place, keywords, "$ref"),
        }
    }

    fn assertions(&mut self, place: &Mismatch<'a>, keywords: &'a Map<String, Value>) -> Step {
        self.required(place, keywords)?;
        let mut used = Vec::new();
        for group in ASSERTIONS {
            if used.contains(&group[0]) {
                continue;
            }
            let part: Map<String, Value> = group
                .iter()
                .flat_map(|name| keyword_names(name))
                .filter_map(|name| {
                    let value = keywords.get(&name)?.clone();
                    Some((name, value))
                })
                .collect();
            used.extend_from_slice(group);
            if part.is_empty() {
                continue;
            }
            if let Some(error) = self.parts.failure(part, place.value)? {
                let keyword = error.keyword.clone();
                let expected = error.expected;
                self.add(place.error(&keyword, expected))?;
            }
        }
        Some(())
    }

    fn required(&mut self, place: &Mismatch<'a>, keywords: &Map<String, Value>) -> Step {
        if let (Some(Value::Array(names)), Value::Object(members)) =
            (keywords.get("required"), place.value)
        {
            for name in names.iter().filter_map(Value::as_str) {
                self.parts.take(1)?;
                if !members.contains_key(name) {
                    let expected = broker_model::text::shown_line(&json!(name).to_string(), 280);
                    self.add(place.error("required", format!("the member {expected}")))?;
                }
            }
        }
        Some(())
    }

    /// Subschemas for the same value.
    fn in_place(&mut self, place: &Mismatch<'a>, keywords: &'a Map<String, Value>) -> Step {
        if let Some(Value::Array(all)) = keywords.get("allOf") {
            for (index, schema) in all.iter().enumerate() {
                self.enter(&place.same(schema, &["allOf", &index.to_string()]))?;
            }
        }
        if let Some(condition) = keywords.get("if") {
            let condition_pointer = child_pointer(&place.schema_pointer, "if");
            let holds = self
                .parts
                .matches(&condition_pointer, condition, place.value)?;
            let branch = if holds { "then" } else { "else" };
            if let Some(schema) = keywords.get(branch) {
                self.enter(&place.same(schema, &[branch]))?;
            }
        }
        let Value::Object(members) = place.value else {
            return Some(());
        };
        for keyword in ["dependentSchemas", "dependencies"] {
            let Some(Value::Object(dependent)) = keywords.get(keyword) else {
                continue;
            };
            for (name, wanted) in dependent
                .iter()
                .filter(|(name, _)| members.contains_key(*name))
            {
                self.parts.take(1)?;
                match wanted {
                    Value::Array(names) => {
                        let missing = names.iter().filter_map(Value::as_str);
                        for missing in missing.filter(|name| !members.contains_key(*name)) {
                            let expected =
                                broker_model::text::shown_line(&json!(missing).to_string(), 280);
                            self.add(place.error(keyword, format!("the member {expected}")))?;
                        }
                    }
                    schema => self.enter(&place.same(schema, &[keyword, name]))?,
                }
            }
        }
        Some(())
    }

    fn members(&mut self, place: &Mismatch<'a>, keywords: &'a Map<String, Value>) -> Step {
        let Value::Object(members) = place.value else {
            return Some(());
        };
        let map = |keyword: &str| keywords.get(keyword).and_then(Value::as_object);
        let declared = map("properties");
        let patterns = map("patternProperties");
        let additional = keywords.get("additionalProperties");
        let mut unexpected = Vec::new();
        for (name, member) in members {
            self.parts.take(1)?;
            let mut known = false;
            if let Some(schema) = declared.and_then(|declared| declared.get(name)) {
                known = true;
                self.enter(&place.part(schema, &["properties", name], member, Some(name)))?;
            }
            for (pattern, schema) in patterns.into_iter().flatten() {
                if self.parts.name_matches(pattern, name)? {
                    known = true;
                    let path = ["patternProperties", pattern.as_str()];
                    self.enter(&place.part(schema, &path, member, Some(name)))?;
                }
            }
            match additional {
                _ if known => {}
                Some(Value::Bool(false)) => unexpected.push(name),
                Some(schema) => {
                    let path = ["additionalProperties"];
                    self.enter(&place.part(schema, &path, member, Some(name)))?;
                }
                None => {}
            }
        }
        if !unexpected.is_empty() {
            let expected = no_members(unexpected.into_iter());
            self.add(place.error("additionalProperties", expected))?;
        }
        Some(())
    }

    fn items(&mut self, place: &Mismatch<'a>, keywords: &'a Map<String, Value>) -> Step {
        let Value::Array(items) = place.value else {
            return Some(());
        };
        let items_keyword = keywords.get("items");
        // Positions, and the schema of later items: other keywords before 2019-09.
        let (first, rest) = match (keywords.get("prefixItems"), items_keyword) {
            (_, Some(Value::Array(first))) => (Some(("items", first)), "additionalItems"),
            (Some(Value::Array(first)), _) => (Some(("prefixItems", first)), "items"),
            _ => (None, "items"),
        };
        let positions = first.map_or(0, |(_, first)| first.len());
        for (index, item) in items.iter().enumerate() {
            self.parts.take(1)?;
            let at = index.to_string();
            let place = match first.and_then(|(keyword, first)| Some((keyword, first.get(index)?)))
            {
                Some((keyword, schema)) => place.part(schema, &[keyword, &at], item, Some(&at)),
                None => match keywords.get(rest).filter(|_| index >= positions) {
                    Some(schema) => place.part(schema, &[rest], item, Some(&at)),
                    None => break,
                },
            };
            self.enter(&place)?;
        }
        Some(())
    }

    fn closed(
        &mut self,
        place: &Mismatch<'a>,
        keywords: &'a Map<String, Value>,
        before: usize,
    ) -> Step {
        let present: Vec<_> = CLOSED
            .iter()
            .filter(|name| keywords.contains_key(**name))
            .collect();
        if let ([only], true) = (&present[..], self.found.places.len() == before) {
            // Everything else matched, so this one failed.
            return self.add(place.error(only, expected_of(only)));
        }
        for keyword in present {
            self.check_closed(place, keywords, keyword)?;
        }
        Some(())
    }

    fn check_closed(
        &mut self,
        place: &Mismatch<'a>,
        keywords: &'a Map<String, Value>,
        keyword: &str,
    ) -> Step {
        if self
            .parts
            .keyword_matches(&place.schema_pointer, keywords, keyword, place.value)?
        {
            return Some(());
        }
        self.add(place.error(keyword, expected_of(keyword)))
    }
}

fn expected_of(keyword: &str) -> String {
    match keyword {
        "anyOf" => "a match of at least one of the alternatives",
        "oneOf" => "a match of exactly one of the alternatives",
        "not" => "no match of the `not` schema",
        "contains" => "an item that matches `contains`",
        "propertyNames" => "member names that match `propertyNames`",
        "unevaluatedProperties" => "no further members",
        "unevaluatedItems" => "no further items",
        _ => "a match of the schema that is referred to",
    }
    .to_owned()
}

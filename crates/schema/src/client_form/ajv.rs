//! What Ajv requires of a schema that it compiles, as the TypeScript clients of both generations set it up: `strict`
//! and `validateSchema` are false, the vocabulary is draft 7 (first generation) or the dialect (second).

use serde_json::{Map, Value};

use broker_model::json::{exact_number, string_text};

use super::Unlistable;
use crate::ecma;
use crate::graph::{Graph, LIST, MAP};

/// The kind of value that a keyword must have.
enum Kind {
    Number,
    Text,
    Flag,
    List,
    Map,
    Schema,
}

/// The keywords whose values Ajv checks when it compiles.
const KEYWORDS: [(&str, Kind); 37] = [
    ("maximum", Kind::Number),
    ("minimum", Kind::Number),
    ("exclusiveMaximum", Kind::Number),
    ("exclusiveMinimum", Kind::Number),
    ("multipleOf", Kind::Number),
    ("maxLength", Kind::Number),
    ("minLength", Kind::Number),
    ("maxItems", Kind::Number),
    ("minItems", Kind::Number),
    ("maxProperties", Kind::Number),
    ("minProperties", Kind::Number),
    ("maxContains", Kind::Number),
    ("minContains", Kind::Number),
    ("pattern", Kind::Text),
    ("format", Kind::Text),
    ("$ref", Kind::Text),
    ("$dynamicRef", Kind::Text),
    ("$recursiveRef", Kind::Text),
    ("uniqueItems", Kind::Flag),
    ("nullable", Kind::Flag),
    ("required", Kind::List),
    ("enum", Kind::List),
    ("allOf", Kind::List),
    ("anyOf", Kind::List),
    ("oneOf", Kind::List),
    ("properties", Kind::Map),
    ("patternProperties", Kind::Map),
    ("dependencies", Kind::Map),
    ("dependentRequired", Kind::Map),
    ("dependentSchemas", Kind::Map),
    ("additionalProperties", Kind::Schema),
    ("propertyNames", Kind::Schema),
    ("contains", Kind::Schema),
    ("not", Kind::Schema),
    ("if", Kind::Schema),
    ("then", Kind::Schema),
    ("else", Kind::Schema),
];

const TYPES: [&str; 7] = [
    "string", "number", "integer", "boolean", "null", "object", "array",
];

/// The dialects that the second generation knows, without scheme and without an empty fragment.
const DIALECTS: [&str; 4] = [
    "json-schema.org/draft/2020-12/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft-06/schema",
];

/// Refuses a schema that one of the clients does not compile.
pub(super) fn check(schema: &Value, graph: &Graph) -> Result<(), Unlistable> {
    let dialect = schema.get("$schema").and_then(Value::as_str);
    let is_known = |dialect: &str| {
        let name = dialect.trim_end_matches('#');
        let name = name
            .strip_prefix("https://")
            .or_else(|| name.strip_prefix("http://"));
        name.is_some_and(|name| DIALECTS.contains(&name))
    };
    if dialect.is_some_and(|dialect| !is_known(dialect)) {
        return Err(Unlistable(
            "clients do not know the dialect of its `$schema`",
        ));
    }
    // Without a dialect the second generation reads draft 2020-12.
    let allows_tuples = dialect.is_some_and(|dialect| !dialect.contains("2020-12"));
    // Ajv reads every `$id`, also of definitions that are not used.
    for node in &graph.nodes {
        let id = schema
            .pointer(&node.pointer)
            .and_then(|level| level.get("$id"));
        if id.is_some() && !node.pointer.is_empty() {
            return Err(Unlistable(
                "a subschema has an `$id`, which clients keep for all tools",
            ));
        }
        if id.is_some_and(|id| !id.is_string()) {
            return Err(Unlistable("its `$id` is not a text"));
        }
    }
    let mut open = vec![0];
    let mut seen = vec![false; graph.nodes.len()];
    while let Some(at) = open.pop() {
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        let node = &graph.nodes[at];
        open.extend(node.in_place.iter().chain(&node.to_parts));
        if let Some(Value::Object(keywords)) = schema.pointer(&node.pointer) {
            level(keywords, allows_tuples)?;
        }
    }
    Ok(())
}

/// Checks the keywords of one subschema.
fn level(keywords: &Map<String, Value>, allows_tuples: bool) -> Result<(), Unlistable> {
    for (keyword, kind) in &KEYWORDS {
        if keywords
            .get(*keyword)
            .is_some_and(|value| !kind.admits(value))
        {
            return Err(Unlistable(
                "a keyword has a value that Ajv does not compile",
            ));
        }
    }
    types(keywords)?;
    if keywords.contains_key("id") {
        return Err(Unlistable(
            "it has the keyword `id`, which Ajv does not compile",
        ));
    }
    if keywords
        .get("$async")
        .is_some_and(|value| *value != Value::Bool(false))
    {
        return Err(Unlistable("it has the keyword `$async` of Ajv"));
    }
    if keywords
        .get("enum")
        .and_then(Value::as_array)
        .is_some_and(Vec::is_empty)
    {
        return Err(Unlistable(
            "it has an empty `enum`, which Ajv does not compile",
        ));
    }
    match keywords.get("items") {
        Some(Value::Array(_)) if !allows_tuples => {
            return Err(Unlistable(
                "its `items` is a list, which draft 2020-12 does not have",
            ));
        }
        None | Some(Value::Array(_) | Value::Object(_) | Value::Bool(_)) => {}
        Some(_) => return Err(Unlistable("its `items` is not a schema")),
    }
    let lists = LIST
        .iter()
        .filter_map(|(keyword, _)| keywords.get(*keyword)?.as_array());
    let maps = MAP.iter().filter(|(keyword, _)| *keyword != "dependencies");
    let maps = maps.filter_map(|(keyword, _)| keywords.get(*keyword)?.as_object());
    let mut children = lists.flatten().chain(maps.flat_map(Map::values));
    if children.any(|child| !Kind::Schema.admits(child)) {
        return Err(Unlistable("one of its subschemas is not a schema"));
    }
    let named = keywords.get("patternProperties").and_then(Value::as_object);
    let named = named.into_iter().flat_map(Map::keys).map(String::as_str);
    let mut patterns = named.chain(keywords.get("pattern").and_then(string_text));
    match patterns.all(ecma::is_unicode_pattern) {
        true => Ok(()),
        false => Err(Unlistable(
            "a pattern is not one of ECMA-262 with the flag `u`",
        )),
    }
}

/// Checks `type` and `nullable`.
fn types(keywords: &Map<String, Value>) -> Result<(), Unlistable> {
    let is_type = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    let (is_valid, has_null) = match keywords.get("type") {
        None => (true, None),
        Some(Value::Array(many)) => (
            many.iter().all(is_type),
            (!many.is_empty()).then(|| many.iter().any(|one| one == "null")),
        ),
        Some(one) => (is_type(one), Some(one == "null")),
    };
    if !is_valid {
        return Err(Unlistable("a `type` is not one of JSON Schema"));
    }
    match (keywords.get("nullable"), has_null) {
        (Some(_), None) => Err(Unlistable(
            "it has `nullable` without `type`, which Ajv does not compile",
        )),
        (Some(Value::Bool(false)), Some(true)) => Err(Unlistable(
            "`nullable` contradicts `type`, which Ajv does not compile",
        )),
        _ => Ok(()),
    }
}

impl Kind {
    fn admits(&self, value: &Value) -> bool {
        match self {
            Self::Number => value.is_number() || exact_number(value).is_some(),
            Self::Text => string_text(value).is_some(),
            Self::Flag => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Map => value.is_object(),
            Self::Schema => value.is_object() || value.is_boolean(),
        }
    }
}

//! Reads one level of a schema into a [`Node`], under the dialect of each subschema's document.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::super::exact::has_exact_number;
use super::document::{Dialect, SchemaLocation};
use super::limits::Bound;
use super::node::{Conjunction, Group, Node, Opaque, same_value};
use super::types::Types;

/// Keywords that have numbers.
const NUMBERS: [&str; 7] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "enum",
    "const",
];

/// `properties` and `additionalProperties` of one subschema, which belong together.
struct ObjectKeywords<'a> {
    properties: Vec<(&'a str, SchemaLocation<'a>)>,
    additional: Option<SchemaLocation<'a>>,
}

/// Items of one subschema.
struct ArrayKeywords<'a> {
    prefix: Vec<SchemaLocation<'a>>,
    rest: Option<SchemaLocation<'a>>,
}

impl<'a> Conjunction<'a> {
    /// Reads the level; parts of the value are not read.
    pub(super) fn read(&self) -> Node<'a> {
        let mut node = Node::anything();
        node.arguments = self.arguments;
        let (mut members, mut items) = (Vec::new(), Vec::new());
        let mut open: Vec<SchemaLocation<'a>> = self.locations.iter().rev().cloned().collect();
        while let Some(location) = open.pop() {
            if node.locations.len() > 500 {
                node.unsupported = true;
                break;
            }
            match location.value {
                Value::Bool(true) => {}
                Value::Object(keywords) => {
                    node.take(
                        &location,
                        keywords,
                        &self.chosen,
                        &mut open,
                        &mut members,
                        &mut items,
                    );
                }
                _ => node.never = true,
            }
            node.locations.push(location);
        }
        node.join_members(members);
        node.join_items(items);
        if let Some(only) = self.only {
            node.types = node.types.narrowed(only);
        }
        if let Some(values) = &mut node.values {
            values.retain(|value| node.types.has_type_of(value));
            node.never |= values.is_empty();
        }
        node.never |= node.types.is_empty();
        node
    }
}

impl<'a> Node<'a> {
    fn take(
        &mut self,
        location: &SchemaLocation<'a>,
        keywords: &'a Map<String, Value>,
        chosen: &BTreeMap<String, usize>,
        open: &mut Vec<SchemaLocation<'a>>,
        members: &mut Vec<ObjectKeywords<'a>>,
        items: &mut Vec<ArrayKeywords<'a>>,
    ) {
        let dialect = location.document.dialect;
        let has = |keyword: &str| keywords.contains_key(keyword);
        if let Some(target) = keywords.get("$ref") {
            match target
                .as_str()
                .and_then(|target| location.document.resolve(target))
            {
                Some(found) => open.push(found),
                None => self.unsupported = true,
            }
            if dialect <= Dialect::Draft7 {
                return;
            }
        }
        self.unsupported |= has("$dynamicRef") || has("$recursiveRef");
        // Another dialect makes a part another document.
        self.unsupported |= !location.pointer.is_empty() && has("$schema");
        self.unsupported |= keywords
            .get("patternProperties")
            .is_some_and(|patterns| patterns != &Value::Object(Map::new()));
        // Nothing is proven of exact numbers.
        self.unsupported |= NUMBERS
            .iter()
            .filter_map(|keyword| keywords.get(*keyword))
            .any(has_exact_number);
        self.take_types(keywords, dialect);
        self.take_limits(keywords, dialect);
        for (keyword, exclusive) in [("anyOf", false), ("oneOf", true)] {
            let Some(Value::Array(list)) = keywords.get(keyword) else {
                continue;
            };
            let pointer = broker_model::json::child_pointer(&location.pointer, keyword);
            let branch = |index: usize| location.below(keyword, &index.to_string(), &list[index]);
            match chosen.get(&pointer) {
                Some(index) => open.push(branch(*index)),
                None => self.groups.push(Group {
                    pointer,
                    exclusive,
                    branches: (0..list.len()).map(branch).collect(),
                }),
            }
        }
        if let Some(Value::Array(list)) = keywords.get("allOf") {
            for (index, all) in list.iter().enumerate().rev() {
                open.push(location.below("allOf", &index.to_string(), all));
            }
        }
        self.take_opaque(location, keywords, dialect);
        let applies = ["$ref", "allOf", "anyOf", "oneOf", "dependentSchemas"]
            .into_iter()
            .any(has);
        let mut unevaluated = |keyword: &str, beside: &[&str]| {
            let found = keywords
                .get(keyword)
                .filter(|_| dialect >= Dialect::Draft201909)?;
            if beside.iter().any(|keyword| keywords.contains_key(*keyword))
                || found == &Value::Bool(true)
            {
                return None;
            }
            self.unsupported |= applies || has("if") || has("contains") || has("patternProperties");
            Some(location.child(keyword, found))
        };
        let additional = keywords
            .get("additionalProperties")
            .map(|value| location.child("additionalProperties", value))
            .or_else(|| unevaluated("unevaluatedProperties", &["additionalProperties"]));
        let unevaluated_items = unevaluated(
            "unevaluatedItems",
            if dialect == Dialect::Draft202012 {
                &["items"]
            } else {
                &["additionalItems"]
            },
        );
        if let Some(Value::Object(declared)) = keywords.get("properties") {
            members.push(ObjectKeywords {
                properties: declared
                    .iter()
                    .map(|(name, value)| (name.as_str(), location.below("properties", name, value)))
                    .collect(),
                additional,
            });
        } else if additional.is_some() {
            members.push(ObjectKeywords {
                properties: Vec::new(),
                additional,
            });
        }
        if let Some(names) = keywords
            .get("propertyNames")
            .filter(|names| dialect >= Dialect::Draft6 && !only_says_string(names))
        {
            self.names
                .locations
                .push(location.child("propertyNames", names));
        }
        if let Some(Value::Array(names)) = keywords.get("required") {
            self.required.extend(names.iter().filter_map(Value::as_str));
        }
        items.extend(read_items(location, keywords, dialect, unevaluated_items));
    }

    fn take_types(&mut self, keywords: &'a Map<String, Value>, dialect: Dialect) {
        if let Some(value) = keywords.get("type") {
            match Types::read(value) {
                Some(types) => self.types = self.types.and(types),
                None => self.unsupported = true,
            }
        }
        let mut values: Vec<Vec<&'a Value>> = Vec::new();
        if let Some(Value::Array(list)) = keywords.get("enum") {
            values.push(list.iter().collect());
        }
        if let Some(value) = keywords.get("const").filter(|_| dialect >= Dialect::Draft6) {
            values.push(vec![value]);
        }
        for list in values {
            self.values = Some(match self.values.take() {
                None => list,
                Some(held) => held
                    .into_iter()
                    .filter(|value| list.iter().any(|other| same_value(value, other)))
                    .collect(),
            });
        }
    }

    fn take_limits(&mut self, keywords: &'a Map<String, Value>, dialect: Dialect) {
        let number = |keyword: &str| match keywords.get(keyword) {
            Some(Value::Number(number)) => Some(number.clone()),
            _ => None,
        };
        let flag = |keyword: &str| keywords.get(keyword) == Some(&Value::Bool(true));
        for (keyword, strict, lower) in [
            ("minimum", "exclusiveMinimum", true),
            ("maximum", "exclusiveMaximum", false),
        ] {
            let inclusive = number(keyword).map(|value| Bound {
                value,
                exclusive: dialect == Dialect::Draft4 && flag(strict),
            });
            let exclusive = number(strict)
                .filter(|_| dialect > Dialect::Draft4)
                .map(|value| Bound {
                    value,
                    exclusive: true,
                });
            for bound in inclusive.into_iter().chain(exclusive) {
                self.unsupported |= !self.limits.tighten(lower, bound);
            }
        }
        for (keyword, of) in [
            ("minLength", 0),
            ("minItems", 1),
            ("minProperties", 2),
            ("maxLength", 0),
            ("maxItems", 1),
            ("maxProperties", 2),
        ] {
            let Some(value) = keywords.get(keyword) else {
                continue;
            };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole and within the range, or else the node is unsupported"
            )]
            let count = value.as_u64().or_else(|| {
                let float = value.as_f64()?;
                (float.fract() == 0.0 && (0.0..1e15).contains(&float)).then_some(float as u64)
            });
            match count {
                Some(count) => self.limits.count(of, keyword.starts_with("min"), count),
                None => self.unsupported = true,
            }
        }
        if let Some(Value::Number(step)) = keywords.get("multipleOf") {
            self.multiples.push(step);
        }
        if let Some(Value::String(pattern)) = keywords.get("pattern") {
            self.patterns.insert(pattern);
        }
        self.unique |= flag("uniqueItems");
    }

    fn take_opaque(
        &mut self,
        location: &SchemaLocation<'a>,
        keywords: &'a Map<String, Value>,
        dialect: Dialect,
    ) {
        const KEYWORDS: [(&str, Dialect); 8] = [
            ("not", Dialect::Draft4),
            ("if", Dialect::Draft7),
            ("contains", Dialect::Draft6),
            ("dependencies", Dialect::Draft4),
            ("dependentRequired", Dialect::Draft201909),
            ("dependentSchemas", Dialect::Draft201909),
            // The validator of callers does not support these two in any dialect; they are compared in case that of a
            // server does.
            ("extends", Dialect::Draft4),
            ("disallow", Dialect::Draft4),
        ];
        for (keyword, since) in KEYWORDS {
            if dialect >= since
                && let Some(value) = keywords.get(keyword)
            {
                if keyword == "not"
                    && let Some(types) = only_type(value)
                {
                    self.types = self.types.without(types);
                    continue;
                }
                if keyword == "if"
                    && !keywords.contains_key("then")
                    && !keywords.contains_key("else")
                {
                    continue;
                }
                let whole = matches!(keyword, "if" | "contains");
                self.opaque.push(Opaque {
                    keyword,
                    location: if whole {
                        location.clone()
                    } else {
                        location.child(keyword, value)
                    },
                });
            }
        }
    }

    /// A member that one subschema declares is an additional one to another that does not.
    fn join_members(&mut self, all: Vec<ObjectKeywords<'a>>) {
        let names: BTreeSet<&'a str> = all
            .iter()
            .flat_map(|one| one.properties.iter().map(|(name, _)| *name))
            .collect();
        let declared: Vec<BTreeMap<&'a str, &SchemaLocation<'a>>> = all
            .iter()
            .map(|one| {
                one.properties
                    .iter()
                    .map(|(name, location)| (*name, location))
                    .collect()
            })
            .collect();
        for name in names {
            let entry = self.properties.entry(name).or_default();
            for (one, declared) in all.iter().zip(&declared) {
                match (declared.get(name), &one.additional) {
                    (Some(location), _) => entry.locations.push((*location).clone()),
                    (None, Some(location)) => entry.locations.push(location.clone()),
                    (None, None) => {}
                }
            }
        }
        for location in all.into_iter().filter_map(|one| one.additional) {
            self.says_additional = true;
            self.additional.locations.push(location);
        }
    }

    fn join_items(&mut self, all: Vec<ArrayKeywords<'a>>) {
        let longest = all.iter().map(|one| one.prefix.len()).max().unwrap_or(0);
        for index in 0..longest {
            let mut place = Conjunction::default();
            for one in &all {
                place
                    .locations
                    .extend(one.prefix.get(index).or(one.rest.as_ref()).cloned());
            }
            self.prefix.push(place);
        }
        self.rest.locations = all.into_iter().filter_map(|one| one.rest).collect();
    }
}

fn read_items<'a>(
    location: &SchemaLocation<'a>,
    keywords: &'a Map<String, Value>,
    dialect: Dialect,
    unevaluated: Option<SchemaLocation<'a>>,
) -> Option<ArrayKeywords<'a>> {
    let (tuple, rest) = if dialect == Dialect::Draft202012 {
        ("prefixItems", "items")
    } else {
        ("items", "additionalItems")
    };
    let prefix = match keywords.get(tuple) {
        Some(Value::Array(list)) => list
            .iter()
            .enumerate()
            .map(|(index, item)| location.below(tuple, &index.to_string(), item))
            .collect(),
        // One schema for all items; `additionalItems` has no effect then.
        Some(value) if tuple == "items" => {
            return Some(ArrayKeywords {
                prefix: Vec::new(),
                rest: Some(location.child(tuple, value)),
            });
        }
        _ if tuple == "items" => {
            return unevaluated.map(|rest| ArrayKeywords {
                prefix: Vec::new(),
                rest: Some(rest),
            });
        }
        _ => Vec::new(),
    };
    let rest = keywords
        .get(rest)
        .map(|value| location.child(rest, value))
        .or(unevaluated);
    (!prefix.is_empty() || rest.is_some()).then_some(ArrayKeywords { prefix, rest })
}

/// The types of a schema without other assertions.
fn only_type(schema: &Value) -> Option<Types> {
    let members = schema.as_object().filter(|members| members.len() == 1)?;
    Types::read(members.get("type")?)
}

/// Member names are strings, so `{"type": "string"}` does not restrict them.
fn only_says_string(names: &Value) -> bool {
    names.as_object().is_some_and(|members| {
        members
            .iter()
            .all(|(keyword, value)| keyword == "type" && value == "string")
    })
}

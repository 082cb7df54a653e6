//! One level of a schema, read under its dialect: all assertions on one value, gathered from the subschema,
//! its references and its `allOf`. Parts of the value are not read.
//!
//! A keyword that this form cannot express makes the node `unsupported`; then nothing is proven of it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Number, Value};

use super::document::SchemaLocation;
use super::limits::Limits;
use super::types::{Type, Types};
use broker_model::json::to_canonical;

/// Subschemas that all apply to one value, with chosen branches and a type to which it is narrowed.
#[derive(Clone, Debug, Default)]
pub(super) struct Conjunction<'a> {
    pub(super) locations: Vec<SchemaLocation<'a>>,
    /// Pointers of `anyOf` and `oneOf` lists, each with the branch that is taken.
    pub(super) chosen: BTreeMap<String, usize>,
    pub(super) only: Option<Type>,
    /// These are the arguments of a call as a whole.
    pub(super) arguments: bool,
}

/// A list of alternatives.
#[derive(Clone, Debug)]
pub(super) struct Group<'a> {
    pub(super) pointer: String,
    pub(super) exclusive: bool,
    pub(super) branches: Vec<SchemaLocation<'a>>,
}

/// An assertion that is only compared as text.
#[derive(Clone, Debug)]
pub(super) struct Opaque<'a> {
    pub(super) keyword: &'static str,
    pub(super) location: SchemaLocation<'a>,
}

/// One level of a schema.
#[derive(Debug)]
pub(super) struct Node<'a> {
    /// Every subschema that was read, references and `allOf` followed.
    pub(super) locations: Vec<SchemaLocation<'a>>,
    pub(super) never: bool,
    pub(super) unsupported: bool,
    pub(super) types: Types,
    pub(super) values: Option<Vec<&'a Value>>,
    pub(super) limits: Limits,
    pub(super) multiples: Vec<&'a Number>,
    pub(super) patterns: BTreeSet<&'a str>,
    pub(super) unique: bool,
    pub(super) prefix: Vec<Conjunction<'a>>,
    pub(super) rest: Conjunction<'a>,
    pub(super) properties: BTreeMap<&'a str, Conjunction<'a>>,
    pub(super) required: BTreeSet<&'a str>,
    pub(super) additional: Conjunction<'a>,
    /// Whether `additionalProperties` is written anywhere.
    pub(super) says_additional: bool,
    pub(super) arguments: bool,
    pub(super) names: Conjunction<'a>,
    pub(super) groups: Vec<Group<'a>>,
    pub(super) opaque: Vec<Opaque<'a>>,
}

impl<'a> Conjunction<'a> {
    pub(super) fn new(location: SchemaLocation<'a>) -> Self {
        Self {
            locations: vec![location],
            ..Self::default()
        }
    }

    /// Whether it certainly accepts every value.
    pub(super) fn is_anything(&self) -> bool {
        self.only.is_none()
            && self.locations.iter().all(|location| match location.value {
                Value::Bool(yes) => *yes,
                Value::Object(members) => members.is_empty(),
                _ => false,
            })
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.locations
            .iter()
            .any(|location| location.value == &Value::Bool(false))
    }

    pub(super) fn choosing(&self, group: &Group<'_>, branch: usize) -> Self {
        let mut chosen = self.clone();
        chosen.chosen.insert(group.pointer.clone(), branch);
        chosen
    }

    pub(super) fn narrowed(&self, to: Type) -> Self {
        Self {
            only: Some(to),
            ..self.clone()
        }
    }

    /// Its identity within the document.
    pub(super) fn key(&self) -> String {
        let mut key = format!("{:?}{:?}{}", self.only, self.chosen, self.arguments);
        for location in &self.locations {
            key.push(' ');
            key.push_str(&location.pointer);
        }
        key
    }
}

impl<'a> Node<'a> {
    pub(super) fn anything() -> Self {
        Self {
            locations: Vec::new(),
            never: false,
            unsupported: false,
            types: Types::ALL,
            values: None,
            limits: Limits::default(),
            multiples: Vec::new(),
            patterns: BTreeSet::new(),
            unique: false,
            prefix: Vec::new(),
            rest: Conjunction::default(),
            properties: BTreeMap::new(),
            required: BTreeSet::new(),
            additional: Conjunction::default(),
            says_additional: false,
            arguments: false,
            names: Conjunction::default(),
            groups: Vec::new(),
            opaque: Vec::new(),
        }
    }

    /// The amount of text that was read.
    pub(super) fn size(&self) -> usize {
        let branches: usize = self.groups.iter().map(|group| group.branches.len()).sum();
        let listed = self.values.as_ref().map_or(0, Vec::len);
        self.locations.len() + self.properties.len() + self.prefix.len() + branches + listed
    }

    /// The first place of a keyword, and its value.
    pub(super) fn origin(&self, keyword: &str) -> Option<(String, &'a Value)> {
        self.locations.iter().find_map(|location| {
            let value = location.members()?.get(keyword)?;
            Some((
                broker_model::json::child_pointer(&location.pointer, keyword),
                value,
            ))
        })
    }
}

/// Whether two values are equal for a validator: numbers by value.
pub(super) fn same_value(one: &Value, other: &Value) -> bool {
    one == other || to_canonical(one) == to_canonical(other)
}

//! What the simplified copy of a schema says beyond JSON Schema: names, absences, reasons.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::Reason;

/// A schema ready for typify, and what to mend in the code that comes out.
#[derive(Clone, Debug, Default)]
pub(super) struct Outline {
    /// The copy: `title` and the root's own schema, with `definitions`.
    pub(super) schema: Value,
    /// Every type that must come out, by name.
    pub(super) types: BTreeSet<String>,
    /// Fields named otherwise than their members: type and key to the member's name.
    pub(super) renamed: BTreeMap<(String, String), String>,
    /// Members that may be absent and may be null, which are two things: type and key.
    pub(super) absent_or_null: BTreeSet<(String, String)>,
    /// Why places are wider than the schema says.
    pub(super) reasons: Vec<Reason>,
}

/// What a place is once everything that no type says is left out.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// Any JSON value.
    Any,
    /// As this simplified schema, or null as well.
    Typed {
        /// The schema, without null.
        schema: Value,
        /// Whether null is valid.
        nullable: bool,
    },
}

impl Shape {
    /// Exactly as this simplified schema.
    pub(super) fn of(schema: Value) -> Self {
        Self::Typed {
            schema,
            nullable: false,
        }
    }

    /// A reference to a named type.
    pub(super) fn named(name: &str) -> Self {
        Self::of(json!({ "$ref": format!("#/definitions/{name}") }))
    }

    /// The same, or null.
    pub(super) fn or_null(self, null: bool) -> Self {
        match self {
            Self::Typed { schema, nullable } => Self::Typed {
                schema,
                nullable: nullable || null,
            },
            Self::Any => Self::Any,
        }
    }

    /// Whether null is valid.
    pub(super) const fn takes_null(&self) -> bool {
        match self {
            Self::Any => true,
            Self::Typed { nullable, .. } => *nullable,
        }
    }

    /// The schema for typify.
    pub(super) fn into_schema(self) -> Value {
        match self {
            Self::Any => Value::Object(Map::new()),
            Self::Typed {
                schema,
                nullable: true,
            } => json!({ "oneOf": [schema, { "type": "null" }] }),
            Self::Typed { schema, .. } => schema,
        }
    }
}

//! The simplified copy of a schema, with data beyond JSON Schema: names, absences, reasons.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::Reason;

/// A schema ready for typify, and the corrections of the generated code.
#[derive(Clone, Debug, Default)]
pub(super) struct Outline {
    /// The copy: `title` and the root's own schema, with `definitions`.
    pub(super) schema: Value,
    /// Every expected type, by name.
    pub(super) types: BTreeSet<String>,
    /// Fields whose names differ from their members: type and key to the member's name.
    pub(super) renamed: BTreeMap<(String, String), String>,
    /// Members that may be absent and may be null; the two are different. Type and key of each.
    pub(super) absent_or_null: BTreeSet<(String, String)>,
    /// The reasons why places are wider than the schema.
    pub(super) reasons: Vec<Reason>,
}

/// The shape of a place, without constraints that no type expresses.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// Any JSON value.
    Any,
    /// This simplified schema, or null.
    Typed {
        /// The schema, without null.
        schema: Value,
        /// Whether null is valid.
        nullable: bool,
    },
}

impl Shape {
    /// Makes the shape with exactly this simplified schema.
    pub(super) fn typed(schema: Value) -> Self {
        Self::Typed {
            schema,
            nullable: false,
        }
    }

    /// A reference to a named type.
    pub(super) fn named(name: &str) -> Self {
        Self::typed(json!({ "$ref": format!("#/definitions/{name}") }))
    }

    /// A reference to a named type, or null.
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

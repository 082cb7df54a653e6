//! The changes that a walk over two schemas has found, and its state.

use std::collections::BTreeSet;

use serde_json::Value;

use super::view::Side;
use crate::SchemaError;

/// Maximum number of reported changes.
const MAX_CHANGES: usize = 1000;

/// The direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The new schema accepts fewer values here.
    Narrowed,
    /// The new schema accepts more values here.
    Widened,
    /// The new schema accepts other values here.
    Changed,
    /// The rule decides what the change means; a proof does not matter.
    RuleDefined,
}

/// One change.
#[derive(Clone, Debug)]
pub struct Change {
    /// The id of the rule without its prefix `input-` or `output-`.
    pub rule: String,
    /// Its direction.
    pub direction: Direction,
    /// The JSON pointer of the place in the old schema, or in the new one if the place is new.
    pub pointer: String,
    /// The JSON pointer in the new schema, if it differs.
    pub new_pointer: Option<String>,
    /// The value in the old schema.
    pub old: Option<Value>,
    /// The value in the new schema.
    pub new: Option<Value>,
    /// One sentence about the change.
    pub message: String,
}

impl Change {
    /// The score of this change as an explanation of these reasons of a refusal, from 0 to 3: 2 for the
    /// keyword, 1 for the place.
    pub fn explains(&self, reasons: &[SchemaError]) -> u8 {
        let property = self.pointer.rsplit_once("/properties/");
        let property = property.map(|(_, rest)| rest.split('/').next().unwrap_or(rest));
        let of_one = |reason: &SchemaError| {
            let family: &[&str] = match reason.keyword.as_str() {
                "required" => &["required-"],
                "enum" | "const" => &["enum-"],
                "type" => &["type-"],
                "pattern" => &["pattern-"],
                "anyOf" | "oneOf" | "not" => &["alternatives-"],
                "additionalProperties" | "unevaluatedProperties" => &["object-", "property-"],
                _ => &["limit-"],
            };
            let family = family.iter().any(|begin| self.rule.starts_with(begin));
            let here = property.is_some_and(|name| {
                reason.expected.contains(&format!("`{name}`"))
                    || reason.pointer.rsplit('/').next() == Some(name)
            });
            2 * u8::from(family) + u8::from(here)
        };
        reasons.iter().map(of_one).max().unwrap_or(0)
    }
}

/// Walks two schemas side by side.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) side: Side,
    pub(super) seen: BTreeSet<(String, String)>,
    pub(super) steps: usize,
    pub(super) depth: usize,
    pub(super) changes: Vec<Change>,
}

/// A place to show: its pointer and value on one side.
pub(super) type Origin<'a> = Option<(String, &'a Value)>;

impl Walk {
    pub(super) fn new(side: Side) -> Self {
        Self {
            side,
            seen: BTreeSet::new(),
            steps: 0,
            depth: 0,
            changes: Vec::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        rule: &str,
        direction: Direction,
        at: [Origin<'_>; 2],
        message: String,
    ) {
        let [old, new] = at;
        let pointer = old
            .as_ref()
            .or(new.as_ref())
            .map(|(pointer, _)| pointer.clone())
            .unwrap_or_default();
        let new_pointer = new
            .as_ref()
            .map(|(at, _)| at.clone())
            .filter(|at| *at != pointer);
        let known = |one: &Change| one.rule == rule && one.pointer == pointer;
        let full = self.changes.len() >= MAX_CHANGES && rule != "header-changed";
        if full || self.changes.iter().any(known) {
            return;
        }
        self.changes.push(Change {
            rule: rule.to_owned(),
            direction,
            pointer,
            new_pointer,
            old: old.map(|(_, value)| value.clone()),
            new: new.map(|(_, value)| value.clone()),
            message,
        });
    }

    pub(super) fn directed(
        &mut self,
        rule: &str,
        narrower: bool,
        wider: bool,
        at: [Origin<'_>; 2],
        what: &str,
    ) {
        let (direction, ending) = match (narrower, wider) {
            (true, true) => return,
            (true, false) => (Direction::Narrowed, "narrowed"),
            (false, true) => (Direction::Widened, "widened"),
            (false, false) => (Direction::Changed, "changed"),
        };
        let message = format!(
            "{what} {}",
            if direction == Direction::Changed {
                "changed".to_owned()
            } else {
                format!("was {ending}")
            }
        );
        self.add(&format!("{rule}-{ending}"), direction, at, message);
    }
}

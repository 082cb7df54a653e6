//! The search for a value that the writer's schema accepts and the reader's does not. A value that is
//! found was validated against both schemas, each under its own dialect.

use std::cell::Cell;

use serde_json::Value;

use super::candidates::Candidates;
use super::node::{Conjunction, Node};
use super::view::{Side, View};
use crate::{Budget, MIN_STEPS, SchemaError, Validator, Verdict, compile, count_values};

/// Maximum number of tried values.
const MAX_TRIED: usize = 6000;
/// Maximum bytes of tried values: a validator is linear at best.
const MAX_BYTES: usize = 16 << 20;

/// Maximum steps of validating all of them, each within the budget of a call.
const MAX_STEPS: u64 = 20_000_000;

/// Maximum nesting at which a lost member is looked for.
const MAX_DEPTH: usize = 12;
/// Maximum number of reasons.
const MAX_REASONS: usize = 5;

/// Both schemas, compiled.
#[derive(Debug)]
pub(super) struct Search<'s, 'a> {
    writer: &'s Conjunction<'a>,
    reader: &'s Conjunction<'a>,
    takes: [Validator; 2],
    comparable: bool,
    side: Side,
    /// Whether only objects are tried: arguments and structured results are objects.
    objects_only: bool,
    cut: Cell<bool>,
}

impl<'s, 'a> Search<'s, 'a> {
    /// The error says which side cannot be compiled.
    pub(super) fn new(
        side: Side,
        writer: &'s Conjunction<'a>,
        reader: &'s Conjunction<'a>,
    ) -> Result<Self, &'static str> {
        let root = |side: &Conjunction<'a>| side.locations[0].document;
        let (one, other) = (root(writer), root(reader));
        let validator = |document: &super::document::Document| {
            compile(document.root()).map_err(|_| "a schema cannot be compiled")
        };
        Ok(Self {
            takes: [validator(one)?, validator(other)?],
            writer,
            reader,
            side,
            objects_only: true,
            cut: Cell::new(false),
            comparable: super::numbers_mean_the_same(one, other),
        })
    }

    /// Searches over values of every type.
    pub(super) fn with_any_type(self) -> Self {
        Self {
            objects_only: false,
            ..self
        }
    }

    /// Whether numbers have the same meaning in both schemas, which a proof needs.
    pub(super) const fn is_comparable(&self) -> bool {
        self.comparable
    }

    /// The reasons why the reader does not accept a value.
    pub(super) fn reasons(&self, value: &Value) -> Vec<SchemaError> {
        let budget = Budget::from_values(count_values(value));
        let schema = self.reader.locations[0].document.root();
        let found = self.takes[1].explain(schema, value, MAX_REASONS, &budget);
        found.places
    }

    /// The reason why there is no counterexample, if there is no proof either.
    pub(super) fn why_unknown(&self) -> &'static str {
        if self.cut.get() {
            "the schemas take too many steps to check values"
        } else {
            "neither a proof nor a counterexample was found"
        }
    }

    /// Finds the simplest value that the writer's schema accepts and the reader's does not.
    pub(super) fn counterexample(&self, view: View) -> Option<Value> {
        self.first(view, |value, verdict| {
            verdict(0, value) == Verdict::Valid && verdict(1, value) == Verdict::Invalid
        })
    }

    /// Finds the simplest value with a member that the writer's schema declares and the reader's does not.
    pub(super) fn value_with_a_lost_member(&self) -> Option<Value> {
        let (from, to) = (self.writer.read(), self.reader.read());
        self.first(View::Practical, |value, verdict| {
            loses_a_member(value, &from, &to, 0) && verdict(0, value) == Verdict::Valid
        })
    }

    /// Finds the simplest value that a predicate takes; it gets the verdicts of writer and reader.
    fn first(
        &self,
        view: View,
        takes: impl Fn(&Value, &dyn Fn(usize, &Value) -> Verdict) -> bool,
    ) -> Option<Value> {
        let mut bytes = 0;
        let left = Cell::new(MAX_STEPS);
        let verdict = |side: usize, value: &Value| {
            let budget = Budget::steps(left.get().min(MIN_STEPS));
            let evaluation = self.takes[side].evaluate(value, &budget);
            left.set(left.get() - evaluation.steps);
            if let Verdict::OverBudget { .. } = evaluation.verdict {
                self.cut.set(true);
            }
            evaluation.verdict
        };
        let tried = Candidates::new(self.side, view).find(self.writer, Some(self.reader), 0);
        tried
            .into_iter()
            .take(MAX_TRIED)
            .take_while(|value| {
                bytes += value.to_string().len();
                bytes <= MAX_BYTES && left.get() > 0
            })
            .find(|value| (value.is_object() || !self.objects_only) && takes(value, &verdict))
    }
}

/// Whether a value has a member that the writer declares at its place and the reader does not.
fn loses_a_member(value: &Value, from: &Node<'_>, to: &Node<'_>, depth: usize) -> bool {
    let inside = |value: &Value, old: &Conjunction<'_>, new: &Conjunction<'_>| {
        let may_have_members = value.is_object() || value.is_array();
        may_have_members
            && depth < MAX_DEPTH
            && loses_a_member(value, &old.read(), &new.read(), depth + 1)
    };
    match value {
        Value::Object(members) => members.iter().any(|(name, value)| {
            let name = name.as_str();
            match (from.properties.get(name), to.properties.get(name)) {
                (Some(_), None) => true,
                (Some(old), Some(new)) => inside(value, old, new),
                (None, _) => false,
            }
        }),
        Value::Array(items) => {
            let mut items = items.iter().skip(from.prefix.len().max(to.prefix.len()));
            items.any(|item| inside(item, &from.rest, &to.rest))
        }
        _ => false,
    }
}

//! The search for a value that the writer's schema takes and the reader's does not. What is found
//! was validated against both, each under its own dialect.

use std::cell::Cell;

use serde_json::Value;

use super::candidates::Candidates;
use super::changes::Change;
use super::node::Conjunction;
use super::view::{Side, View};
use crate::schema::{Budget, MIN_STEPS, SchemaError, Validator, Verdict, compile, count_values};

/// Values that are tried.
const MAX_TRIED: usize = 6000;
/// Bytes of values that are tried: a validator is linear at best.
const MAX_BYTES: usize = 16 << 20;

/// Steps of checking all of them, each within the budget of a call.
const MAX_STEPS: u64 = 20_000_000;

/// Reasons that are asked for.
const MAX_REASONS: usize = 5;

/// How well a change explains that a value is not taken: by what was demanded, and by where.
pub(super) fn fits(change: &Change, why: &[SchemaError]) -> u8 {
    let property = change.pointer.rsplit_once("/properties/");
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
        let family = family.iter().any(|begin| change.rule.starts_with(begin));
        let here = property.is_some_and(|name| {
            reason.expected.contains(&format!("`{name}`"))
                || reason.pointer.rsplit('/').next() == Some(name)
        });
        2 * u8::from(family) + u8::from(here)
    };
    why.iter().map(of_one).max().unwrap_or(0)
}

/// Both schemas, ready to try values on.
#[derive(Debug)]
pub(super) struct Search<'s, 'a> {
    writer: &'s Conjunction<'a>,
    reader: &'s Conjunction<'a>,
    takes: [Validator; 2],
    comparable: bool,
    side: Side,
    cut: Cell<bool>,
}

impl<'s, 'a> Search<'s, 'a> {
    /// The error says which side cannot be compiled.
    pub(super) fn new(
        side: Side,
        writer: &'s Conjunction<'a>,
        reader: &'s Conjunction<'a>,
    ) -> Result<Self, &'static str> {
        let root = |side: &Conjunction<'a>| side.spots[0].document;
        let (one, other) = (root(writer), root(reader));
        let validator = |document: &super::document::Document| {
            compile(document.root()).map_err(|_| "a schema cannot be compiled")
        };
        Ok(Self {
            takes: [validator(one)?, validator(other)?],
            writer,
            reader,
            side,
            cut: Cell::new(false),
            comparable: super::numbers_mean_the_same(one, other),
        })
    }

    pub(super) const fn numbers_mean_the_same(&self) -> bool {
        self.comparable
    }

    /// Why the reader does not take a value.
    pub(super) fn why_not(&self, value: &Value) -> Vec<SchemaError> {
        let budget = Budget::of_values(count_values(value));
        let schema = self.reader.spots[0].document.root();
        let found = self.takes[1].explain(schema, value, MAX_REASONS, &budget);
        found.places
    }

    /// Whether a value was left out since checking it takes too many steps.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.get()
    }

    /// The plainest value found.
    pub(super) fn witness(&self, view: View) -> Option<Value> {
        let mut bytes = 0;
        let left = Cell::new(MAX_STEPS);
        let verdict = |validator: &Validator, value: &Value| {
            let budget = Budget::steps(left.get().min(MIN_STEPS));
            let evaluation = validator.evaluate(value, &budget);
            left.set(left.get() - evaluation.steps);
            if let Verdict::OverBudget { .. } = evaluation.verdict {
                self.cut.set(true);
            }
            evaluation.verdict
        };
        let tried = Candidates::new(self.side, view).of(self.writer, Some(self.reader), 0);
        tried
            .into_iter()
            .take(MAX_TRIED)
            .take_while(|value| {
                bytes += value.to_string().len();
                bytes <= MAX_BYTES && left.get() > 0
            })
            .find(|value| {
                value.is_object()
                    && verdict(&self.takes[0], value) == Verdict::Valid
                    && verdict(&self.takes[1], value) == Verdict::Invalid
            })
    }
}

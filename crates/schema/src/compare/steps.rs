//! Counts the steps of one proof against a bound: live schemas are not trusted to be small.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::node::Conjunction;
use crate::{Budget, MIN_STEPS, Validator, Verdict, compile, count_values};

/// Maximum number of subschemas of one proof, counted at each read.
const MAX_STEPS: usize = 300_000;
/// Steps for compiling a pattern.
const STEPS_PER_PATTERN: usize = 1000;
/// Values of a schema that are compared in one step.
const VALUES_PER_STEP: usize = 16;

/// Counts the steps of a proof; keeps its compiled patterns.
#[derive(Debug, Default)]
pub(super) struct Steps {
    taken: Cell<usize>,
    patterns: RefCell<BTreeMap<String, Option<Validator>>>,
}

impl Steps {
    /// Takes this number of steps; returns whether they were left. After that nothing is certain.
    pub(super) fn take(&self, steps: usize) -> bool {
        self.taken.set(self.taken.get().saturating_add(steps));
        self.taken.get() <= MAX_STEPS
    }

    /// Takes the cost of comparing two schemas by their text.
    pub(super) fn take_text(&self, one: &Conjunction<'_>, other: &Conjunction<'_>) -> bool {
        let values = |side: &Conjunction<'_>| -> u64 {
            side.locations
                .iter()
                .map(|location| count_values(location.value))
                .sum()
        };
        let values = usize::try_from(values(one).min(values(other))).unwrap_or(usize::MAX);
        self.take(1 + values / VALUES_PER_STEP)
    }

    /// Whether a text matches a pattern; `None` if unknown.
    pub(super) fn matches(&self, pattern: &str, text: &Value) -> Option<bool> {
        if !self.patterns.borrow().contains_key(pattern) {
            if !self.take(STEPS_PER_PATTERN) {
                return None;
            }
            let compiled = compile(&json!({"pattern": pattern})).ok();
            self.patterns
                .borrow_mut()
                .insert(pattern.to_owned(), compiled);
        }
        let patterns = self.patterns.borrow();
        let validator = patterns.get(pattern)?.as_ref()?;
        let evaluation = validator.evaluate(text, &Budget::steps(MIN_STEPS));
        let steps = usize::try_from(evaluation.steps).unwrap_or(usize::MAX);
        match evaluation.verdict {
            _ if !self.take(1 + steps / 10) => None,
            Verdict::Valid => Some(true),
            Verdict::Invalid => Some(false),
            Verdict::OverBudget { .. } => None,
        }
    }
}

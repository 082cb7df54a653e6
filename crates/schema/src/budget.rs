//! The budget of an evaluation of a schema, and its result.

use std::fmt;

use serde_json::Value;

/// Minimum budget of an evaluation. A step is one read of a value: about 10 ns.
pub const MIN_STEPS: u64 = 2_000_000;
/// Steps for each value of the arguments, if that is more.
pub const STEPS_PER_VALUE: u64 = 200;

/// The number of steps that an evaluation may take.
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    steps: u64,
    stop: Option<&'a (dyn Fn() -> bool + Sync + 'a)>,
}

impl<'a> Budget<'a> {
    /// A budget of `steps` steps.
    #[inline]
    pub const fn steps(steps: u64) -> Self {
        Self { steps, stop: None }
    }

    /// The whole budget for a value that contains this number of values (see [`count_values`]).
    pub fn from_values(values: u64) -> Self {
        Self::steps(MIN_STEPS.max(values.saturating_mul(STEPS_PER_VALUE)))
    }

    /// The budget, and a check that ends the evaluation early: `stop` is called every few thousand
    /// steps.
    pub fn until(self, stop: &'a (dyn Fn() -> bool + Sync + 'a)) -> Self {
        Self {
            stop: Some(stop),
            ..self
        }
    }

    pub(super) const fn total(&self) -> u64 {
        self.steps
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop())
    }
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Budget({})", self.steps)
    }
}

/// Whether a value matches a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The value matches.
    Valid,
    /// The value does not match.
    Invalid,
    /// Unknown: the budget was used up, or the evaluation was stopped.
    OverBudget {
        /// The place in the value that was reached.
        pointer: String,
    },
}

/// A verdict and its cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// The verdict of the evaluation.
    pub verdict: Verdict,
    /// Steps taken.
    pub steps: u64,
}

/// The number of values in `value`, including itself.
pub fn count_values(value: &Value) -> u64 {
    1 + match value {
        Value::Array(items) => items.iter().map(count_values).sum(),
        Value::Object(members) => members.values().map(count_values).sum(),
        _ => 0,
    }
}

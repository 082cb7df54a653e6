//! Bounds of numbers, and counts of characters, items and members.

use std::cmp::Ordering;

use serde_json::Number;

/// The largest integer that every JSON reader represents exactly.
pub(super) const SAFE_INTEGER: i128 = (1 << 53) - 1;

/// One end of a range.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bound {
    pub(super) value: Number,
    pub(super) exclusive: bool,
}

/// A range of numbers, and three ranges of counts: characters, items, members.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Limits {
    pub(super) lower: Option<Bound>,
    pub(super) upper: Option<Bound>,
    pub(super) counts: [(u64, Option<u64>); 3],
}

impl Limits {
    /// Keeps the tighter of two bounds. `false` if they cannot be compared exactly.
    pub(super) fn tighten(&mut self, lower: bool, bound: Bound) -> bool {
        let held = if lower {
            &mut self.lower
        } else {
            &mut self.upper
        };
        let Some(old) = held else {
            *held = Some(bound);
            return true;
        };
        let Some(order) = compare(&bound.value, &old.value) else {
            return false;
        };
        let tighter = if lower {
            Ordering::Greater
        } else {
            Ordering::Less
        };
        if order == tighter || (order == Ordering::Equal && bound.exclusive) {
            *held = Some(bound);
        }
        true
    }

    pub(super) fn count(&mut self, of: usize, least: bool, count: u64) {
        let (min, max) = &mut self.counts[of];
        if least {
            *min = (*min).max(count);
        } else {
            *max = Some(max.map_or(count, |held| held.min(count)));
        }
    }

    /// The integers within; `None` if a bound is too large.
    pub(super) fn integers(&self) -> Option<(Option<i128>, Option<i128>)> {
        let lower = match &self.lower {
            None => None,
            Some(bound) => Some(whole(bound, true)?),
        };
        let upper = match &self.upper {
            None => None,
            Some(bound) => Some(whole(bound, false)?),
        };
        Some((lower, upper))
    }

    /// Whether every number in this range is in the other.
    pub(super) fn range_within(&self, other: &Self) -> bool {
        let end =
            |mine: &Option<Bound>, theirs: &Option<Bound>, wanted: Ordering| match (mine, theirs) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(mine), Some(theirs)) => match compare(&mine.value, &theirs.value) {
                    Some(Ordering::Equal) => mine.exclusive || !theirs.exclusive,
                    order => order == Some(wanted),
                },
            };
        end(&self.lower, &other.lower, Ordering::Greater)
            && end(&self.upper, &other.upper, Ordering::Less)
    }
}

/// Whether the count range `one` is within `other`.
pub(super) fn counts_within(one: (u64, Option<u64>), other: (u64, Option<u64>)) -> bool {
    one.0 >= other.0
        && match (one.1, other.1) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(mine), Some(theirs)) => mine <= theirs,
        }
}

/// The order of two numbers; `None` for a float and a large integer.
pub(super) fn compare(one: &Number, other: &Number) -> Option<Ordering> {
    if let (Some(one), Some(other)) = (one.as_i128(), other.as_i128()) {
        return Some(one.cmp(&other));
    }
    let exact = |number: &Number| match number.as_i128() {
        Some(integer) if integer.abs() > SAFE_INTEGER => None,
        _ => number.as_f64(),
    };
    exact(one)?.partial_cmp(&exact(other)?)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the float is whole and below 2^63 where it is cast"
)]
fn whole(bound: &Bound, lower: bool) -> Option<i128> {
    let step = if lower { 1 } else { -1 };
    if let Some(integer) = bound.value.as_i128() {
        return Some(if bound.exclusive {
            integer + step
        } else {
            integer
        });
    }
    let float = bound.value.as_f64()?;
    if float.abs() > 9e15 {
        return None;
    }
    let rounded = if lower { float.ceil() } else { float.floor() };
    let moved = bound.exclusive && rounded == float;
    Some(rounded as i128 + if moved { step } else { 0 })
}

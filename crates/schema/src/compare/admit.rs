//! Certain facts on single values and on pairs of schemas: whether a schema accepts a value, whether two
//! schemas share no value.

use serde_json::Value;

use super::limits::{Limits, compare, counts_within};
use super::node::{Conjunction, Node, same_value};
use super::steps::Steps;
use super::types::Type;

/// Whether the validator would accept `value`; `None` if this form cannot decide it.
pub(super) fn admits(
    schema: &Conjunction<'_>,
    value: &Value,
    depth: usize,
    steps: &Steps,
) -> Option<bool> {
    if schema.is_anything() {
        return Some(true);
    }
    if depth > 16 {
        return None;
    }
    let node = schema.read();
    if !steps.take(node.size()) {
        return None;
    }
    if node.never || !node.types.has_type_of(value) {
        return Some(false);
    }
    if node.unsupported || !node.opaque.is_empty() {
        return None;
    }
    if let Some(values) = &node.values
        && !values.iter().any(|one| same_value(one, value))
    {
        return Some(false);
    }
    let own = match value {
        Value::Null | Value::Bool(_) => Some(true),
        Value::Number(number) if node.multiples.is_empty() => within_range(&node, number),
        Value::Number(_) => None,
        Value::String(text) => {
            let length = text.chars().count() as u64;
            let counted = counts_within((length, Some(length)), node.limits.counts[0]);
            if counted {
                matches_all(&node, value, steps)
            } else {
                Some(false)
            }
        }
        // A listed array or object is only accepted as listed if there is no other assertion.
        Value::Array(_) | Value::Object(_) => {
            let plain = node.limits == Limits::default()
                && node.prefix.is_empty()
                && node.rest.is_anything()
                && node.properties.is_empty()
                && node.required.is_empty()
                && node.additional.is_anything()
                && node.names.is_anything()
                && !node.unique;
            plain.then_some(true)
        }
    };
    if !own? {
        return Some(false);
    }
    for group in &node.groups {
        let mut taken = 0;
        for branch in &group.branches {
            if admits(&Conjunction::new(branch.clone()), value, depth + 1, steps)? {
                taken += 1;
            }
        }
        if taken == 0 || (group.exclusive && taken > 1) {
            return Some(false);
        }
    }
    Some(true)
}

fn within_range(node: &Node<'_>, number: &serde_json::Number) -> Option<bool> {
    use std::cmp::Ordering;
    for (bound, outside) in [
        (&node.limits.lower, Ordering::Less),
        (&node.limits.upper, Ordering::Greater),
    ] {
        if let Some(bound) = bound {
            let order = compare(number, &bound.value)?;
            if order == outside || (bound.exclusive && order == Ordering::Equal) {
                return Some(false);
            }
        }
    }
    Some(true)
}

fn matches_all(node: &Node<'_>, value: &Value, steps: &Steps) -> Option<bool> {
    node.patterns.iter().try_fold(true, |all, pattern| {
        Some(steps.matches(pattern, value)? && all)
    })
}

/// Whether no value can satisfy both: different types, or disjoint lists of values, at the top level or in a
/// member that both require.
pub(super) fn disjoint(
    one: &Conjunction<'_>,
    other: &Conjunction<'_>,
    depth: usize,
    steps: &Steps,
) -> bool {
    let (a, b) = (one.read(), other.read());
    let compared = a.values.as_ref().map_or(0, Vec::len) * b.values.as_ref().map_or(0, Vec::len);
    if !steps.take(a.size() + b.size() + compared) {
        return false;
    }
    if a.never || b.never || a.types.and(b.types).is_empty() {
        return true;
    }
    if let (Some(a), Some(b)) = (&a.values, &b.values) {
        return !a.iter().any(|x| b.iter().any(|y| same_value(x, y)));
    }
    let listed = |values: &Option<Vec<&Value>>, schema: &Conjunction<'_>| {
        values.as_ref().is_some_and(|values| {
            values
                .iter()
                .all(|value| admits(schema, value, 0, steps) == Some(false))
        })
    };
    if listed(&a.values, other) || listed(&b.values, one) {
        return true;
    }
    if depth > 2 || a.types.and(b.types).each().ne([Type::Object]) {
        return false;
    }
    let missing = |needs: &Node<'_>, has: &Node<'_>| {
        needs
            .required
            .iter()
            .any(|name| match has.properties.get(name) {
                Some(schema) => schema.is_nothing(),
                None => has.additional.is_nothing() && !has.unsupported,
            })
    };
    missing(&a, &b)
        || missing(&b, &a)
        || a.required.intersection(&b.required).any(|name| {
            match (a.properties.get(name), b.properties.get(name)) {
                (Some(x), Some(y)) => disjoint(x, y, depth + 1, steps),
                _ => false,
            }
        })
}

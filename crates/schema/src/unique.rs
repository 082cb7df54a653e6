//! Checks that all items of an array differ, in time linear in their size.
//!
//! `jsonschema` hashes items with fixed keys and leaves the structure of lists out of the hash, so
//! that `[]`, `[[]]`, `[[],[]]`, … are one hash: a caller could make it compare every pair.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};

use jsonschema::json::cmp;
use serde_json::Value;

use super::weights::Weights;

/// Whether no two of `items` are equal. `take` is asked for the cost of each item before it is read;
/// where it refuses, the items count as unequal.
pub(super) fn is_unique(items: &[Value], mut take: impl FnMut(&Value, u64) -> bool) -> bool {
    let mut seen = HashSet::with_capacity(items.len().min(1024));
    for item in items {
        if !charge(item, &mut take) {
            return true;
        }
        if !seen.insert(Item(item)) {
            return false;
        }
    }
    true
}

/// Takes the cost of hashing and comparing a value, piece by piece.
fn charge(value: &Value, take: &mut impl FnMut(&Value, u64) -> bool) -> bool {
    match value {
        Value::Array(items) => take(value, 2) && items.iter().all(|item| charge(item, take)),
        Value::Object(members) => {
            take(value, 2)
                && members.iter().all(|(name, member)| {
                    take(member, 1 + Weights::bytes(name.len())) && charge(member, take)
                })
        }
        Value::String(text) => take(value, 2 + Weights::bytes(text.len())),
        _ => take(value, 2),
    }
}

struct Item<'a>(&'a Value);

impl PartialEq for Item<'_> {
    fn eq(&self, other: &Self) -> bool {
        cmp::equal(self.0, other.0)
    }
}

impl Eq for Item<'_> {}

impl Hash for Item<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self.0).hash(state);
        match self.0 {
            Value::Null => {}
            Value::Bool(flag) => flag.hash(state),
            // Numbers that are equal have the same double, whatever their form; `-0.0` equals `0`.
            Value::Number(number) => {
                let double = number.as_f64().unwrap_or_default();
                let bits = if double == 0.0 { 0 } else { double.to_bits() };
                bits.hash(state);
            }
            Value::String(text) => text.hash(state),
            Value::Array(items) => {
                items.len().hash(state);
                items.iter().for_each(|item| Item(item).hash(state));
            }
            // Names are sorted.
            Value::Object(members) => {
                members.len().hash(state);
                for (name, member) in members {
                    name.hash(state);
                    Item(member).hash(state);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unique_items_treats_equal_values_in_any_form_as_equal() {
        let unique = |value: Value| is_unique(value.as_array().unwrap(), |_, _| true);
        assert!(unique(json!([1, "1", true, null, [], {}, [[]], [[], []]])));
        assert!(unique(json!([{"a": 1}, {"a": 2}, {"b": 1}, 0.5, -1])));
        assert!(!unique(json!([1, 2, 1.0])));
        assert!(!unique(json!([0, -0.0])));
        assert!(!unique(json!([{"a": [1], "b": 2}, {"b": 2.0, "a": [1.0]}])));
    }

    #[test]
    fn unique_items_cost_of_nested_empty_lists_is_linear() {
        // Every way to nest lists up to a size: one hash in `jsonschema`.
        let mut lists = vec![json!([])];
        for at in 0..6000 {
            let (one, other) = (lists[at / 2].clone(), lists[at / 3].clone());
            lists.push(if at % 2 == 0 {
                json!([one])
            } else {
                json!([other, one])
            });
        }
        let mut taken = 0;
        is_unique(&lists, |_, cost| {
            taken += cost;
            true
        });
        assert!(taken <= 2 * lists.iter().map(super::super::count_values).sum::<u64>());
    }
}

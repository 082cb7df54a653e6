//! Checks that all items of an array differ, in time linear in their size.
//!
//! `jsonschema` hashes items with fixed keys and leaves the structure of lists out of the hash, so
//! that `[]`, `[[]]`, `[[],[]]`, … are one hash: a caller could make it compare every pair.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};

use serde_json::Value;

use super::equal::is_equal;
use super::weights::Weights;
use broker_model::json::{Decimal, exact_number, may_be_number};

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
        Value::String(text) if may_be_number(text) => take(value, 2 + 2 * text.len() as u64),
        Value::String(text) => take(value, 2 + Weights::bytes(text.len())),
        _ => take(value, 2),
    }
}

struct Item<'a>(&'a Value);

impl PartialEq for Item<'_> {
    fn eq(&self, other: &Self) -> bool {
        is_equal(self.0, other.0, &mut |_| true)
    }
}

impl Eq for Item<'_> {}

impl Hash for Item<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if let Some(number) = exact_number(self.0).and_then(Decimal::parse) {
            hash_exact(&number, state);
            return;
        }
        std::mem::discriminant(self.0).hash(state);
        match self.0 {
            Value::Null => {}
            Value::Bool(flag) => flag.hash(state),
            // Numbers that are equal have the same double, whatever their form; `-0.0` equals `0`.
            Value::Number(number) => hash_double(number.as_f64().unwrap_or_default(), state),
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

fn hash_double<H: Hasher>(double: f64, state: &mut H) {
    let bits = if double == 0.0 { 0 } else { double.to_bits() };
    bits.hash(state);
}

/// An exact number may equal an ordinary one, which has another form: `9007199254740993.0`.
fn hash_exact<H: Hasher>(number: &Decimal, state: &mut H) {
    match number.double_of_ordinary() {
        Some(double) => {
            std::mem::discriminant(&Value::Number(0.into())).hash(state);
            hash_double(double, state);
        }
        None => number.hash(state),
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
        let read = |text: &str| broker_model::json::parse(text).unwrap();
        assert!(!unique(read("[1, 1.0, 1e0]")));
        assert!(!unique(read("[1e400, 2, 10e399]")));
        assert!(!unique(read("[9007199254740993, 9007199254740993.0]")));
        assert!(!unique(read("[1e30, 1000000000000000000000000000000]")));
        assert!(unique(read(
            r#"[1e400, "1e400", "\ufdd01e400", 1e401, -1e400, 1e-400, 0]"#
        )));
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

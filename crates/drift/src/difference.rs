//! The differences of two JSON values: the deepest pointers, with both values.

use serde_json::Value;

use broker_model::json::{child_pointer, to_canonical};

/// One difference of two values.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The pointer into both values.
    pub pointer: String,
    /// The first value; `None` if it is absent.
    pub old: Option<Value>,
    /// The second value; `None` if it is absent.
    pub new: Option<Value>,
}

/// Every difference of `old` and `new`, in document order, as deep as objects and arrays of equal length go.
/// Numbers are compared by value: `1.0` is `1`.
pub fn differences(old: &Value, new: &Value) -> Vec<Difference> {
    let mut out = Vec::new();
    walk(old, new, String::new(), &mut out);
    out
}

fn walk(old: &Value, new: &Value, pointer: String, out: &mut Vec<Difference>) {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                let pointer = child_pointer(&pointer, key);
                match b.get(key) {
                    Some(other) => walk(value, other, pointer, out),
                    None => out.push(Difference {
                        pointer,
                        old: Some(value.clone()),
                        new: None,
                    }),
                }
            }
            for (key, value) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
                out.push(Difference {
                    pointer: child_pointer(&pointer, key),
                    old: None,
                    new: Some(value.clone()),
                });
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (x, y)) in a.iter().zip(b).enumerate() {
                walk(x, y, format!("{pointer}/{index}"), out);
            }
        }
        (a, b) if a == b => {}
        // A number can have two forms; the digest decides which are equal.
        (Value::Number(_) | Value::String(_), Value::Number(_) | Value::String(_))
            if to_canonical(old) == to_canonical(new) => {}
        (a, b) => out.push(Difference {
            pointer,
            old: Some(a.clone()),
            new: Some(b.clone()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_have_the_deepest_pointers() {
        let old = json!({"a": {"b": 1, "c": [1, 2], "gone": true}, "n": 1.0, "same": null});
        let new = json!({"a": {"b": 2, "c": [1, 3], "new/er": {}}, "n": 1, "same": null});
        let found = differences(&old, &new);
        let pointers: Vec<_> = found.iter().map(|d| d.pointer.as_str()).collect();
        assert_eq!(pointers, ["/a/b", "/a/c/1", "/a/gone", "/a/new~1er"]);
        assert_eq!((&found[2].old, &found[2].new), (&Some(json!(true)), &None));
    }
}

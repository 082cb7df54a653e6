//! Estimates the memory of parsed JSON from its text.
//!
//! A [`Value`](serde_json::Value) can take a hundred times the bytes of its text: `{"":0}` has six bytes and allocates
//! a tree node for eleven members. The estimate reads the text once without an allocation, and is never below what
//! parsing allocates with glibc's allocator.

use std::mem::size_of;

use serde_json::Value;

/// Maximum number of values in the arguments of one call: arrays, objects, strings, numbers and literals.
pub const MAX_VALUES: u64 = 1_000_000;

/// Bytes that the allocator adds to an allocation: a header, and rounding up to 16 bytes.
const ALLOCATION: u64 = 24;
/// The smallest allocation.
const MIN_ALLOCATION: u64 = 32;
/// A leaf of the map of an object: eleven names, eleven values, a parent and two counts.
const LEAF: u64 = 11 * (size_of::<String>() + size_of::<Value>()) as u64 + 16 + ALLOCATION;
/// An inner node: a leaf with twelve children.
const INNER: u64 = LEAF + 12 * size_of::<usize>() as u64;
/// Maximum number of members of a leaf.
const LEAF_MEMBERS: u64 = 11;
/// Minimum number of members of a node, if there are several nodes.
const MIN_LEAF_MEMBERS: u64 = 5;
/// Capacity of the first allocation of a `Vec`.
const MIN_ITEMS: u64 = 4;
/// Levels that are counted: `serde_json` accepts 128 and refuses more.
const MAX_LEVELS: usize = 130;

/// The cost of parsing a JSON text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Values in the text, including the outermost one.
    pub values: u64,
    /// Peak bytes of parsing and of the parsed value; never too few.
    pub bytes: u64,
}

/// Estimates the cost of parsing `text`. It may be invalid JSON: allocations before the parser refuses it are counted.
pub fn estimate(text: &[u8]) -> Estimate {
    let mut scan = Scan {
        bytes: size_of::<Value>() as u64,
        ..Scan::default()
    };
    scan.run(text);
    // A growing list has its old and new buffer at the same time, one list at a time. A string with escapes is decoded
    // into a buffer; the buffer is kept and doubles.
    let growing = scan.longest_list * size_of::<Value>() as u64 + 3 * scan.longest_escaped;
    Estimate {
        values: scan.values,
        bytes: scan.bytes + growing,
    }
}

#[derive(Clone, Copy, Default)]
struct Level {
    is_object: bool,
    /// The next string is a member name.
    before_name: bool,
    children: u64,
}

#[derive(Default)]
struct Scan {
    values: u64,
    bytes: u64,
    longest_list: u64,
    longest_escaped: u64,
}

impl Scan {
    fn run(&mut self, text: &[u8]) {
        let mut levels = [Level::default(); MAX_LEVELS];
        let mut depth = 0;
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            match byte {
                b'"' => {
                    let (length, escaped) = string_length(&text[at + 1..]);
                    at += length + 1;
                    self.string(length as u64, escaped);
                    if !levels[depth].before_name {
                        self.value(&mut levels[depth]);
                    }
                }
                b'[' | b'{' => {
                    self.value(&mut levels[depth]);
                    if depth + 1 == MAX_LEVELS {
                        return;
                    }
                    depth += 1;
                    let is_object = byte == b'{';
                    levels[depth] = Level {
                        is_object,
                        before_name: is_object,
                        children: 0,
                    };
                }
                b']' | b'}' => {
                    self.close(levels[depth]);
                    levels[depth] = Level::default();
                    depth = depth.saturating_sub(1);
                }
                b',' => levels[depth].before_name = levels[depth].is_object,
                b':' => levels[depth].before_name = false,
                b' ' | b'\t' | b'\n' | b'\r' => {}
                _ => {
                    let rest = &text[at + 1..];
                    let more = rest.iter().position(|byte| ends_scalar(*byte));
                    at += more.unwrap_or(rest.len());
                    self.value(&mut levels[depth]);
                }
            }
            at += 1;
        }
        // A truncated text: open containers were allocated too.
        for level in &levels[..=depth] {
            self.close(*level);
        }
    }

    fn value(&mut self, parent: &mut Level) {
        self.values += 1;
        parent.children += 1;
    }

    fn string(&mut self, length: u64, escaped: bool) {
        if length > 0 {
            self.bytes += (length + ALLOCATION).max(MIN_ALLOCATION);
        }
        if escaped {
            self.longest_escaped = self.longest_escaped.max(length);
        }
    }

    /// Adds the allocation of a list or map with this number of children.
    fn close(&mut self, level: Level) {
        let children = level.children;
        if children == 0 {
            return;
        }
        if level.is_object {
            self.bytes += if children <= LEAF_MEMBERS {
                LEAF
            } else {
                let leaves = children / MIN_LEAF_MEMBERS + 1;
                leaves * LEAF + (leaves / MIN_LEAF_MEMBERS + 2) * INNER
            };
        } else {
            // Capacity doubles, so that less than half of it is unused.
            let places = children.next_power_of_two().max(MIN_ITEMS);
            self.bytes += places * size_of::<Value>() as u64 + ALLOCATION;
            self.longest_list = self.longest_list.max(places / 2);
        }
    }
}

/// The bytes up to the closing quote of a string, and whether it contains escapes.
fn string_length(text: &[u8]) -> (usize, bool) {
    let (mut at, mut escaped) = (0, false);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return (at, escaped),
            b'\\' => {
                escaped = true;
                at += 2;
            }
            _ => at += 1,
        }
    }
    (text.len(), escaped)
}

fn ends_scalar(byte: u8) -> bool {
    matches!(
        byte,
        b',' | b':' | b'[' | b']' | b'{' | b'}' | b'"' | b' ' | b'\t' | b'\n' | b'\r'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimate_counts_each_value_once() {
        for (text, values) in [
            ("1", 1),
            ("[]", 1),
            ("{}", 1),
            ("[1,2 , \"a\"]", 4),
            (r#"{"a": [true, null], "b": {"c": "]"}}"#, 6),
            (r#"{"a\"b": "c\\", "": -1.5e3}"#, 3),
            ("", 0),
        ] {
            assert_eq!(estimate(text.as_bytes()).values, values, "{text}");
        }
    }

    #[test]
    fn estimate_of_invalid_json_ends() {
        for text in ["]]]]", "{{{{", "\"", "\"\\", "[1,", "}{", ":::", "[\"a\\"] {
            assert!(estimate(text.as_bytes()).values <= 4, "{text}");
        }
        let deep = "[".repeat(1 << 20);
        assert!(estimate(deep.as_bytes()).bytes < 1 << 20);
    }
}

//! Shortens a reply that is longer than its tool may answer, and says what was left out.
//!
//! The structure of the result stays JSON: the longest strings are cut first, then long lists keep
//! their head; only where that is not enough is the head of its text all that is left. The result is
//! never built as a tree: it is walked again with other bounds until the reply fits, so that memory
//! stays a small multiple of the result.

use serde_json::Value;

#[doc(hidden)]
pub mod fuzzing;
mod head;
mod walk;

#[cfg(test)]
mod tests;

use walk::{Bounds, Cut, Walk};

/// Strings are cut to the first of these before any list is shortened; to the second only where that
/// is not enough.
const SHORT_STRINGS: [usize; 2] = [64, 8];
/// Cuts that are named; others are only counted.
const NAMED_CUTS: usize = 20;

/// The whole reply, of at most `limit` characters (Unicode scalar values). `None` where the reply is
/// not too long as it is. `beside` is what stands between result and end, such as `,"warnings":[…]`;
/// the limit leaves room for all that stands around the result (`least_output_chars`).
pub(super) fn cut(path: &str, result: &[u8], beside: &str, limit: usize) -> Option<Vec<u8>> {
    let wrapper = Wrapper::new(path, result, beside, limit);
    if wrapper.uncut_chars() <= limit {
        return None;
    }
    let fits = |bounds: Bounds| wrapper.chars(&Walk::measure(result, bounds, limit)) <= limit;
    let whole = Walk::measure(result, Bounds::NONE, usize::MAX);
    let Some(bounds) = SHORT_STRINGS
        .into_iter()
        .find_map(|short| bounds(&whole, short, limit, fits))
    else {
        return Some(head::reply(&wrapper, result));
    };
    let walked = Walk::write(result, bounds);
    Some(wrapper.body(&walked.out, &walked.cuts, walked.unnamed))
}

/// The widest bounds that fit: strings alone, down to `short` characters, else lists as well. No string
/// and no list can keep more than `limit`.
fn bounds(
    whole: &Walk,
    short: usize,
    limit: usize,
    fits: impl Fn(Bounds) -> bool,
) -> Option<Bounds> {
    let strings = |string| Bounds {
        string,
        ..Bounds::NONE
    };
    if fits(strings(short)) {
        let longest = whole.longest_string.min(limit);
        return Some(strings(largest(short, longest, |string| {
            fits(strings(string))
        })));
    }
    let lists = |list| Bounds {
        string: short,
        list,
    };
    let longest = whole.longest_list.min(limit);
    fits(lists(1)).then(|| lists(largest(1, longest, |list| fits(lists(list)))))
}

/// The largest value from `low`, for which it holds, to `high`, for which `holds` is true. The bound
/// moves the length nearly monotonously; where it does not, the last value that held is taken.
fn largest(low: usize, high: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut good, mut bad) = (low, high.max(low) + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if holds(middle) {
            good = middle
        } else {
            bad = middle
        }
    }
    good
}

/// What stands around the result: `{"path":…,"result":…,"warnings"?,"truncated":…}`.
struct Wrapper<'r> {
    before: String,
    beside: &'r str,
    original_chars: usize,
    limit: usize,
}

impl<'r> Wrapper<'r> {
    fn new(path: &str, result: &[u8], beside: &'r str, limit: usize) -> Self {
        let before = format!("{{\"path\":{},\"result\":", Value::from(path));
        let around = before.chars().count() + beside.chars().count() + 1;
        let original_chars = around + walk::chars(result);
        Self {
            before,
            beside,
            original_chars,
            limit,
        }
    }

    fn uncut_chars(&self) -> usize {
        self.original_chars
    }

    /// What stands behind the result.
    fn after(&self, cuts: &[Cut], unnamed: usize) -> String {
        let cuts: Vec<String> = cuts.iter().map(Cut::to_json).collect();
        let more = if unnamed > 0 {
            format!(",\"more\":{unnamed}")
        } else {
            String::new()
        };
        format!(
            "{},\"truncated\":{{\"original_chars\":{},\"limit\":{},\"cuts\":[{}]{more}}}}}",
            self.beside,
            self.original_chars,
            self.limit,
            cuts.join(",")
        )
    }

    fn chars(&self, walk: &Walk) -> usize {
        self.before.chars().count()
            + walk.chars
            + self.after(&walk.cuts, walk.unnamed).chars().count()
    }

    fn body(&self, result: &[u8], cuts: &[Cut], unnamed: usize) -> Vec<u8> {
        let after = self.after(cuts, unnamed);
        let mut body = Vec::with_capacity(self.before.len() + result.len() + after.len());
        body.extend_from_slice(self.before.as_bytes());
        body.extend_from_slice(result);
        body.extend_from_slice(after.as_bytes());
        body
    }
}

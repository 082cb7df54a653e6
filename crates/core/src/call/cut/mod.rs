//! Shortens a result that is longer than its tool may answer, and says what was left out.
//!
//! The structure of the result stays JSON: the longest strings are cut first, then long lists keep
//! their head; only where that is not enough is the head of its text all that is left. The result is
//! never built as a tree: it is walked again with other bounds until it fits, so that memory
//! stays a small multiple of the result.

use serde::Serialize;

#[doc(hidden)]
pub mod fuzzing;
mod head;
mod walk;

#[cfg(test)]
mod tests;

pub use walk::CutDetail;
use walk::{Bounds, Walk};

/// Strings are cut to the first of these before any list is shortened; to the second only where that
/// is not enough.
const SHORT_STRINGS: [usize; 2] = [64, 8];
/// Cuts that are named; others are only counted.
const MAX_NAMED_CUTS: usize = 20;

/// What was left out of a result. As JSON, it is the member `truncated` of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// Characters of the whole reply before it was cut.
    pub original_chars: usize,
    /// Characters that the whole reply may have.
    pub limit: usize,
    /// The parts that were shortened, as far as they are named.
    pub cuts: Vec<CutDetail>,
    /// How many further parts were shortened.
    #[serde(rename = "more", skip_serializing_if = "is_zero")]
    pub unnamed: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The result, cut so that a reply has at most `limit` characters (Unicode scalar values). `None` where it
/// has no more as it is. `around` is the number of characters that stand around the result in a reply,
/// without the member `truncated`; the limit leaves room for all that (`least_output_chars`).
pub(super) fn cut(result: &[u8], around: usize, limit: usize) -> Option<(Vec<u8>, Cut)> {
    let reply = Reply {
        around,
        original_chars: around + walk::chars(result),
        limit,
    };
    if reply.original_chars <= limit {
        return None;
    }
    let fits = |bounds: Bounds| {
        let walk = Walk::measure(result, bounds, limit);
        walk.chars + reply.chars_beside(&walk.cuts, walk.unnamed) <= limit
    };
    let whole = Walk::measure(result, Bounds::NONE, usize::MAX);
    let Some(bounds) = SHORT_STRINGS
        .into_iter()
        .find_map(|short| bounds(&whole, short, limit, fits))
    else {
        return Some(head::cut(&reply, result));
    };
    let walked = Walk::write(result, bounds);
    Some((walked.out, reply.cut(walked.cuts, walked.unnamed)))
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

/// The reply whose result is cut.
struct Reply {
    around: usize,
    original_chars: usize,
    limit: usize,
}

impl Reply {
    fn cut(&self, cuts: Vec<CutDetail>, unnamed: usize) -> Cut {
        Cut {
            original_chars: self.original_chars,
            limit: self.limit,
            cuts,
            unnamed,
        }
    }

    /// Characters of everything but the result, the member `truncated` included.
    fn chars_beside(&self, cuts: &[CutDetail], unnamed: usize) -> usize {
        let truncated = self.cut(cuts.to_vec(), unnamed);
        let json = serde_json::to_string(&truncated).expect("strings and numbers always serialize");
        self.around + ",\"truncated\":".len() + json.chars().count()
    }
}

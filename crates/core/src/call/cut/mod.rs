//! Shortens a result that is longer than `max_output_chars` of its tool, and records the cuts.
//!
//! The result stays JSON: first the longest strings are cut, then long lists keep their head; if that
//! is not enough, only the head of the text remains. The result is never parsed into a tree: it is
//! walked again with smaller bounds until it fits, so memory stays a small multiple of the result.

use serde::Serialize;

#[doc(hidden)]
pub mod fuzzing;
mod head;
mod walk;

#[cfg(test)]
mod tests;

pub use walk::CutDetail;
use walk::{Bounds, Walk};

/// Strings are cut to the first length before any list is shortened, and to the second if that is not
/// enough.
const SHORT_STRINGS: [usize; 2] = [64, 8];
/// Cuts that are listed one by one; further ones are only counted.
const MAX_NAMED_CUTS: usize = 20;

/// The cuts of a result. As JSON, it is the member `truncated` of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// Characters of the whole reply before it was cut.
    pub original_chars: usize,
    /// Characters that the whole reply may have.
    pub limit: usize,
    /// The first parts that were shortened.
    pub cuts: Vec<CutDetail>,
    /// The number of further parts that were shortened.
    #[serde(rename = "more", skip_serializing_if = "is_zero")]
    pub unnamed: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The result, cut so that a reply has at most `limit` characters (Unicode scalar values). `None` if it
/// already fits. `around` is the number of characters around the result in a reply, without the member
/// `truncated`, and `note` that of a note in a reply that was cut; the limit leaves room for them
/// (`min_output_chars`).
pub(super) fn cut(
    result: &[u8],
    around: usize,
    note: usize,
    limit: usize,
) -> Option<(Vec<u8>, Cut)> {
    let reply = Reply {
        around: around + note,
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

/// The largest value from `low`, for which it holds, to `high`, for which `holds` is true. The length
/// grows nearly monotonously with the bound; where it does not, the last value that held is used.
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
    /// Characters around the result, a note included.
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

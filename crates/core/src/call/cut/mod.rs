//! Shortens a result whose text is longer than its limit, and records the cuts.
//!
//! `structuredContent` is left out first: cut, it would not be what its schema promises. Then the longest strings are
//! cut, then long lists keep their head, also within JSON documents in text blocks, so that they stay JSON. If the
//! reply is still too long, the documents are cut as other texts, and at last only the head of the text remains. The
//! result is never parsed into a tree: it is walked again with smaller bounds until it fits, so memory stays a small
//! multiple of the result.

use broker_config::MIN_WHOLE_REPLY_CHARS;
use bytes::Bytes;
use serde::Serialize;

mod documents;
#[doc(hidden)]
pub mod fuzzing;
mod head;
mod structured;
mod walk;

#[cfg(test)]
mod tests;

use documents::Documents;
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
    /// The id under which the caller can read the whole result, if a surface has kept it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<Box<str>>,
    /// The result before it was cut, if the form asks for it and it has at most [`MAX_KEPT_BYTES`].
    #[serde(skip)]
    pub whole: Option<Bytes>,
}

/// The maximum bytes of a result that is kept whole beside the cut one.
pub const MAX_KEPT_BYTES: usize = 1 << 20;

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Returns the result, cut so that a reply has at most `limit` characters (Unicode scalar values) apart from the data
/// of images, audio and resources. `None` if it already fits. `around` is the number of characters around the result in
/// a reply, without the member `truncated`, and `note` the number of characters of a note in a cut reply; the limit
/// leaves room for them (`min_output_chars`). A limit below [`MIN_WHOLE_REPLY_CHARS`] counts the result alone.
pub(super) fn cut(
    result: &[u8],
    around: usize,
    note: usize,
    limit: usize,
) -> Option<(Vec<u8>, Cut)> {
    // A small limit counts the result alone.
    let counts_whole = limit >= MIN_WHOLE_REPLY_CHARS;
    let (around, note) = if counts_whole { (around, note) } else { (0, 0) };
    if !is_over(result, around, limit) {
        return None;
    }
    let original = Walk::measure(result, &Documents::default(), Bounds::NONE, usize::MAX);
    let (result, left_out) = structured::without(result);
    let reply = Reply {
        around: around + note,
        original_chars: around + original.chars,
        limit,
        counts_whole,
        left_out,
    };
    for documents in [Documents::read(&result), Documents::default()] {
        let fits = |bounds: Bounds| {
            let walk = Walk::measure(&result, &documents, bounds, limit);
            walk.chars + reply.chars_beside(&walk.cuts, walk.unnamed) <= limit
        };
        let whole = Walk::measure(&result, &documents, Bounds::NONE, usize::MAX);
        let mut found = SHORT_STRINGS.into_iter();
        if let Some(bounds) = found.find_map(|short| bounds(&whole, short, limit, fits)) {
            let walked = Walk::write(&result, &documents, bounds);
            return Some((walked.out, reply.cut(walked.cuts, walked.unnamed)));
        }
    }
    Some(head::cut(&reply, &result))
}

/// Whether a reply with this result has more than `limit` characters. Takes no memory.
pub(super) fn is_over(result: &[u8], around: usize, limit: usize) -> bool {
    // A character has at least one byte.
    around + result.len() > limit && {
        let left = limit.saturating_sub(around);
        Walk::measure(result, &Documents::default(), Bounds::NONE, left).chars > left
    }
}

/// Returns the widest bounds that fit: strings alone, down to `short` characters, else lists as well. No string and no
/// list can keep more than `limit`.
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
    // The member that was already left out may have been the only part to cut.
    if fits(Bounds::NONE) {
        return Some(Bounds::NONE);
    }
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

/// Returns the largest value from `low` to `high` that `holds` accepts; it accepts `low`. The length grows nearly
/// monotonously with the bound; where it does not, the last value that held is used.
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
    /// Whether the limit also counts the characters around the result.
    counts_whole: bool,
    /// The member that was left out before everything else.
    left_out: Option<CutDetail>,
}

impl Reply {
    fn cut(&self, cuts: Vec<CutDetail>, unnamed: usize) -> Cut {
        Cut {
            original_chars: self.original_chars,
            limit: self.limit,
            cuts: self.left_out.iter().cloned().chain(cuts).collect(),
            unnamed,
            rest: None,
            whole: None,
        }
    }

    /// Counts the characters of everything except the result, the member `truncated` included.
    fn chars_beside(&self, cuts: &[CutDetail], unnamed: usize) -> usize {
        if !self.counts_whole {
            return 0;
        }
        let truncated = self.cut(cuts.to_vec(), unnamed);
        let json = serde_json::to_string(&truncated).expect("strings and numbers always serialize");
        self.around + ",\"truncated\":".len() + json.chars().count()
    }
}

//! JSON: strict reading, places in a text, canonical bytes, reviewable text.

mod canonical;
mod estimate;
mod members;
mod pointer;
mod position;
mod review;
mod strict;

pub use canonical::{canonical_object, to_canonical};
pub use estimate::{Estimate, MAX_VALUES, estimate};
pub use members::{each_element, each_member};
pub use pointer::{
    child_pointer, escape_token, matches as pointer_matches, remove as remove_pointer,
};
pub use position::{Position, position_of_offset, position_of_pointer};
pub use review::to_review_text;
pub use strict::{NoDuplicates, StrictError, parse, scan};

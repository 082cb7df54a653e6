//! JSON: strict reading, places in a text, canonical bytes, reviewable text.

mod canonical;
mod decimal;
mod estimate;
mod members;
mod number;
mod pointer;
mod position;
mod review;
mod strict;
mod write;

pub use canonical::{canonical_object, to_canonical};
pub(crate) use canonical::{canonical_object_with_range, canonical_with_range};
pub use decimal::{Decimal, MAX_NUMBER_DIGITS, MAX_NUMBER_EXPONENT};
pub use estimate::{Estimate, MAX_VALUES, estimate};
pub use members::{each_element, each_member};
pub use number::{
    decimal_of, exact_number, may_be_number, number_in, number_value, string_text, string_value,
};
pub use pointer::{
    child_pointer, escape_token, matches as pointer_matches, remove as remove_pointer,
};
pub use position::{Position, position_of_offset, position_of_pointer};
pub use review::to_review_text;
pub use strict::{NoDuplicates, StrictError, parse};
pub use write::{ExactNumbers, serialize_exactly, to_bytes, to_pretty_text, to_text, write_to};

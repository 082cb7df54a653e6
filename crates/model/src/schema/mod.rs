//! Schemas of tools: what is refused before one is locked, and validation of arguments.
//!
//! [`inspect`] bounds a hostile schema by looking at its structure; [`compile`] (feature `validate`)
//! makes the validator that lock and broker share. The schema itself is never changed.

#[cfg(feature = "validate")]
mod budget;
#[cfg(feature = "validate")]
mod error;
#[cfg(feature = "validate")]
mod explain;
mod inspect;
#[cfg(feature = "validate")]
mod meter;
#[cfg(feature = "validate")]
mod parts;
#[cfg(feature = "validate")]
mod pattern;
#[cfg(feature = "validate")]
mod unique;
#[cfg(feature = "validate")]
mod validate;
#[cfg(feature = "validate")]
mod weights;

#[cfg(feature = "validate")]
pub use budget::{Budget, Evaluation, MIN_STEPS, STEPS_PER_VALUE, Verdict, count_values};
#[cfg(feature = "validate")]
pub use error::SchemaError;
#[cfg(feature = "validate")]
pub use explain::Explanation;
pub use inspect::{MAX_DEPTH, MAX_EXPANDED, MAX_SCHEMA_BYTES, MAX_SUBSCHEMAS, inspect};
#[cfg(feature = "validate")]
pub use validate::{Validator, compile};

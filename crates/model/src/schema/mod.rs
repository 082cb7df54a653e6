//! Schemas of tools: what is refused before one is locked, and validation of arguments.
//!
//! [`inspect`] bounds a hostile schema by looking at its structure; [`compile`] (feature `validate`)
//! makes the validator that lock and broker share. The schema itself is never changed.

mod inspect;
#[cfg(feature = "validate")]
mod validate;

pub use inspect::{MAX_DEPTH, MAX_EXPANDED, MAX_SCHEMA_BYTES, MAX_SUBSCHEMAS, inspect};
#[cfg(feature = "validate")]
pub use validate::{SchemaError, Validator, compile};

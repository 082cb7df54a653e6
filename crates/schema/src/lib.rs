//! JSON Schemas of tools: which ones are refused before they are locked, validation of arguments and
//! results, and the comparison of two schemas.
//!
//! [`inspect`] bounds a hostile schema by looking at its structure. With the feature `validate`,
//! [`compile`] makes the validator that lock and broker share, [`covers`] proves that every value of
//! one schema is valid under another or gives a counterexample, and [`compare`] names the changes
//! between two schemas. [`readable`] is the form of a schema that all of them read, and [`compile_as_is`] enforces the
//! valid part of an invalid schema. [`arguments_form`] and [`results_form`] are the forms that clients read in lists. No function changes a schema.

#![forbid(unsafe_code)]

mod base_uri;
#[cfg(feature = "validate")]
mod budget;
mod client_form;
#[cfg(feature = "validate")]
mod compare;
mod ecma;
#[cfg(feature = "validate")]
mod enforceable;
#[cfg(feature = "validate")]
mod equal;
#[cfg(feature = "validate")]
mod error;
#[cfg(feature = "validate")]
mod exact;
#[cfg(all(test, feature = "validate"))]
mod exact_tests;
#[cfg(feature = "validate")]
mod explain;
mod graph;
mod inspect;
#[cfg(feature = "validate")]
mod meter;
#[cfg(feature = "validate")]
mod metered_number;
mod moves;
#[cfg(feature = "validate")]
mod options;
#[cfg(feature = "validate")]
mod parts;
#[cfg(feature = "validate")]
mod pattern;
mod reading;
#[cfg(feature = "validate")]
mod unique;
#[cfg(feature = "validate")]
mod validate;
#[cfg(all(test, feature = "validate"))]
mod validate_tests;
mod vendor_form;
#[cfg(feature = "validate")]
mod weights;

#[cfg(feature = "validate")]
pub use budget::{Budget, Evaluation, MIN_STEPS, STEPS_PER_VALUE, Verdict, count_values};
pub use client_form::{Unlistable, arguments_form, results_form};
#[cfg(feature = "validate")]
pub use compare::{
    Change, Comparison, Coverage, Direction, Incomparable, Relation, Side, compare, covers,
};
#[cfg(feature = "validate")]
pub use error::SchemaError;
#[cfg(feature = "validate")]
pub use explain::Explanation;
pub use inspect::{
    MAX_DEPTH, MAX_EXPANDED, MAX_SCHEMA_BYTES, MAX_SUBSCHEMAS, inspect, inspect_as_is,
};
pub use reading::{Note, notes, readable};
#[cfg(feature = "validate")]
pub use validate::{Validator, compile, compile_as_is};
pub use vendor_form::{RefusedProperty, VendorForm, vendor_form};

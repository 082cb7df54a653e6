//! Checks of `verify`, and their outcome.

pub mod authors;
mod outcome;
pub mod signed;

pub use outcome::{Counts, Outcome};

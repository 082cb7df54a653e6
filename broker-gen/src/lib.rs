//! Generates the catalog of a broker from config and lock.
//!
//! [`plan`](plan::plan) checks that config and lock match and assigns every path its entry,
//! [`emit`](emit::emit) renders the plan as Rust data, [`types`](types::types) its schemas as types, and
//! [`build`] runs all of it in a build script. The feature `cli` adds the command line, the only part that
//! launches servers.

#![forbid(unsafe_code)]

mod build_script;
#[cfg(feature = "cli")]
pub mod cli;
pub mod emit;
#[cfg(feature = "cli")]
pub mod lint;
pub mod plan;
#[cfg(feature = "cli")]
pub mod provenance;
mod text;
pub mod types;

pub use build_script::{build, build_config, lock_file};

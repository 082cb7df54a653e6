//! From config and lock to the catalog that a broker compiles in.
//!
//! [`plan`](plan::plan) checks that config and lock fit and decides what every path names,
//! [`emit`](emit::emit) turns the plan into Rust data, [`types`](types::types) its schemas into types, and [`build`] does both in a build script. The
//! feature `cli` adds the command line, the only part that launches servers.

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

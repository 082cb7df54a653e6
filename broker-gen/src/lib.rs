//! Generates the catalog of a broker from config and lock.
//!
//! [`plan`](plan::plan) checks that config and lock match and assigns every path its entry,
//! [`tables`](tables::tables) computes the catalog of the plan, [`emit`](emit::emit) renders it as Rust data,
//! [`types`](types::types) its schemas as types, and [`build`] runs all of it in a build script. The feature
//! `cli` adds the command line, the only part that launches servers.

#![forbid(unsafe_code)]

mod audits_file;
mod build_script;
#[cfg(feature = "cli")]
pub mod cli;
mod default_config;
pub mod emit;
mod hint_audits;
mod left_out_audits;
#[cfg(feature = "cli")]
pub mod lint;
pub mod plan;
#[cfg(feature = "cli")]
pub mod provenance;
pub mod search_documents;
mod settings;
pub mod tables;
mod text;
pub mod types;
pub mod vectors_file;
mod violations;

pub use build_script::{build, build_config, lock_file};

//! Generates the catalog of a broker from config and lock.
//!
//! [`plan`](plan::plan) checks that config and lock match and assigns every path its entry,
//! [`tables`](tables::tables) computes the catalog of the plan, [`emit`](emit::emit) renders it as Rust data,
//! [`types`](types::types) its schemas as types, and [`build`] runs all of it in a build script. Starts no process and
//! opens no socket.

#![forbid(unsafe_code)]

pub mod build_script;
pub mod default_config;
pub mod describe;
pub mod embedder_table;
pub mod emit;
pub mod hint_audits;
pub mod left_out_audits;
pub mod plan;
pub mod requested;
pub mod search_documents;
pub mod settings;
pub mod tables;
pub mod text;
pub mod types;
pub mod vectors_file;

pub use build_script::{build, build_config, lock_file};

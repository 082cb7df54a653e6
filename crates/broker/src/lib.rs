//! A typed MCP broker: reviewed, locked MCP tools behind three stable meta-tools.
//!
//! The library embeds no catalog; a binary does, by [`include_catalog!`]. `core` is the only way to a
//! server and knows no transport; surfaces translate, and `app` alone wires everything.

pub mod catalog;
pub mod core;
pub mod typed;

mod app;
mod cli;
mod doctor;
mod logging;
mod secret;
mod status;
mod surface;

#[doc(hidden)]
pub use crate::core::fuzzing;
pub use app::main;

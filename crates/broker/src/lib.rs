//! A typed MCP broker: reviewed, locked MCP tools behind three stable meta-tools.
//!
//! The library embeds no catalog: a binary includes its own by [`include_catalog!`], and a program can make
//! one at its start and give it to [`serve`]. [`core`] is the only way to a
//! server and names no transport of callers; surfaces translate protocols, and only `app` connects all
//! parts.
//!
//! A program that calls tools by their generated types opens a [`typed::Broker`]; `examples/typed.rs` does so with the catalog
//! of the smoke config. One that works with paths and JSON uses its core:
//!
//! ```
//! use mcp_broker::catalog;
//! use mcp_broker::core::{Broker as _, Identity};
//! use mcp_broker::typed::{Broker, Options};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A program with a lock includes its own catalog by `include_catalog!`.
//! let broker = Broker::open(&catalog::NONE, Options::new()).await?;
//! let tree = broker.core().list(&Identity::local(), "/", 1)?.tree();
//! assert_eq!(tree.path, "/");
//! broker.close().await;
//! # Ok(())
//! # }
//! ```

pub mod embed;
pub mod typed;

mod app;
mod cli;
mod connect;
mod key;
mod logging;
#[doc(hidden)]
pub mod packed;
#[cfg(feature = "scripted")]
#[doc(hidden)]
pub mod scripted;
mod secret;
mod status;

pub use app::{ServedCatalog, StaleSources, main, run_shared, serve};
pub use broker_core as core;
pub use broker_core::StaleSource;
pub use broker_core::catalog;
pub use broker_observe as observe;
#[doc(hidden)]
pub use cli::command;
pub use cli::{KeyVerb, NewKeyArgs, ServeOptions, SharedVerb, StatusArgs};
pub use connect::{ClientEntry, ConnectArgs, Connected, FoundFile, Program, client_files};

/// Includes the catalog that the build script of the calling crate wrote, as `CATALOG`.
#[macro_export]
macro_rules! include_catalog {
    () => {
        include!(concat!(env!("OUT_DIR"), "/catalog.rs"));
    };
}

/// Includes the types of the tools that the build script of the calling crate wrote, as `mod tools`: empty where
/// `types` is off in the config. The types name serde and serde_json, so the calling crate must depend on both. They
/// cost about 0.1 s of compile time for each tool, so only a program that calls tools from Rust includes them.
#[macro_export]
macro_rules! include_tools {
    () => {
        include!(concat!(env!("OUT_DIR"), "/tools.rs"));
    };
}

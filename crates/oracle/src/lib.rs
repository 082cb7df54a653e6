//! Test only: an MCP client and an MCP server made with the official Rust SDK, so that the broker's
//! protocol code meets somebody else's. Shares no code with the broker.

mod client;
mod server;

pub use client::{CallError, Client, Era};
pub use server::OracleServer;

//! Test only: an MCP client and an MCP server from the official Rust SDK, to test the broker's protocol code
//! against an independent implementation. Shares no code with the broker.

mod client;
mod server;

pub use client::{CallError, Client, Era};
pub use server::OracleServer;

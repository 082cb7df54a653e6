//! Five public MCP servers behind one broker.

mod http;
mod partly;
mod stdio;

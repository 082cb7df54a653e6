//! `mcp-broker stdio` as a program: both protocol eras by hand-written lines, the smoke config behind.

mod client;
mod life;
mod memory;
mod protocol;
mod tools;

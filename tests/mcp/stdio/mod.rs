//! `mcp-broker stdio` as a program: both protocol eras with hand-written lines, over the smoke config.

pub(crate) mod client;
mod life;
mod memory;
mod protocol;
mod tools;

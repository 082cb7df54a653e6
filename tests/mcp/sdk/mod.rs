//! Client and server of the official Rust SDK, with the broker between them or alone.

mod client;
mod equality;

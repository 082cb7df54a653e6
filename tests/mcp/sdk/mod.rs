//! Client and server of the official Rust SDK, with the broker between them or alone.

pub(crate) mod client;
mod equality;
mod items;

//! Runs the real `chaos-mcp --http`: what the tests of a client over HTTP rely on.
#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails like the test itself"
)]

mod bodies;
mod client;
mod endings;
mod legacy;
mod modern;
mod old_sse;
mod process;
mod streams;
#[path = "../support/mod.rs"]
mod support;

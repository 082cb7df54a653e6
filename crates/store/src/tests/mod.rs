//! Tests of the store: the rules, the same for each store; the handle.

mod fake;
mod handle;

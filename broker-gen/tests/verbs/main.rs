//! The verbs of `broker-gen` that launch nothing, from outside.

mod bench;
mod diff;
mod generate;
mod new;
mod schemas;

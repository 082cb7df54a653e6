//! The verbs of `broker-gen` that launch nothing, from outside.

mod bench;
mod diff;
mod formats;
mod generate;
mod new;
mod rules;
mod schemas;

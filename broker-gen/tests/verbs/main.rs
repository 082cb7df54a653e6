//! The verbs of `broker-gen` that launch nothing, from outside.

mod accept;
mod baseline;
mod bench;
mod diff;
mod flood;
mod formats;
mod generate;
mod new;
mod review;
mod rules;
mod schemas;
mod verify;

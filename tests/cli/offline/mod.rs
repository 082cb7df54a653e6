//! The verbs of `broker-gen` that launch no server, run as a program.

mod accept;
mod access_changes;
mod authors;
mod baseline;
pub(crate) mod bench;
mod connect;
mod control_characters;
mod diff;
mod flat_names;
mod formats;
mod generate;
mod generated_hints;
mod hints;
mod import;
mod key;
mod moved;
mod new;
mod people;
mod review;
mod rules;
mod schemas;
mod search;
mod search_hints;
mod trust;
mod unattended;
mod verify;
mod violations;

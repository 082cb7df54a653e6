//! The fault table: what sources, callers and the machine do wrong, row by row, and what the broker
//! makes of it. Each test is named after its row and reports its figure; `docs/faults.md` lists them.

mod batches;
mod bounds;
mod bytes;
mod callers;
mod death;
mod files;
mod front;
mod listings;
mod memory;
mod noise;
mod stage;
mod starts;
mod storms;
mod waits;

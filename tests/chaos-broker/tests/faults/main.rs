//! The fault table: faults of sources, callers and the machine, row by row, and the reaction of the
//! broker. Each test is named after its row and reports its figure; `docs/faults.md` lists them.

mod batches;
mod bounds;
mod bytes;
mod callers;
mod callers_chaos;
mod death;
mod files;
mod fixture;
mod listings;
mod memory;
mod noise;
mod starts;
mod storms;
mod waits;

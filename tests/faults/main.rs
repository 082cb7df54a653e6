//! Faults of sources, callers and the machine, and the reaction of the broker. Each test reports a figure;
//! `docs/faults.md` lists the faults with their tests and figures.

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

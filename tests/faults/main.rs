//! Faults of sources, callers and the machine, and the reaction of the broker. Each test reports a figure;
//! `docs/faults.md` lists the faults with their tests and figures.

mod bounds;
mod bytes;
mod callers;
mod callers_chaos;
mod death;
mod hostile_text;
mod logs;
mod mass_crash;
mod memory;
mod noise;
mod retry;
mod secrets;
mod starts;
mod storms;
mod waits;

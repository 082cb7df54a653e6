//! Tests of the store: the rules on each store, the handle, the file, crashes, faults of the machine.
#![cfg(feature = "sqlite")]

mod conformance;
mod crash;
mod fake;
mod file;
mod handle;
mod ids;
mod machine;

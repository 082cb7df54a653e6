//! Tests of the store: the rules on each store, the handle, the file, crashes, a full disk.

mod conformance;
mod crash;
mod fake;
mod file;
mod handle;
mod machine;

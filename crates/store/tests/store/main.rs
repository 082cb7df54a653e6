//! Tests of the store: the rules on each store, the handle, the file, crashes.

mod conformance;
mod fake;
mod handle;

//! Differences between sources and the lock, at the start and while the broker runs, and the format of the lock.

mod corpus;
mod edits;
mod lock_formats;
mod pairs;
mod rows;
mod running;
mod start;

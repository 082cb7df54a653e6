//! Differences between sources and the lock, at the start and while the broker runs, and the format of the lock.

mod classes;
mod corpus;
mod edits;
mod lock_formats;
mod odd_tools;
mod pairs;
mod running;
mod start;
mod under_rules;

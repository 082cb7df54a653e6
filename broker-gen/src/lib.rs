//! The command line: locks the tools of servers, compares servers with the lock, and reviews it.

#![forbid(unsafe_code)]

pub mod cli;

//! Everything that reads what others wrote, fed with what nobody would write; see `tests/fuzz/src`.

mod arguments;
mod batch;
mod config;
mod cutting;
mod envelope;
mod filter;
mod framer;
mod listing;
mod lock;
mod path;

//! Everything that reads what others wrote, fed with what nobody would write; see `tests/fuzz/src`.

mod arguments;
mod config;
mod cutting;
mod filter;
mod framer;
mod listing;
mod lock;
mod message;
mod path;

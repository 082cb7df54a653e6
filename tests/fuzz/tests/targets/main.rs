//! Everything that reads what others wrote, fed with what nobody would write; see `tests/fuzz/src`.

mod arguments;
mod config;
mod cutting;
mod envelope;
mod filter;
mod framer;
mod lock;
mod path;

//! Fuzz targets for every parser of foreign input; see `tests/fuzz/src`.

mod arguments;
mod config;
mod cutting;
mod filter;
mod framer;
mod listing;
mod lock;
mod message;
mod path;

//! The key sets of issuers (JWKS): fetched, read, kept for a day, and fetched again.

pub(crate) mod fetch;
pub(crate) mod parse;
pub(crate) mod set;
pub(crate) mod source;
mod waits;

//! What callers are told when something fails.

pub(crate) mod error;
pub(crate) mod failure;
pub(crate) mod json_error;

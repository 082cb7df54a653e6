//! The errors that callers receive.

pub(crate) mod error;
pub(crate) mod failure;
pub(crate) mod json_error;
pub(crate) mod server_error;

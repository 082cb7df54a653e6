//! Tokens of issuers (JWT): what is checked before the signature, the signature, and the cache of verified tokens.

pub(crate) mod cache;
pub(crate) mod checks;
pub(crate) mod parts;
pub(crate) mod provider;
pub(crate) mod verify;

/// Maximum length of a token, in bytes.
pub(crate) const MAX_TOKEN_BYTES: usize = 8192;

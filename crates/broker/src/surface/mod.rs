//! The ways in. A surface decides who calls, checks what arrives, and turns core's answers into its
//! own protocol; it never talks to a server except through `core`.

pub(crate) mod http;
pub(crate) mod stdio;

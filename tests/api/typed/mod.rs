//! The typed API: generated types, calls with them, and misuse that does not compile.

mod calls;
mod generated;
mod misuse;
mod values;
